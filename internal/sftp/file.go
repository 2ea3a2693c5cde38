package sftp

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/punnet/punnet/internal/fault"
)

// Requests of one file that may be in flight at once: 64 of 32 KiB fill an SSH channel's window.
const fileRequests = 64

// ReadDir lists a directory of at most max entries (max > 0), in no order. It reads batches until the
// end or until one entry more than max, which is ErrTooLarge beside the first max entries. Names are
// as the server sent them and may be hostile.
func (s *FS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	const op = "readdir"
	if max <= 0 {
		return nil, fault.Path(op, name, fs.ErrInvalid)
	}
	r, err := s.do(fxOpendir, fxHandle, name, nil)
	if err != nil {
		if isStatus(err, statusFailure) {
			if a, lerr := s.lstat(name); lerr == nil && !(fileInfo{"", a}).IsDir() {
				err = fault.ErrNotDir
			}
		}
		return nil, fault.Path(op, name, s.explain(err, ""))
	}
	handle := r.str()
	if r.bad {
		return nil, fault.Path(op, name, errBadReply)
	}
	defer s.drop(handle)
	list, err := s.readNames(handle, name, max)
	return list, fault.Path(op, name, s.explain(err, ""))
}

func (s *FS) readNames(handle, dir string, max int) ([]fs.FileInfo, error) {
	var list []fs.FileInfo
	for total := 0; ; {
		w, err := s.c.start(s.ctx, fxReaddir, namesBytes, func(m message) message { return m.str(handle) })
		if err != nil {
			return nil, err
		}
		r, err := s.c.wait(s.ctx, w)
		if err != nil {
			return nil, err
		}
		if total += len(r.data); total > MaxListing {
			return list, ErrTooLarge
		}
		if err := r.check(fxName); isStatus(err, statusEOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		n := r.u32()
		if n == 0 {
			return nil, errBadReply // a server that sends nothing for ever
		}
		for ; n > 0; n-- {
			entry, err := s.readName(r, dir)
			switch {
			case err != nil:
				return nil, err
			case entry == nil:
			case len(list) == max:
				return list, ErrTooLarge
			default:
				list = append(list, entry)
			}
		}
	}
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

// ReadFile returns a file's content, of at most max bytes; ErrTooLarge when there is more. It takes two round trips for a file below two chunks: the open, and a read that meets the
// end. The close is not waited for.
func (s *FS) ReadFile(name string, max int64) ([]byte, error) {
	if max < 0 {
		return nil, fault.Path("read", name, fs.ErrInvalid)
	}
	f, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size a server names is not believed: memory follows what it sends, doubling as it comes.
	var data []byte
	for step := int64(2 * chunkBytes); ; step = int64(len(data)) {
		part := make([]byte, min(step, max+1-int64(len(data))))
		n, err := f.ReadAt(part, int64(len(data)))
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
	r, err := f.fs.c.ask(f.fs.ctx, fxFstat, func(m message) message { return m.str(f.handle) })
	if err == nil {
		err = r.check(fxAttrs)
	}
	if err != nil {
		return nil, fault.Path("stat", f.name, f.fs.explain(err, ""))
	}
	a := r.attrs()
	if r.bad {
		return nil, fault.Path("stat", f.name, errBadReply)
	}
	return fileInfo{path.Base(f.name), a}, nil
}

// ReadAt keeps up to fileRequests reads in flight. A short reply is followed by a request for the
// rest: only the server's own end of file ends a read early.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	type part struct {
		at   int
		b    []byte
		call *call
	}
	var flight []part
	next, done := 0, 0
	for done < len(p) {
		for next < len(p) && len(flight) < fileRequests {
			b := p[next:min(next+chunkBytes, len(p))]
			w, err := f.startRead(off+int64(next), len(b))
			if err != nil {
				return done, fault.Path("read", f.name, err)
			}
			flight = append(flight, part{next, b, w})
			next += len(b)
		}
		head := flight[0]
		flight = flight[1:]
		n, err := f.finishRead(head.call, head.b)
		for err == nil && n < len(head.b) {
			var w *call
			if w, err = f.startRead(off+int64(head.at+n), len(head.b)-n); err == nil {
				var m int
				m, err = f.finishRead(w, head.b[n:])
				n += m
			}
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

func (f *File) startRead(off int64, n int) (*call, error) {
	return f.fs.c.start(f.fs.ctx, fxRead, uint32(n)+statusBytes, func(m message) message {
		return m.str(f.handle).u64(uint64(off)).u32(uint32(n))
	})
}

func (f *File) finishRead(w *call, b []byte) (int, error) {
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
}

// Close closes the file without waiting: its error is always nil.
func (f *File) Close() error {
	f.once.Do(func() { f.fs.drop(f.handle) })
	return nil
}

// Create makes a file with exactly perm and opens it for writing; fs.ErrExist when the name is taken.
// It sends the permissions with the open, for servers that take them there, and again for the
// open file, for a umask and for servers that do not.
func (s *FS) Create(name string, perm fs.FileMode) (*Writer, error) {
	handle, err := s.open(name, openWrite|openCreat|openExcl, perm)
	if err != nil {
		return nil, fault.Path("create", name, s.explain(err, name))
	}
	w := &Writer{fs: s, name: name, handle: handle}
	w.start(fxFsetstat, func(m message) message { return m.str(handle).perm(perm) })
	return w, nil
}

// Writer writes one new file from its beginning. Requests go out as they come, and replies are read when too many
// are outstanding or at Close, so that only a nil error from Close says that all arrived.
type Writer struct {
	fs      *FS
	name    string
	handle  string
	off     uint64
	modTime time.Time
	flight  []*call
	err     error
}

// start sends a request whose reply is looked at later.
func (w *Writer) start(kind byte, fill func(message) message) {
	if w.err != nil {
		return
	}
	if len(w.flight) >= fileRequests {
		w.settle(1)
	}
	c, err := w.fs.c.start(w.fs.ctx, kind, statusBytes, fill)
	if err != nil {
		w.err = fault.Path("write", w.name, err)
		return
	}
	w.flight = append(w.flight, c)
}

// settle reads the oldest n replies.
func (w *Writer) settle(n int) {
	for _, c := range w.flight[:n] {
		r, err := w.fs.c.wait(w.fs.ctx, c)
		if err == nil {
			err = r.check(fxStatus)
		}
		if err != nil && w.err == nil {
			w.err = fault.Path("write", w.name, w.fs.explainSpace(err, path.Dir(w.name)))
		}
	}
	w.flight = w.flight[n:]
}

// Write sends p. Its error may be that of an earlier step.
func (w *Writer) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) && w.err == nil {
		b := p[n:min(n+chunkBytes, len(p))]
		w.start(fxWrite, func(m message) message {
			return append(make(message, 0, len(m)+len(w.handle)+len(b)+16), m...).str(w.handle).u64(w.off).bytes(b)
		})
		w.off += uint64(len(b))
		n += len(b)
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// SetModTime has Close give the file this modification and access time.
func (w *Writer) SetModTime(t time.Time) { w.modTime = t }

// Close completes the file. Its error includes the first failure of any earlier step.
func (w *Writer) Close() error {
	if w.handle == "" {
		return fault.Path("close", w.name, fs.ErrClosed)
	}
	if !w.modTime.IsZero() {
		if !w.fs.c.exts[extFstatvfs] {
			// Some servers write from several threads and would move the time after us.
			w.settle(len(w.flight))
		}
		w.start(fxFsetstat, func(m message) message { return m.str(w.handle).times(w.modTime) })
	}
	// The handle is closed whatever happened before, for the server's sake.
	c, err := w.fs.c.start(w.fs.ctx, fxClose, statusBytes, func(m message) message { return m.str(w.handle) })
	w.handle = ""
	if err == nil {
		w.flight = append(w.flight, c)
	} else if w.err == nil {
		w.err = fault.Path("close", w.name, err)
	}
	w.settle(len(w.flight))
	return w.err
}
