package sftp

import (
	"errors"
	"io/fs"
	"path"

	"github.com/punnet/punnet/internal/fault"
)

// A listing begins with firstNames requests in flight, which is the whole of most directories: the
// last of them meets the end. Each further flight is twice as large, up to mostNames.
const (
	firstNames = 4
	mostNames  = 16
)

// ReadDir lists a directory of at most max entries (max > 0), in no order. It reads batches until the
// end or until one entry more than max, which is ErrTooLarge beside the first max entries. Names are
// as the server sent them and may be hostile. A directory of a few hundred entries takes two round
// trips; the close is not waited for.
func (s *FS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	const op = "readdir"
	if max <= 0 {
		return nil, fault.Path(op, name, fs.ErrInvalid)
	}
	var list []fs.FileInfo
	var err error
	for _, most := range []int{mostNames, 1} {
		var handle string
		if handle, err = s.opendir(name); err != nil {
			break
		}
		list, err = s.readNames(handle, name, max, most)
		s.drop(handle)
		if !isStatus(err, statusFailure) {
			break
		}
		// Perhaps a server that reads a directory for one request at a time.
	}
	return list, fault.Path(op, name, s.explain(err, ""))
}

func (s *FS) opendir(name string) (handle string, err error) {
	r, err := s.do(fxOpendir, fxHandle, name, nil)
	if isStatus(err, statusFailure) {
		if a, lerr := s.lstat(name); lerr == nil && !(fileInfo{"", a}).IsDir() {
			return "", fault.ErrNotDir
		}
	}
	if err != nil {
		return "", s.explain(err, "")
	}
	if handle = r.str(); r.bad {
		return "", errBadReply
	}
	return handle, nil
}

// readNames reads a directory with up to most requests in flight.
func (s *FS) readNames(handle, dir string, max, most int) ([]fs.FileInfo, error) {
	l := listing{fs: s, dir: dir, max: max}
	for n := min(firstNames, most); ; n = min(2*n, most) {
		flight := make([]*call, n)
		for i := range flight {
			var err error
			flight[i], err = s.c.start(s.ctx, fxReaddir, namesBytes, func(m message) message { return m.str(handle) })
			if err != nil {
				return nil, err
			}
		}
		// A server that does not keep the order may say that this is the end before it sends the
		// last names: they are in the same flight.
		end := false
		for _, w := range flight {
			r, err := s.c.wait(s.ctx, w)
			if err == nil {
				err = l.add(r)
			}
			_, refused := errors.AsType[*status](err)
			switch {
			case isStatus(err, statusEOF):
				end = true
			case errors.Is(err, ErrTooLarge):
				return l.entries, err
			case err != nil && !(end && refused): // what is asked past the end may be refused in any words
				return nil, err
			}
		}
		if end {
			return l.entries, nil
		}
	}
}

// listing is a directory that is being read.
type listing struct {
	fs      *FS
	dir     string
	max     int
	entries []fs.FileInfo
	bytes   int
}

// add reads one batch. It returns ErrTooLarge where that is more than the listing may hold.
func (l *listing) add(r *reply) error {
	if l.bytes += len(r.data); l.bytes > MaxListing {
		return ErrTooLarge
	}
	if err := r.check(fxName); err != nil {
		return err
	}
	n := r.u32()
	if n == 0 {
		return errBadReply // a server that sends nothing for ever
	}
	for ; n > 0; n-- {
		entry, err := l.fs.readName(r, l.dir)
		switch {
		case err != nil:
			return err
		case entry == nil:
		case len(l.entries) == l.max:
			return ErrTooLarge
		default:
			l.entries = append(l.entries, entry)
		}
	}
	return nil
}

// readName reads one entry. It is nil for "." and "..", which every listing holds.
func (s *FS) readName(r *reply, dir string) (fs.FileInfo, error) {
	name := r.name()
	r.take(r.u32()) // the line ls would print
	a := r.attrs()
	if r.bad {
		return nil, errBadReply
	}
	if name == "." || name == ".." {
		return nil, nil
	}
	if !a.hasPerm && !hostile(name) {
		// Without a mode nobody knows what it is.
		full, err := s.lstat(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		a = full
	}
	return fileInfo{name, a}, nil
}

// hostile reports whether a name from a listing is not a name at all.
func hostile(name string) bool {
	return name == "" || path.Base(name) != name || usable("/"+name) != nil
}
