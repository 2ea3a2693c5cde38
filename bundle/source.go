package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/punnet/punnet/internal/display"
)

// Source is a skill directory, on this machine or another, opened for reading. Whatever happens to the
// directory meanwhile, nothing outside it can be read through a Source.
type Source struct {
	// Name is the name the directory has in its collection, which becomes the bundle's top
	// directory. Where the directory is reached through a link, it is the link's.
	Name string
	// Path is the absolute path that was opened, links and all.
	Path string

	files   SourceFS
	close   func() error // nil where the files are the caller's
	readers int          // how many files are read at once
	linked  bool
}

// OpenSource opens the skill directory at path, which may be a link to one. Close it after use.
// errors.Is tells fs.ErrNotExist, and fs.ErrPermission; a Name that cannot stand in a bundle is
// found out by Scan.
func OpenSource(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open skill %s: %w", display.Quote(path), err)
	}
	info, err := os.Lstat(abs)
	if err != nil {
		return nil, fmt.Errorf("open skill: %w", err)
	}
	// OpenRoot waits for a writer where the path is a FIFO, so what it will open is looked at first.
	if target, err := os.Stat(abs); err != nil {
		return nil, fmt.Errorf("open skill: %w", err)
	} else if !target.IsDir() {
		return nil, fmt.Errorf("open skill %s: it is not a directory", display.Quote(path))
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open skill: %w", err)
	}
	return &Source{
		Name:    filepath.Base(abs),
		Path:    abs,
		files:   local{root},
		close:   root.Close,
		readers: runtime.GOMAXPROCS(0),
		linked:  info.Mode()&fs.ModeSymlink != 0,
	}, nil
}

// Close gives the directory up.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

// ReadSkillFile returns the bytes of SKILL.md, at most MaxSkillFileBytes + 1 of them, so that a
// file over the limit can be told from one at it. The error is a *RejectedError where the file is
// not there, is not a regular file, or is a link that the rules refuse or that leaves the skill.
func (s *Source) ReadSkillFile(ctx context.Context, rules Rules) ([]byte, error) {
	var data []byte
	err := retryChanging(ctx, func() error {
		w := newWalk(s, rules)
		n, finding, err := w.skillFile()
		if err != nil {
			return err
		}
		if finding != nil {
			return &RejectedError{Name: s.Name, Findings: []Finding{*finding}}
		}
		data, err = readStable(s.files, n.real, n.info, MaxSkillFileBytes+1)
		if err != nil && !errors.Is(err, errChanged) && ofThePath(err) {
			return &RejectedError{Name: s.Name, Findings: []Finding{unreadable(SkillFile, err)}}
		}
		return err
	})
	if errors.Is(err, errChanged) {
		err = &RejectedError{Name: s.Name, Findings: []Finding{changing(SkillFile)}}
	}
	return data, err
}

// changeRetries is how often reading starts over when the directory changed meanwhile, and
// changePause how long the first of them waits; each further one waits as long again.
const (
	changeRetries = 3
	changePause   = 10 * time.Millisecond
)

// retryChanging calls read until it returns anything but errChanged, at most 1 + changeRetries
// times.
func retryChanging(ctx context.Context, read func() error) error {
	for n := 0; ; n++ {
		err := read()
		if !errors.Is(err, errChanged) || n == changeRetries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(n+1) * changePause):
		}
	}
}

// copyBuffer is the most that is read at once.
const copyBuffer = 32 << 10

// openStable opens a file that the walk saw as info, and makes sure it still is that one. The path
// holds no link when the walk sees it; if it does by now, os.Root keeps the opening inside.
func openStable(root SourceFS, name string, info fs.FileInfo) (SourceFile, error) {
	f, err := root.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", errChanged, err)
		}
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !unchanged(info, now) {
		err = errChanged
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// copyStable copies to w the content of a file that the walk saw as info. Anything but exactly the
// content of that moment is errChanged.
func copyStable(ctx context.Context, w io.Writer, root SourceFS, name string, info fs.FileInfo) error {
	f, err := openStable(root, name, info)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, min(info.Size()+1, copyBuffer)) // most files are small
	n, err := io.CopyBuffer(w, io.LimitReader(ctxReader{ctx, f}, info.Size()+1), buf)
	if err != nil {
		return err
	}
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if n != info.Size() || !unchanged(info, now) {
		return errChanged
	}
	return nil
}

// ctxReader ends reading when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// ofThePath reports whether an error is the fault of the path it is about: of what is there, or of
// who may read it. One of the process or the machine, or the end of a context, says nothing about
// the path.
func ofThePath(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}

// readStable returns the first max bytes of a file that the walk saw as info.
func readStable(root SourceFS, name string, info fs.FileInfo, max int64) ([]byte, error) {
	f, err := openStable(root, name, info)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max))
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != min(info.Size(), max) || !unchanged(info, now) {
		return nil, errChanged
	}
	return data, nil
}

// unchanged reports whether two looks at a path saw the same file with the same content, as far as
// its inode tells. Another machine tells less of it.
func unchanged(a, b fs.FileInfo) bool {
	aSec, aNsec := changeTime(a)
	bSec, bNsec := changeTime(b)
	isLocal := os.SameFile(a, a)
	return (!isLocal || os.SameFile(a, b)) && a.Mode() == b.Mode() && a.Size() == b.Size() &&
		a.ModTime().Equal(b.ModTime()) && aSec == bSec && aNsec == bNsec
}
