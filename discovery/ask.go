package discovery

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How much is asked at once. A directory or file being read takes a handle, of which servers have a
// few hundred, and memory here; a question takes neither.
const (
	questionsAtOnce   = 512
	collectionsAtOnce = 16
	filesAtOnce       = 200

	// A machine that answers within soon is not worth more than nearAtOnce goroutines: it is this one.
	soon       = 200 * time.Microsecond
	nearAtOnce = 16
)

// reader asks one machine.
type reader struct {
	ctx context.Context
	fs  FS
	odd atomic.Pointer[error] // the last error that is not an answer about a file
	far bool                  // answers take a while
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

func (r *reader) readDir(name string) ([]fs.FileInfo, error) {
	return noting(r, func() ([]fs.FileInfo, error) { return r.fs.ReadDir(name, MaxListed) })
}

func (r *reader) readFile(name string, max int64) ([]byte, error) {
	return noting(r, func() ([]byte, error) { return r.fs.ReadFile(name, max) })
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
