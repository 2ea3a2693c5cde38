package discovery

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/punnet/punnet/skill"
)

// How much is asked at once. A directory or file being read takes a handle, of which servers have a
// few hundred, and memory here; a question takes neither.
const (
	questionsAtOnce   = 512
	collectionsAtOnce = 16
	filesAtOnce       = 200

	// A machine that answers within soon is not worth more than nearAtOnce goroutines, and neither is
	// this one, however long its first answer takes.
	soon       = 200 * time.Microsecond
	nearAtOnce = 16
)

// reader asks one machine.
type reader struct {
	ctx context.Context
	fs  FS
	odd atomic.Pointer[error] // the last error that is not an answer about a file
	far bool                  // answers take a while

	near    near      // fs, where it is this machine's; may be nil
	buffers sync.Pool // of *[headBytes]byte
}

// near is what an FS has in addition when it is this machine's: ways to ask for less than all of what
// others send in one go.
type near interface {
	// ReadNames is FS.ReadDir where names and kinds are enough.
	ReadNames(name string, max int) ([]fs.DirEntry, error)
	// ReadStart reads the beginning of a regular file into buf, less than all of buf only where the
	// file ends.
	ReadStart(name string, buf []byte) (int, error)
}

// headBytes is how much of a file is read at first: more than nearly all heads.
const headBytes = 4 << 10

func newReader(ctx context.Context, files FS) *reader {
	r := &reader{ctx: ctx, fs: files}
	r.near, _ = files.(near)
	r.buffers.New = func() any { return new([headBytes]byte) }
	return r
}

// atOnce is how much of what may be asked at once is.
func (r *reader) atOnce(limit int) int {
	if r.far {
		return limit
	}
	return min(limit, nearAtOnce)
}

func (r *reader) lstat(name string) (fs.FileInfo, error) {
	return noting(r, func() (fs.FileInfo, error) { return r.fs.Lstat(name) })
}

// readDir lists a directory: names, and what kind of thing each is.
func (r *reader) readDir(name string) ([]fs.DirEntry, error) {
	return noting(r, func() ([]fs.DirEntry, error) {
		if r.near != nil {
			return r.near.ReadNames(name, MaxListed)
		}
		infos, err := r.fs.ReadDir(name, MaxListed)
		entries := make([]fs.DirEntry, len(infos))
		for i, info := range infos {
			entries[i] = fs.FileInfoToDirEntry(info)
		}
		return entries, err
	})
}

// readHead returns a file's head, and skill.MaxFileBytes + 1 bytes or more of one that has none and is
// larger than that.
func (r *reader) readHead(name string) ([]byte, error) {
	return noting(r, func() ([]byte, error) {
		if r.near != nil {
			buf := r.buffers.Get().(*[headBytes]byte)
			defer r.buffers.Put(buf)
			n, err := r.near.ReadStart(name, buf[:])
			// Where the head ends with what was read, its last line may have more.
			if head := skill.Head(buf[:n]); err != nil || n < len(buf) || head < n {
				return bytes.Clone(buf[:head]), err
			}
		}
		data, err := r.fs.ReadFile(name, skill.MaxFileBytes+1)
		if len(data) > skill.MaxFileBytes || err != nil {
			return data, err
		}
		return bytes.Clone(data[:skill.Head(data)]), nil
	})
}

func (r *reader) realPath(name string) (string, error) {
	return noting(r, func() (string, error) { return r.fs.RealPath(name) })
}

// noting asks, unless it is too late, and notes an error that is not an answer.
func noting[T any](r *reader, ask func() (T, error)) (T, error) {
	if err := r.ctx.Err(); err != nil {
		var none T
		return none, err
	}
	v, err := ask()
	if err != nil && !answered(err) {
		r.odd.Store(&err)
	}
	return v, err
}

// absent reports whether an error says that nothing has the name.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// answered reports whether an error is certainly one about a file, and not about the machine.
func answered(err error) bool {
	return absent(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid)
}

// found is what a name led to.
type found struct {
	real string // its real path
	mode fs.FileMode
	link bool  // the name itself is a link
	err  error // why there is no mode
}

// find follows a name to its end.
func (r *reader) find(name string) found {
	var f found
	var info fs.FileInfo
	var realErr error
	together(
		func() { info, f.err = r.lstat(name) },
		func() { f.real, realErr = r.realPath(name) },
	)
	if f.err != nil {
		return f
	}
	f.mode = info.Mode()
	f.link = f.mode&fs.ModeSymlink != 0
	if !f.link {
		f.err = realErr
		return f
	}
	info, f.err = r.end(f.real, realErr)
	if f.err == nil {
		f.mode = info.Mode()
	}
	return f
}

// end describes what a link leads to, of whose real path this is known.
func (r *reader) end(real string, err error) (fs.FileInfo, error) {
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		return nil, fs.ErrNotExist // a circle is a failure for some, and no file for others
	}
	info, err := r.lstat(real)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fs.ErrNotExist // a server that follows no links
	}
	return info, err
}

// each calls f for 0 to n-1 from goroutines of its own, at most limit at a time, and waits.
func each(n, limit int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, limit) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}

// together calls all of fs at once and waits.
func together(fs ...func()) {
	each(len(fs), len(fs), func(i int) { fs[i]() })
}

// first collects at most n of what a sequence has.
func first[T any](seq iter.Seq[T], n int) []T {
	var out []T
	for v := range seq {
		if len(out) == n {
			break
		}
		out = append(out, v)
	}
	return out
}
