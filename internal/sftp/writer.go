package sftp

import (
	"io/fs"
	"path"
	"time"

	"github.com/punnet/punnet/internal/fault"
)

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
