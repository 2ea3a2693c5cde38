package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// makeStages makes the cache where there is none, and for each job a staging directory with the
// bundle's directories in it: all of them in one flight, the outer ones first. A server that takes
// requests in their order, as OpenSSH's does, finds each directory's parent made. One that does not
// refuses some, which are asked for again.
func (c *sftpCache) makeStages(ctx context.Context, jobs []*job, left *leftovers) error {
	if err := c.makePrivate(); err != nil {
		return err
	}
	dirs := slices.Clone(c.path.missing)
	roots := len(dirs)
	for _, j := range jobs {
		j.stage, j.staged = c.temp(sftpStagePrefix, left), make([]bool, len(j.want.sizes))
		for _, d := range j.want.dirs {
			dirs = append(dirs, path.Join(j.stage, d))
		}
	}
	errs := c.makeDirs(ctx, dirs)
	alone := true
	for i, err := range errs {
		switch {
		case isOver(err):
			return err
		case i >= roots || err == nil:
		case errors.Is(err, fs.ErrExist):
			alone = false // another process is publishing here for the first time too
		default:
			return c.notBegun(dirs[i], err)
		}
	}
	if roots > 0 {
		if err := c.madeRoot(ctx, alone); err != nil {
			return err
		}
	}
	at := roots
	for _, j := range jobs {
		for _, d := range j.want.dirs {
			switch {
			case d == "":
				j.err = c.notBegun(j.stage, errs[at])
			case j.err == nil:
				j.err = c.notWritten(path.Join(j.stage, d), errs[at])
			}
			at++
		}
	}
	return nil
}

// makeDirs makes directories, parents before what is in them, and says what came of each.
func (c *sftpCache) makeDirs(ctx context.Context, dirs []string) []error {
	errs := make([]error, len(dirs))
	todo := make([]int, len(dirs))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 {
		inOrder(len(todo), func(k int) {
			i := todo[k]
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = c.fs.Mkdir(dirs[i], bundle.Dir.Perm())
			}
		})
		// What failed for want of a parent that is there by now, or will be, is tried again. The
		// parent may also have been there without its mode yet.
		hopeful := make(map[string]bool)
		var again []int
		for _, i := range todo {
			early := errors.Is(errs[i], fs.ErrNotExist) || errors.Is(errs[i], fs.ErrPermission)
			switch {
			case errs[i] == nil || errors.Is(errs[i], fs.ErrExist):
				hopeful[dirs[i]] = true
			case early && hopeful[path.Dir(dirs[i])]:
				hopeful[dirs[i]] = true
				again = append(again, i)
			}
		}
		todo = again
	}
	return errs
}

// place fills a staging directory and gives it the bundle's name. What is intact in a damaged copy
// is not sent: it is moved over once everything else is there.
func (c *sftpCache) place(ctx context.Context, j *job, left *leftovers) error {
	if err := c.fill(ctx, j, func(i int) bool { return !j.found.intact[i] }); err != nil {
		return err
	}
	return c.commit(ctx, j, left)
}

// fill sends the files that are wanted and not staged yet, and looks at each once it is there. In
// the same flight it looks at the directories, which were made before.
func (c *sftpCache) fill(ctx context.Context, j *job, want func(i int) bool) error {
	entries := j.want.manifest.Entries()
	return each(ctx, len(entries)+1, func(k int) error {
		if k == len(entries) {
			return c.lookAtStage(j)
		}
		isFile := entries[k].Kind != bundle.Dir
		if j.staged[k] || isFile && !want(k) {
			return nil
		}
		if isFile {
			if whole, err := c.put(ctx, j, k); err != nil {
				return err
			} else if whole {
				j.staged[k] = true
				return nil
			}
		}
		if err := c.arrived(j, k); err != nil {
			return err
		}
		j.staged[k] = true
		return nil
	})
}

// lookAtStage looks at the staging directory, which also shows who this account is on the target,
// and what time it is there.
func (c *sftpCache) lookAtStage(j *job) error {
	if j.made != nil {
		return nil
	}
	info, err := c.fs.Lstat(j.stage)
	if err != nil {
		return c.failed("look at what was sent", err)
	}
	if err := c.made(info); err != nil {
		return err
	}
	if !info.IsDir() || !c.exact(info, bundle.Dir) {
		return c.notKept(j, "", info)
	}
	j.made = info
	return nil
}

// put sends one file and reports whether it was seen to be there, whole. What of it was sent counts,
// also when the file is not completed. The look at it leaves right behind the request that completes
// it, which saves a round trip with servers that keep the order; where it comes too early it has
// shown less than the whole, and arrived looks again.
func (c *sftpCache) put(ctx context.Context, j *job, i int) (whole bool, err error) {
	e := j.want.manifest.Entries()[i]
	at := path.Join(j.stage, e.Path)
	var out transport.FileWriter
	err = c.gate.use(func() (err error) {
		out, err = c.fs.Create(at, e.Kind.Perm())
		return err
	}, func() error {
		out.SetModTime(bundle.PackedTime())
		copyErr := j.b.CopyFile(&sending{ctx, out, j}, e)
		var closeErr error
		inOrder(2, func(k int) {
			if k == 0 {
				closeErr = out.Close()
			} else if info, err := c.fs.Lstat(at); err == nil {
				whole = c.isFile(info, e.Kind, j.want.sizes[i])
			}
		})
		if copyErr != nil {
			return copyErr
		}
		return closeErr
	})
	if _, here := errors.AsType[*bundle.DamagedError](err); here {
		return false, hereDamaged(c.op, err)
	}
	return whole, c.notWritten(at, err)
}

// sending counts what is written for a job, and ends when the context does.
type sending struct {
	ctx context.Context
	w   io.Writer
	j   *job
}

func (s *sending) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	s.j.sent.Add(int64(n))
	return n, err
}

// arrived looks at an entry in the staging directory. A server may say that all is well and have
// stored less. A time that was not kept makes the copy slower to check and is no failure.
func (c *sftpCache) arrived(j *job, i int) error {
	e := j.want.manifest.Entries()[i]
	info, err := c.fs.Lstat(path.Join(j.stage, e.Path))
	if err != nil {
		return c.failed("look at what was sent", err)
	}
	if e.Kind == bundle.Dir && info.IsDir() && c.exact(info, e.Kind) || e.Kind != bundle.Dir && c.isFile(info, e.Kind, j.want.sizes[i]) {
		return nil
	}
	return c.notKept(j, e.Path, info)
}

// notKept is a target that stored something else than it was sent.
func (c *sftpCache) notKept(j *job, p string, info fs.FileInfo) error {
	what := fmt.Sprintf("%s is there with mode %v and %d bytes", path.Join(j.digest.String(), p), info.Mode(), info.Size())
	return &DamagedError{Digest: j.digest, Name: j.want.manifest.Name(), Said: what}
}
