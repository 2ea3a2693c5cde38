package transport

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

// Lazy returns a Conn over a client that dial returns, for a program that has a connection to t, or
// makes one, when there is need for it. It asks the network nothing itself, and t is only what
// errors call the machine.
//
// dial is called by the first call of Exec or Files, never twice at a time, and again by the first
// call after the client turned out to be dead or to answer nothing; it may return the client that it
// returned before. A call that finds the client dead before it asked for anything has dial called
// and goes on; one that had begun fails with ErrLost, for what it did may not be done twice.
// dial's context ends with the call that needed it and with Close, and a call does not wait for a
// dial that goes on beyond it. What dial fails with is wrapped in an *Error whose Op is "dial" and
// whose Kind is ErrUnreachable where the cause has none of its own.
//
// The clients belong to whoever made them: as for NewConn, Close frees what the Conn opened and
// leaves them open, no keepalives are sent, and of o, Idle and Log count. Server returns "" until
// there is a client.
func Lazy(t Target, dial func(ctx context.Context) (*ssh.Client, error), o Options) Conn {
	life, end := context.WithCancel(context.Background())
	return &lazyConn{t: t, dial: dial, o: o, life: life, end: end, turn: make(chan struct{}, 1)}
}

// lazyConn is a Conn that gets its client when it needs one.
type lazyConn struct {
	t    Target
	dial func(ctx context.Context) (*ssh.Client, error)
	o    Options
	life context.Context // ends with Close
	end  context.CancelFunc
	turn chan struct{} // one token: who calls dial

	mu   sync.Mutex
	now  *lease   // nil until dial has returned a client
	held []*lease // those that are not closed, now among them
	over bool     // Close was called
	wg   sync.WaitGroup
}

// lease is a client's Conn and how many calls use it. One that is dead is closed by the last of them.
type lease struct {
	c     *sshConn
	users int
	dead  bool
}

func (l *lazyConn) Exec(ctx context.Context, cmd Cmd) error {
	return l.with(ctx, "exec", func(c *sshConn) error { return c.Exec(ctx, cmd) })
}

func (l *lazyConn) Files(ctx context.Context) (fsys FS, err error) {
	err = l.with(ctx, "files", func(c *sshConn) error {
		fsys, err = c.Files(ctx)
		return err
	})
	return fsys, err
}

// with calls f with a Conn, and once more with another where the first was dead before f began.
func (l *lazyConn) with(ctx context.Context, op string, f func(*sshConn) error) error {
	for again := false; ; again = true {
		h, err := l.take(ctx, op)
		if err != nil {
			return err
		}
		err = f(h.c)
		e, ours := errors.AsType[*Error](err)
		early := ours && e.early
		l.give(h, early || h.c.failed())
		if !early || again {
			return err
		}
		l.o.logger().Info("the connection was lost meanwhile; asking for another", "target", l.t.String())
	}
}

// failed reports whether the connection was given up.
func (c *sshConn) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause != nil
}

// take returns the Conn in use, from dial where there is none.
func (l *lazyConn) take(ctx context.Context, op string) (*lease, error) {
	for {
		if h, err := l.use(op); h != nil || err != nil {
			return h, err
		}
		select {
		case l.turn <- struct{}{}:
			if err := l.call(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			return nil, l.fail("dial", nil, proc.Ended(ctx))
		case <-l.life.Done():
		}
	}
}

// use returns the Conn in use, used by one more call, or nil where there is none.
func (l *lazyConn) use(op string) (*lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, l.fail(op, ErrClosed, nil)
	}
	if l.now != nil {
		l.now.users++
	}
	return l.now, nil
}

// give ends one use of h, and with dead its time as the Conn in use.
func (l *lazyConn) give(h *lease, dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.users--
	if dead && l.now == h {
		l.now, h.dead = nil, true
	}
	if h.dead && h.users == 0 && !l.over {
		l.held = slices.DeleteFunc(l.held, func(x *lease) bool { return x == h })
		l.wg.Go(func() { h.c.Close() })
	}
}

// call calls dial unless somebody did meanwhile, and waits for it until parent ends; its caller
// holds the turn. A client that comes too late for this call is the next one's.
func (l *lazyConn) call(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	stop := context.AfterFunc(l.life, cancel)
	done := make(chan error, 1)
	go func() {
		defer func() { stop(); cancel(); <-l.turn }()
		done <- l.get(ctx)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done: // its end is what ended ctx
		default:
			err = ctx.Err()
		}
	}
	switch {
	case err == nil:
		return nil
	case parent.Err() != nil:
		return l.fail("dial", nil, proc.Ended(parent))
	case l.life.Err() != nil:
		return l.fail("dial", ErrClosed, nil)
	}
	kind := ErrUnreachable
	if _, typed := errors.AsType[*Error](err); typed || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		kind = nil
	}
	return l.fail("dial", kind, fault.Both(errors.New(display.Said(err.Error())), err))
}

// get makes what dial returns the Conn in use.
func (l *lazyConn) get(ctx context.Context) error {
	l.mu.Lock()
	have := l.now != nil
	l.mu.Unlock()
	if have {
		return nil
	}
	client, err := l.dial(ctx)
	if err != nil {
		return err
	}
	if client == nil {
		return errors.New("the function that connects returned no client")
	}
	c := newSSHConn(client, l.o)
	c.target, c.way = l.t, WayGiven
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.now = &lease{c: c}
		l.held = append(l.held, l.now)
	}
	return nil
}

func (l *lazyConn) fail(op string, kind, err error) *Error {
	return &Error{Op: op, Target: l.t, Kind: kind, Err: err}
}

func (l *lazyConn) Way() Way { return WayGiven }

func (l *lazyConn) Server() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return ""
	}
	return l.now.c.Server()
}

// Close ends what is under way. It does not wait for a dial that goes on although its context ended.
func (l *lazyConn) Close() error {
	l.mu.Lock()
	l.over = true
	held := l.held
	l.held, l.now = nil, nil
	for _, h := range held {
		l.wg.Go(func() { h.c.Close() })
	}
	l.mu.Unlock()
	l.end()
	l.wg.Wait()
	return nil
}
