package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// FS is what Read needs of a machine's files; a transport.Reader is one. Names are absolute slash
// paths. All methods are called from many goroutines at once.
type FS interface {
	// Lstat describes name, which may be a link.
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory of at most max entries, in no order. Past max it returns the first
	// max of them with an error.
	ReadDir(name string, max int) ([]fs.FileInfo, error)
	// ReadFile returns the content of a regular file of at most max bytes, and an error for a larger.
	ReadFile(name string, max int64) ([]byte, error)
	// RealPath resolves the links in name, whose last element may be missing, and knows "." as the
	// account's home directory.
	RealPath(name string) (string, error)
}

// Read asks a machine what q wants to know. What it could not read is said in the Listing; the error
// is for a machine that does not answer, and for ctx.
//
// Everything that can be asked at the same time is, so that over SFTP it takes a few round trips for
// any number of skills: one for where the collections may be, one for which are there, two for
// their entries, one for what these hold, and two for the files. Home or a link as the working
// directory, or a link as a collection, costs one more, a link as a SKILL.md two. At most 200 files
// are in flight, a handle of the server for each; more of them take more round trips.
//
// Nothing is opened that was not seen to be a directory or a regular file.
func Read(ctx context.Context, files FS, q Query) (*Listing, error) {
	r := newReader(ctx, files)
	l := &Listing{}
	r.where(q, l)
	at := places(q, l)
	collections := make([]*Collection, len(at))
	jobs := make([][]*job, len(at))
	each(len(at), r.atOnce(collectionsAtOnce), func(i int) {
		collections[i], jobs[i] = r.collection(at[i])
	})
	r.entries(shared(collections, jobs))
	for i, c := range collections {
		if c == nil {
			continue
		}
		for _, j := range jobs[i] {
			if !j.none {
				c.Entries = append(c.Entries, j.Entry)
			}
		}
		l.Collections = append(l.Collections, *c)
	}
	l.Bound()
	if err := r.alive(); err != nil {
		return nil, fmt.Errorf("reading the skill collections: %w", err)
	}
	return l, nil
}

// shared returns the jobs there are to do. A directory that is two collections, as the home directory's
// is that of a project there too, is one to read: its second collection gets the jobs of the first.
func shared(collections []*Collection, jobs [][]*job) []*job {
	first := make(map[string]int)
	var all []*job
	for i, c := range collections {
		if c == nil {
			continue
		}
		k, again := first[c.Real]
		if again && slices.EqualFunc(jobs[k], jobs[i], func(x, y *job) bool { return x.Name == y.Name && x.Link == y.Link }) {
			jobs[i] = jobs[k]
			continue
		}
		first[c.Real] = i
		all = append(all, jobs[i]...)
	}
	return all
}

// where finds the directories that places depend on.
func (r *reader) where(q Query, l *Listing) {
	dir := ""
	if q.Dir != "" {
		dir = path.Clean(q.Dir)
	}
	home := func() {
		asked := time.Now()
		l.Home, _ = r.realPath(".")
		r.far = r.near == nil && time.Since(asked) > soon
	}
	if dir == Home {
		if home(); l.Home == "" {
			l.Dir, l.Problem = dir, NoDirectory
			return
		}
		dir, home = l.Home, func() {}
	}
	var found found
	var at repository
	together(
		home,
		func() {
			if dir != "" {
				found = r.find(dir)
			}
		},
		func() {
			if dir != "" {
				at = r.repository(dir) // as it will be, where no link is in the way
			}
		},
	)
	if dir == "" {
		return
	}
	switch {
	case found.err != nil && !absent(found.err):
		l.Dir, l.Problem = dir, Unreadable
	case found.err != nil || !found.mode.IsDir():
		l.Dir, l.Problem = dir, NoDirectory
	default:
		if found.real != dir {
			at = r.repository(found.real)
		}
		if l.Dir, l.Repository = found.real, at.root; at.shut {
			// Nobody can work in it, and nothing is looked for above it either.
			l.Dir, l.Repository, l.Problem = dir, "", Unreadable
		}
	}
}

// repository is what the markers of repositories say of a directory.
type repository struct {
	root string // the nearest of it and those above that has one, "" where none does
	shut bool   // the directory itself may not be entered
}

// repository looks for .git and .jj in dir and the directories above it.
func (r *reader) repository(dir string) repository {
	dirs := append([]string{dir}, first(parents(dir), MaxAncestors)...)
	markers := []string{".git", ".jj"}
	is := make([]bool, len(dirs)*len(markers))
	var at repository
	each(len(is), questionsAtOnce, func(i int) {
		info, err := r.lstat(path.Join(dirs[i/len(markers)], markers[i%len(markers)]))
		is[i] = err == nil && info.Mode()&(fs.ModeType&^fs.ModeDir&^fs.ModeSymlink) == 0
		if i == 0 {
			at.shut = errors.Is(err, fs.ErrPermission)
		}
	})
	if i := slices.Index(is, true); i >= 0 {
		at.root = dirs[i/len(markers)]
	}
	return at
}

// lookAt is a path where a root's collection may be.
type lookAt struct {
	Root
	path string
}

// places returns where to look for collections, in order.
func places(q Query, l *Listing) []lookAt {
	var all []lookAt
	for _, root := range q.Roots {
		below, ofHome := strings.CutPrefix(root.Path, "~/")
		switch {
		case ofHome:
			if l.Home != "" {
				all = append(all, lookAt{root, path.Join(l.Home, below)})
			}
		case isAbs(root.Path):
			all = append(all, lookAt{root, path.Clean(root.Path)})
		case l.Dir != "" && l.Problem == "":
			all = append(all, lookAt{root, path.Join(l.Dir, root.Path)})
			if !root.Walk || l.Repository == "" {
				continue
			}
			for dir := range parents(l.Dir) {
				if !within(dir, l.Repository) {
					break
				}
				all = append(all, lookAt{root, path.Join(dir, root.Path)})
			}
		}
	}
	return all
}

// isAbs reports whether a slash path is absolute, here or on Windows.
func isAbs(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && p[2] == '/'
}

// collection lists one collection; nil where there is none.
func (r *reader) collection(at lookAt) (*Collection, []*job) {
	c := &Collection{Root: at.ID, Path: at.path, Real: at.path}
	found := r.find(at.path)
	if found.err == nil {
		c.Real = found.real
	}
	switch {
	case absent(found.err) && !found.link:
		return nil, nil
	case found.err != nil && !absent(found.err):
		c.Problem = Unreadable
		return c, nil
	case found.err != nil || !found.mode.IsDir():
		c.Problem = NotDirectory
		return c, nil
	}
	var infos []fs.DirEntry
	var err, entering error
	together(
		func() { infos, err = r.readDir(c.Real) },
		// Of a directory that can be read and not entered a server lists nothing, and no error.
		func() { _, entering = r.lstat(below(c.Real, skill.FileName)) },
	)
	if err != nil && len(infos) == 0 || errors.Is(entering, fs.ErrPermission) {
		c.Problem = Unreadable
		return c, nil
	}
	slices.SortFunc(infos, func(x, y fs.DirEntry) int { return cmp.Compare(x.Name(), y.Name()) })
	if c.More = err != nil || len(infos) > at.Entries; c.More {
		infos = infos[:min(len(infos), at.Entries)]
	}
	var jobs []*job
	for _, info := range infos {
		link := info.Type()&fs.ModeSymlink != 0
		if (link || info.IsDir()) && isName(info.Name()) && len(info.Name()) <= maxNameBytes {
			// A copy, since a name can hold on to the whole answer that it came with.
			name := strings.Clone(info.Name())
			jobs = append(jobs, &job{Entry: Entry{Name: name, Link: link}, at: c.Real})
		}
	}
	return c, jobs
}

// maxNameBytes is how long a name can be on the file systems that there are.
const maxNameBytes = 255

// alive returns an error where the machine does not answer any more: where something failed for a
// reason that is not a file's, it is asked something that has an answer.
func (r *reader) alive() error {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	odd := r.odd.Load()
	if odd == nil {
		return nil
	}
	if _, err := r.fs.Lstat("/"); err != nil && !answered(err) {
		return fmt.Errorf("%s", display.Quote((*odd).Error()))
	}
	return nil
}
