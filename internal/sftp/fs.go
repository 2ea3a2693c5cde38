package sftp

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
)

// FS is a machine's files over SFTP, for as long as a context lasts. Names are absolute slash paths;
// RealPath alone also takes ".". What its methods promise stands at transport.FS.
type FS struct {
	ctx context.Context
	c   *Client
}

// Extensions returns the names of the extensions that the server offers, sorted, as it sent them.
func (s *FS) Extensions() []string { return slices.Sorted(maps.Keys(s.c.exts)) }

// errName is a name no request is sent for.
var errName = fault.Both(errors.New("not an absolute path"), fs.ErrInvalid)

// usable reports whether name can stand in a request.
func usable(name string) error {
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) || len(name) > MaxName {
		return errName
	}
	return nil
}

// do sends one request about name and checks that the reply is of the wanted kind. The error is
// bare: exported methods wrap it.
func (s *FS) do(kind byte, want byte, name string, fill func(message) message) (*reply, error) {
	if err := usable(name); err != nil {
		return nil, err
	}
	r, err := s.c.ask(s.ctx, kind, func(m message) message {
		m = m.str(name)
		if fill != nil {
			m = fill(m)
		}
		return m
	})
	if err != nil {
		return nil, err
	}
	return r, r.check(want)
}

// Lstat describes name, which may be a link.
func (s *FS) Lstat(name string) (fs.FileInfo, error) {
	a, err := s.lstat(name)
	if err != nil {
		return nil, fault.Path("lstat", name, s.explain(err, ""))
	}
	return fileInfo{path.Base(name), a}, nil
}

func (s *FS) lstat(name string) (*attrs, error) {
	r, err := s.do(fxLstat, fxAttrs, name, nil)
	if err != nil {
		return nil, err
	}
	a := r.attrs()
	if r.bad {
		return nil, errBadReply
	}
	return a, nil
}

// ReadLink returns where a link points.
func (s *FS) ReadLink(name string) (string, error) {
	to, err := "", usable(name)
	if err == nil {
		to, err = s.onePath(fxReadlink, name)
	}
	return to, fault.Path("readlink", name, s.explain(err, ""))
}

// RealPath returns the absolute form of name, or of ".".
func (s *FS) RealPath(name string) (string, error) {
	real, err := "", usable(name)
	if err == nil || name == "." {
		real, err = s.onePath(fxRealpath, name)
	}
	return real, fault.Path("realpath", name, s.explain(err, ""))
}

// onePath sends a request that is answered by one path.
func (s *FS) onePath(kind byte, name string) (string, error) {
	r, err := s.c.ask(s.ctx, kind, func(m message) message { return m.str(name) })
	if err == nil {
		err = r.check(fxName)
	}
	if err != nil {
		return "", err
	}
	return r.onePath()
}

// onePath reads a name reply that must hold exactly one.
func (r *reply) onePath() (string, error) {
	n, name := r.u32(), r.name()
	if n != 1 || r.bad {
		return "", errBadReply
	}
	return name, nil
}

// Mkdir makes a directory with exactly perm; fs.ErrExist when the name is taken.
func (s *FS) Mkdir(name string, perm fs.FileMode) error {
	fill := func(m message) message { return m.perm(perm) }
	if _, err := s.do(fxMkdir, fxStatus, name, fill); err != nil {
		return fault.Path("mkdir", name, s.explain(err, name))
	}
	// The umask may have taken bits away, the parent may have passed its setgid bit on, and some
	// servers take no permissions above.
	if s.c.exts[extFstatvfs] {
		// This server keeps the order, so whatever is asked next finds the mode set, and the
		// owner's chmod of a new directory has no way to fail: not worth a round trip.
		_, err := s.c.start(s.ctx, fxSetstat, statusBytes, func(m message) message { return fill(m.str(name)) })
		return fault.Path("mkdir", name, err)
	}
	_, err := s.do(fxSetstat, fxStatus, name, fill)
	return fault.Path("mkdir", name, s.explain(err, ""))
}

// Chmod sets the permission bits.
func (s *FS) Chmod(name string, perm fs.FileMode) error {
	_, err := s.do(fxSetstat, fxStatus, name, func(m message) message { return m.perm(perm) })
	return fault.Path("chmod", name, s.explain(err, ""))
}

// Chtimes sets the access and modification time, to the second.
func (s *FS) Chtimes(name string, t time.Time) error {
	_, err := s.do(fxSetstat, fxStatus, name, func(m message) message { return m.times(t) })
	return fault.Path("chtimes", name, s.explain(err, ""))
}

// Rename moves oldname to newname, replacing what may be replaced in one step; else fs.ErrExist.
func (s *FS) Rename(oldname, newname string) error {
	err := s.rename(oldname, newname)
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: "rename", Old: display.Quote(oldname), New: display.Quote(newname), Err: err}
}

func (s *FS) rename(oldname, newname string) error {
	if err := usable(newname); err != nil {
		return err
	}
	if path.Clean(oldname) == path.Clean(newname) {
		// Win32-OpenSSH deletes a file that is renamed to itself (its issue 1849).
		_, err := s.lstat(oldname)
		return s.explain(err, "")
	}
	if s.c.exts[extPosixRename] {
		if err := usable(oldname); err != nil {
			return err
		}
		r, err := s.c.ask(s.ctx, fxExtended, func(m message) message {
			return m.str(extPosixRename).str(oldname).str(newname)
		})
		if err == nil {
			err = r.check(fxStatus)
		}
		return s.explainRename(err, oldname, newname)
	}
	// What a plain rename does to an existing name differs between servers, so it is never put to
	// the test.
	if _, err := s.lstat(newname); err == nil {
		if _, err := s.lstat(oldname); err != nil {
			return s.explain(err, "")
		}
		return fs.ErrExist
	}
	_, err := s.do(fxRename, fxStatus, oldname, func(m message) message { return m.str(newname) })
	return s.explainRename(err, oldname, newname)
}

// explainRename says whether a refused rename means that the new name is taken.
func (s *FS) explainRename(err error, oldname, newname string) error {
	if isStatus(err, statusNoFile) {
		// OpenSSH says "no such file" also when a directory was to replace a link or file.
		if _, lerr := s.lstat(oldname); lerr != nil {
			return s.explain(err, "")
		}
	}
	if isStatus(err, statusFailure) || isStatus(err, statusNoFile) {
		if _, lerr := s.lstat(newname); lerr == nil {
			return fault.Both(err, fs.ErrExist)
		}
	}
	return s.explain(err, "")
}

// Remove removes a file or link, never a directory.
func (s *FS) Remove(name string) error {
	err := s.checkKind(name, false)
	if err == nil {
		_, err = s.do(fxRemove, fxStatus, name, nil)
	}
	if isStatus(err, statusFailure) {
		if a, lerr := s.lstat(name); lerr == nil && (fileInfo{"", a}).IsDir() {
			err = fault.ErrIsDir
		}
	}
	return fault.Path("remove", name, s.explain(err, ""))
}

// RemoveDir removes an empty directory. One that is not empty is fs.ErrExist.
func (s *FS) RemoveDir(name string) error {
	err := s.checkKind(name, true)
	if err == nil {
		_, err = s.do(fxRmdir, fxStatus, name, nil)
	}
	if isStatus(err, statusFailure) || isStatus(err, statusNoFile) {
		if a, lerr := s.lstat(name); lerr == nil {
			err = fault.ErrNotDir
			if (fileInfo{"", a}).IsDir() {
				err = s.whyFull(name)
			}
		}
	}
	return fault.Path("rmdir", name, s.explain(err, ""))
}

// checkKind asks what name is before it is removed, since some servers remove a file when asked for
// a directory, and the other way round. OpenSSH's needs no such care.
func (s *FS) checkKind(name string, dir bool) error {
	if s.c.exts[extFstatvfs] {
		return nil
	}
	a, err := s.lstat(name)
	switch is := err == nil && (fileInfo{"", a}).IsDir(); {
	case err != nil:
		return err
	case is && !dir:
		return fault.ErrIsDir
	case !is && dir:
		return fault.ErrNotDir
	}
	return nil
}

// whyFull says why a directory that is there could not be removed.
func (s *FS) whyFull(name string) error {
	if entries, _ := s.ReadDir(name, 1); len(entries) > 0 {
		return fault.ErrNotEmpty
	}
	return fs.ErrPermission
}

// FreeSpace returns how many bytes this account may still write to the file system that holds name;
// errors.ErrUnsupported where the server does not say.
func (s *FS) FreeSpace(name string) (uint64, error) {
	v, err := s.statvfs(name)
	return v.bytes, fault.Path("statfs", name, s.explain(err, ""))
}

// space is the part of a statvfs reply that says what may still be written.
type space struct{ bytes, inodes, allInodes uint64 }

func (s *FS) statvfs(name string) (space, error) {
	if !s.c.exts[extStatvfs] {
		return space{}, errors.ErrUnsupported
	}
	if err := usable(name); err != nil {
		return space{}, err
	}
	r, err := s.c.ask(s.ctx, fxExtended, func(m message) message { return m.str(extStatvfs).str(name) })
	if err == nil {
		err = r.check(fxExtReply)
	}
	if err != nil {
		return space{}, err
	}
	// bsize, frsize, blocks, bfree, bavail, files, ffree, favail, fsid, flag, namemax
	var v [11]uint64
	for i := range v {
		v[i] = r.u64()
	}
	if r.bad {
		return space{}, errBadReply
	}
	frsize := v[1]
	if frsize == 0 {
		frsize = v[0]
	}
	return space{bytes: v[4] * frsize, inodes: v[7], allInodes: v[5]}, nil
}

// explain turns a server's refusal into what errors.Is understands. SFTP has one code, "failure",
// for most of what can go wrong; the file system is asked what it was. taken is the name that a
// refused creation wanted, or "".
func (s *FS) explain(err error, taken string) error {
	st, ok := errors.AsType[*status](err)
	if !ok {
		return err
	}
	switch st.code {
	case statusNoFile:
		return fault.Both(st, fs.ErrNotExist)
	case statusPermission:
		return fault.Both(st, fs.ErrPermission)
	case statusUnsupported:
		return fault.Both(st, errors.ErrUnsupported)
	case statusBadMessage:
		return fault.Both(st, fs.ErrInvalid)
	case statusFailure:
	default:
		return st
	}
	if taken == "" {
		return st
	}
	if _, lerr := s.lstat(taken); lerr == nil {
		return fault.Both(st, fs.ErrExist)
	}
	return s.explainSpace(st, path.Dir(taken))
}

// explainSpace says whether a failure to write in dir is for want of space.
func (s *FS) explainSpace(err error, dir string) error {
	st, ok := errors.AsType[*status](err)
	if !ok || st.code != statusFailure {
		return s.explain(err, "")
	}
	text := strings.ToLower(st.text)
	if strings.Contains(text, "no space") || strings.Contains(text, "quota") {
		return fault.Both(st, ErrNoSpace)
	}
	// OpenSSH says "Failure" and no more.
	if v, verr := s.statvfs(dir); verr == nil && (v.bytes == 0 || v.inodes == 0 && v.allInodes > 0) {
		return fault.Both(st, ErrNoSpace)
	}
	return st
}
