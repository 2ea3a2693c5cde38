package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

// localFS is this machine's files, for as long as ctx and the Conn last.
type localFS struct {
	ctx    context.Context
	closed <-chan struct{}
}

// path checks that name may be used now and gives it the system's form.
func (l *localFS) path(op, name string) (string, error) {
	select {
	case <-l.closed:
		return "", fault.Path(op, name, ErrClosed)
	default:
	}
	if l.ctx.Err() != nil {
		return "", fault.Path(op, name, proc.Ended(l.ctx))
	}
	p := filepath.FromSlash(name)
	if !filepath.IsAbs(p) || strings.ContainsRune(name, 0) {
		return "", fault.Path(op, name, fs.ErrInvalid)
	}
	return p, nil
}

// localError gives an error of the os package the shape of this package's.
func localError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if noSpace(err) {
		err = fault.Both(fault.Bare(err), ErrNoSpace)
	}
	return fault.Path(op, name, err)
}

func (l *localFS) Lstat(name string) (fs.FileInfo, error) {
	p, err := l.path("lstat", name)
	if err != nil {
		return nil, err
	}
	fi, err := os.Lstat(p)
	return fi, localError("lstat", name, err)
}

func (l *localFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	const op = "readdir"
	p, err := l.path(op, name)
	if err != nil {
		return nil, err
	}
	if max <= 0 {
		return nil, fault.Path(op, name, fs.ErrInvalid)
	}
	d, err := os.OpenFile(p, readFlags, 0)
	if err != nil {
		return nil, localError(op, name, err)
	}
	defer d.Close()
	var list []fs.FileInfo
	for {
		entries, err := d.ReadDir(min(max+1-len(list), 512))
		for _, e := range entries {
			if len(list) == max {
				return list, fault.Path(op, name, ErrTooLarge)
			}
			fi, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed since it was listed
			}
			if err != nil {
				return nil, localError(op, name, err)
			}
			list = append(list, fi)
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, localError(op, name, err)
		}
	}
}

func (l *localFS) ReadLink(name string) (string, error) {
	p, err := l.path("readlink", name)
	if err != nil {
		return "", err
	}
	to, err := os.Readlink(p)
	return filepath.ToSlash(to), localError("readlink", name, err)
}

func (l *localFS) ReadFile(name string, max int64) ([]byte, error) {
	f, err := l.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if max < 0 {
		return nil, fault.Path("read", name, fs.ErrInvalid)
	}
	var data bytes.Buffer
	if info, err := f.Stat(); err == nil {
		// Room for all of it and the read that finds its end; what grows meanwhile costs another.
		data.Grow(int(min(info.Size(), max, 1<<20)) + bytes.MinRead)
	}
	_, err = data.ReadFrom(io.NewSectionReader(f, 0, max+1))
	if err != nil {
		return nil, localError("read", name, err)
	}
	if int64(data.Len()) > max {
		return nil, fault.Path("read", name, ErrTooLarge)
	}
	return data.Bytes(), nil
}

// Open takes no FIFO or device: what was a regular file when the caller saw it may be one by now.
func (l *localFS) Open(name string) (File, error) {
	p, err := l.path("open", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p, readFlags, 0)
	if err != nil {
		return nil, localError("open", name, err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&(fs.ModeType&^fs.ModeDir) != 0 {
		err = fs.ErrInvalid
	}
	if err != nil {
		f.Close()
		return nil, localError("open", name, err)
	}
	return f, nil
}

// RealPath resolves all links, but lets the last element be missing, as OpenSSH's server does.
func (l *localFS) RealPath(name string) (string, error) {
	if name == "." {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fault.Path("realpath", name, err)
		}
		name = filepath.ToSlash(home)
	}
	p, err := l.path("realpath", name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(p)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(p); errors.Is(lerr, fs.ErrNotExist) {
			if dir, derr := filepath.EvalSymlinks(filepath.Dir(p)); derr == nil {
				return filepath.ToSlash(filepath.Join(dir, filepath.Base(p))), nil
			}
		}
	}
	return filepath.ToSlash(real), localError("realpath", name, err)
}

func (l *localFS) Mkdir(name string, perm fs.FileMode) error {
	p, err := l.path("mkdir", name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(p, perm.Perm()); err != nil {
		return localError("mkdir", name, err)
	}
	// The umask may have taken bits away.
	return localError("mkdir", name, os.Chmod(p, perm.Perm()))
}

func (l *localFS) Create(name string, perm fs.FileMode) (FileWriter, error) {
	p, err := l.path("create", name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err != nil {
		return nil, localError("create", name, err)
	}
	if err := f.Chmod(perm.Perm()); err != nil {
		f.Close()
		return nil, localError("create", name, err)
	}
	return &localWriter{fs: l, name: name, f: f}, nil
}

func (l *localFS) Chmod(name string, perm fs.FileMode) error {
	p, err := l.path("chmod", name)
	if err != nil {
		return err
	}
	return localError("chmod", name, os.Chmod(p, perm.Perm()))
}

func (l *localFS) Chtimes(name string, t time.Time) error {
	p, err := l.path("chtimes", name)
	if err != nil {
		return err
	}
	t = t.Truncate(time.Second)
	return localError("chtimes", name, os.Chtimes(p, t, t))
}

func (l *localFS) Rename(oldname, newname string) error {
	from, err := l.path("rename", oldname)
	if err != nil {
		return err
	}
	to, err := l.path("rename", newname)
	if err != nil {
		return err
	}
	err = os.Rename(from, to)
	if err == nil {
		return nil
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		err = le.Err
	}
	if noSpace(err) {
		err = fault.Both(err, ErrNoSpace)
	}
	// ENOTEMPTY, ENOTDIR and EISDIR all mean that the new name is taken by something that a
	// rename may not replace.
	if _, lerr := os.Lstat(to); lerr == nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
		if _, lerr := os.Lstat(from); lerr == nil {
			err = fault.Both(err, fs.ErrExist)
		}
	}
	return &os.LinkError{Op: "rename", Old: display.Quote(oldname), New: display.Quote(newname), Err: err}
}

func (l *localFS) Remove(name string) error {
	p, err := l.path("remove", name)
	if err != nil {
		return err
	}
	return localError("remove", name, unlink(p))
}

func (l *localFS) RemoveDir(name string) error {
	p, err := l.path("rmdir", name)
	if err != nil {
		return err
	}
	return localError("rmdir", name, rmdir(p))
}

func (l *localFS) FreeSpace(name string) (uint64, error) {
	p, err := l.path("statfs", name)
	if err != nil {
		return 0, err
	}
	n, err := freeSpace(p)
	return n, localError("statfs", name, err)
}

// localWriter writes one new file.
type localWriter struct {
	fs      *localFS
	name    string
	f       *os.File
	modTime time.Time
	err     error
}

func (w *localWriter) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if _, err := w.fs.path("write", w.name); err != nil {
		w.err = err
		return 0, err
	}
	n, err := w.f.Write(p)
	w.err = localError("write", w.name, err)
	return n, w.err
}

func (w *localWriter) SetModTime(t time.Time) { w.modTime = t.Truncate(time.Second) }

func (w *localWriter) Close() error {
	err := w.f.Close()
	if w.err == nil {
		w.err = localError("close", w.name, err)
	}
	if w.err == nil && !w.modTime.IsZero() {
		// By name, for os.File has no call for it; the name was created by us a moment ago.
		w.err = w.fs.Chtimes(w.name, w.modTime)
	}
	return w.err
}
