package discovery

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/punnet/punnet/skill"
)

// misname is how SKILL.md is misspelt most. Where a file system takes both for the same name, a skill
// called so must be told from one called right.
const misname = "skill.md"

// job is an entry whose file is to be read.
type job struct {
	Entry
	at     string // the real path of its collection
	none   bool   // it is nothing to list
	file   answer // about SKILL.md
	other  answer // about misname
	target answer // the real path of an entry that is a link
}

// answer is that to one question.
type answer struct {
	info fs.FileInfo
	path string
	err  error
}

func (j *job) path() string { return below(j.at, j.Name) }

// below joins a directory and a name as they are: path.Join would clean what a machine sent.
func below(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// entries looks at all entries and reads their files. Memory is bounded by MaxListing and what is in
// flight: what is past the bound, in the order of the jobs, loses its Head.
func (r *reader) entries(jobs []*job) {
	if r.far {
		each(len(jobs)*questions, questionsAtOnce, func(i int) { r.question(jobs[i/questions], i%questions) })
	}
	var full atomic.Bool
	var mu sync.Mutex
	moved := sync.NewCond(&mu)
	settled := make([]bool, len(jobs))
	next, total := 0, 0 // the first job that is not settled, and the bytes of those before it
	each(len(jobs), r.atOnce(filesAtOnce), func(i int) {
		mu.Lock()
		for i >= next+filesAtOnce {
			moved.Wait()
		}
		mu.Unlock()
		if !r.far {
			for q := range questions {
				r.question(jobs[i], q)
			}
		}
		r.settle(jobs[i], &full)
		mu.Lock()
		defer mu.Unlock()
		for settled[i] = true; next < len(jobs) && settled[next]; next++ {
			j := jobs[next]
			if total += len(j.Name) + len(j.Real) + len(j.Head); total > MaxListing {
				full.Store(true)
				j.Entry = Entry{Name: j.Name, Link: j.Link, Problem: ListingFull}
			}
			moved.Broadcast()
		}
	})
}

// questions is how many there are about each entry, none of which needs the answer to another.
const questions = 3

func (r *reader) question(j *job, number int) {
	switch number {
	case 0:
		j.file.info, j.file.err = r.lstat(below(j.path(), skill.FileName))
	case 1:
		j.other.info, j.other.err = r.lstat(below(j.path(), misname))
	case 2:
		if j.target.path = j.path(); j.Link {
			j.target.path, j.target.err = r.realPath(j.path())
		}
	}
}

// settle finds out what an entry is, by the answers there are, and reads its file.
func (r *reader) settle(j *job, full *atomic.Bool) {
	j.Real = j.target.path
	if j.file.err == nil && j.other.err == nil && !r.hasExactly(j.Real, skill.FileName) {
		j.Problem = Misnamed
		return
	}
	switch {
	case j.file.err == nil && j.target.err != nil:
		j.Real, j.Problem = "", Unreadable
	case j.file.err == nil:
		r.read(j, full)
	case !absent(j.file.err):
		j.Problem = Unreadable
	case j.other.err == nil:
		j.Problem = Misnamed
	case j.Link:
		// A link to something that is no skill is no skill; one to nothing was meant to be.
		_, err := r.end(j.target.path, j.target.err)
		if j.none = !absent(err); !j.none {
			j.Real, j.Problem = "", LinkDangles
		}
	default:
		j.none = true
	}
}

// hasExactly reports whether a directory lists this name, which it answers to. What cannot be listed
// is believed.
func (r *reader) hasExactly(dir, name string) bool {
	infos, err := r.readDir(dir)
	return err != nil || slices.ContainsFunc(infos, func(i fs.DirEntry) bool { return i.Name() == name })
}

// read reads the file of an entry that has one.
func (r *reader) read(j *job, full *atomic.Bool) {
	name, info := below(j.Real, skill.FileName), j.file.info
	j.Size = info.Size()
	if j.FileLink = info.Mode()&fs.ModeSymlink != 0; j.FileLink {
		real, err := r.realPath(name)
		if info, err = r.end(real, err); err != nil {
			j.Size, j.Problem = 0, Unreadable
			if absent(err) {
				j.Problem = LinkDangles
			}
			return
		}
		j.Size = info.Size()
		if !within(real, j.Real) {
			j.Problem = LinkEscapes
			return
		}
		name = real
	}
	switch {
	case !info.Mode().IsRegular():
		j.Size, j.Problem = 0, NotRegular
		return
	case j.Size > skill.MaxFileBytes:
		j.Problem = TooLarge
		return
	case full.Load():
		return // which the bound will say
	}
	head, err := r.readHead(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.none = true // removed since it was seen
	case err != nil:
		j.Problem = Unreadable
	case len(head) > skill.MaxFileBytes:
		j.Problem = TooLarge
	default:
		j.Head = head
	}
}
