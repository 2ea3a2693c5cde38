package remote

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/punnet/punnet/transport"
)

const (
	// width is how many files and listings are open at once to begin with. OpenSSH's server allows
	// about as many as its process may have descriptors, some servers allow one. As long as nothing
	// is refused, each that went well allows one more, up to callWidth.
	width = 64
	// callWidth is how many operations of one phase are in flight at once; most need no open file.
	callWidth = 256
	// copyWidth is how many copies of unknown content are read at once.
	copyWidth = 32
)

// each calls do for 0 to n-1, as many at once as a phase may have in flight, and returns the first
// error after all calls have ended. After an error, and after ctx, no more are begun.
func each(ctx context.Context, n int, do func(i int) error) error {
	return eachOf(ctx, callWidth, n, do)
}

func eachOf(ctx context.Context, atOnce, n int, do func(i int) error) error {
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		stop  atomic.Bool
		first error
	)
	for range min(n, atOnce) {
		wg.Go(func() {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				err := ctx.Err()
				if err == nil {
					err = do(i)
				}
				if err != nil {
					once.Do(func() { first = err })
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return first
}

// inOrder calls do for 0 to n-1, all in flight, and tries to have the requests leave in that order.
// It is no promise: who depends on the order looks at what came of it.
func inOrder(n int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, callWidth)
	for i := range n {
		slots <- struct{}{}
		begun := make(chan struct{})
		wg.Go(func() {
			defer func() { <-slots }()
			close(begun)
			do(i)
		})
		<-begun
	}
	wg.Wait()
}

// gate bounds how many files and listings are open at once.
type gate struct {
	mu      sync.Mutex
	freed   sync.Cond
	limit   int
	inUse   int
	refused bool // the limit was felt once, and does not grow any more
}

func newGate(limit int) *gate {
	g := &gate{limit: limit}
	g.freed.L = &g.mu
	return g
}

// use opens something and goes on with it. A server has no word for "too many open files", so when
// opening fails for a reason it does not name, half as many are open from then on, and it is tried
// again. Waiting here needs no context: what is being waited for ends with it.
func (g *gate) use(open, then func() error) error {
	for {
		limit := g.enter()
		err := open()
		opened := err == nil
		if opened && then != nil {
			err = then()
		}
		g.leave(opened)
		if opened || !isUnnamed(err) || !g.narrow(limit) {
			return err
		}
	}
}

// enter waits for room and returns the limit it was let in under.
func (g *gate) enter() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.inUse >= g.limit {
		g.freed.Wait()
	}
	g.inUse++
	return g.limit
}

func (g *gate) leave(well bool) {
	g.mu.Lock()
	g.inUse--
	if well && !g.refused && g.limit < callWidth {
		g.limit++
	}
	g.mu.Unlock()
	g.freed.Broadcast()
}

// narrow halves the limit that a failed call was let in under, unless others of its time have done
// so already. It reports whether trying again can help.
func (g *gate) narrow(failedAt int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = true
	g.limit = min(g.limit, max(failedAt/2, 1))
	return failedAt > 1
}

// isOver reports whether err ends the whole call and not one operation of it.
func isOver(err error) bool {
	for _, end := range []error{
		context.Canceled, context.DeadlineExceeded, transport.ErrLost, transport.ErrClosed,
		transport.ErrTimeout, transport.ErrNoFiles, transport.ErrProtocol,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// isUnnamed reports whether err is a failure that the target gave no reason for.
func isUnnamed(err error) bool {
	if isOver(err) {
		return false
	}
	for _, named := range []error{
		fs.ErrExist, fs.ErrNotExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, errors.ErrUnsupported,
		transport.ErrNoSpace, transport.ErrTooLarge,
	} {
		if errors.Is(err, named) {
			return false
		}
	}
	return err != nil
}
