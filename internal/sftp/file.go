package sftp

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"

	"github.com/punnet/punnet/internal/fault"
)

// fileRequests of one file may be in flight at once: 64 of 32 KiB fill an SSH channel's window.
const fileRequests = 64

// drop closes a handle without waiting: there is nothing to do about a failure.
func (s *FS) drop(handle string) {
	_, _ = s.c.start(s.ctx, fxClose, statusBytes, func(m message) message { return m.str(handle) })
}

// open opens name and returns the handle.
func (s *FS) open(name string, flags uint32, perm fs.FileMode) (string, error) {
	r, err := s.do(fxOpen, fxHandle, name, func(m message) message {
		m = m.u32(flags)
		if flags&openCreat == 0 {
			return m.u32(0)
		}
		return m.perm(perm)
	})
	if err != nil {
		return "", err
	}
	handle := r.str()
	if r.bad {
		return "", errBadReply
	}
	return handle, nil
}

// Open opens a file for reading. Opening a FIFO blocks a server.
func (s *FS) Open(name string) (*File, error) {
	handle, err := s.open(name, openRead, 0)
	if err != nil {
		return nil, fault.Path("open", name, s.explain(err, ""))
	}
	return &File{fs: s, name: name, handle: handle}, nil
}

// ReadFile returns a file's content, of at most max bytes; ErrTooLarge when there is more. A file below
// two chunks takes two round trips: the open, and two reads beside the question how large it is. The
// close is not waited for.
func (s *FS) ReadFile(name string, max int64) ([]byte, error) {
	if max < 0 {
		return nil, fault.Path("read", name, fs.ErrInvalid)
	}
	f, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ends := f.startEnds()
	// The size a server names is not believed: memory follows what it sends, doubling as it comes.
	var data []byte
	for step := int64(2 * chunkBytes); ; step = int64(len(data)) {
		part := make([]byte, min(step, max+1-int64(len(data))))
		n, err := f.readAt(part, int64(len(data)), ends)
		data = append(data, part[:n]...)
		switch {
		case int64(len(data)) > max:
			return nil, fault.Path("read", name, ErrTooLarge)
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// File is a file open for reading.
type File struct {
	fs     *FS
	name   string
	handle string
	once   sync.Once
}

// Stat describes the open file.
func (f *File) Stat() (fs.FileInfo, error) {
	w, err := f.startStat()
	var a *attrs
	if err == nil {
		a, err = f.finishStat(w)
	}
	if err != nil {
		return nil, fault.Path("stat", f.name, f.fs.explain(err, ""))
	}
	return fileInfo{path.Base(f.name), a}, nil
}

func (f *File) startStat() (*call, error) {
	return f.fs.c.start(f.fs.ctx, fxFstat, statusBytes, func(m message) message { return m.str(f.handle) })
}

func (f *File) finishStat(w *call) (*attrs, error) {
	r, err := f.fs.c.wait(f.fs.ctx, w)
	if err == nil {
		err = r.check(fxAttrs)
	}
	if err != nil {
		return nil, err
	}
	a := r.attrs()
	if r.bad {
		return nil, errBadReply
	}
	return a, nil
}

// startEnds asks how large the file is and returns a function that waits for the answer, and reports
// whether the file ends at an offset by it. A server that does not say is one that says nothing ends.
func (f *File) startEnds() func(at int64) bool {
	w, err := f.startStat()
	size := sync.OnceValue(func() int64 {
		if err != nil {
			return -1
		}
		a, err := f.finishStat(w)
		if err != nil {
			return -1
		}
		return fileInfo{"", a}.Size() // 0 where it is not said, and no read that found something ends there
	})
	return func(at int64) bool { return size() == at }
}

// ReadAt keeps up to fileRequests reads in flight. Only the server's own end of file ends a read
// early.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	return f.readAt(p, off, func(int64) bool { return false })
}

// readAt is ReadAt. A server may send less than it was asked for, so a short reply is followed by a
// request for the rest, and that by another, up to the server's end of file. What saves the wait for
// that is a short reply that stops where the file ends by what else is known, and has nothing behind
// it: whether a file grows or is not of the size that is said of it, one of the two shows it.
func (f *File) readAt(p []byte, off int64, ends func(at int64) bool) (int, error) {
	type part struct {
		at   int
		b    []byte
		read func() (int, error)
	}
	var flight []part
	next, done := 0, 0
	for done < len(p) {
		for next < len(p) && len(flight) < fileRequests {
			b := p[next:min(next+chunkBytes, len(p))]
			flight = append(flight, part{next, b, f.startRead(b, off+int64(next))})
			next += len(b)
		}
		head := flight[0]
		flight = flight[1:]
		n, err := head.read()
		for err == nil && n < len(head.b) {
			at := off + int64(head.at+n)
			if ends(at) && (len(flight) == 0 || isStatus(second(flight[0].read()), statusEOF)) {
				return done + n, io.EOF
			}
			var m int
			m, err = f.startRead(head.b[n:], at)()
			n += m
		}
		done += n
		if isStatus(err, statusEOF) {
			return done, io.EOF
		}
		if err != nil {
			return done, fault.Path("read", f.name, f.fs.explain(err, ""))
		}
	}
	return done, nil
}

func second(_ int, err error) error { return err }

// startRead asks for b's bytes at an offset and returns a function that waits for them, which may be
// called again. It returns how many came, at least one, or an error.
func (f *File) startRead(b []byte, off int64) func() (int, error) {
	w, err := f.fs.c.start(f.fs.ctx, fxRead, uint32(len(b))+statusBytes, func(m message) message {
		return m.str(f.handle).u64(uint64(off)).u32(uint32(len(b)))
	})
	return sync.OnceValues(func() (int, error) {
		if err != nil {
			return 0, err
		}
		r, err := f.fs.c.wait(f.fs.ctx, w)
		if err == nil {
			err = r.check(fxData)
		}
		if err != nil {
			return 0, err
		}
		data := r.take(r.u32())
		if r.bad || len(data) == 0 || len(data) > len(b) {
			return 0, errBadReply
		}
		return copy(b, data), nil
	})
}

// Close closes the file without waiting: its error is always nil.
func (f *File) Close() error {
	f.once.Do(func() { f.fs.drop(f.handle) })
	return nil
}
