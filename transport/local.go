package transport

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/punnet/punnet/internal/proc"
)

// cancelGrace is how long a command that was asked to end may take before it is cut off.
const cancelGrace = 2 * time.Second

// Local returns the way to this machine. Commands run in the home directory, as they do over SSH.
func Local() Conn { return &localConn{closed: make(chan struct{})} }

func (l *localConn) Way() Way { return WayLocal }

type localConn struct {
	once   sync.Once
	closed chan struct{}
	wg     sync.WaitGroup
}

func (*localConn) Server() string { return "" }

func (c *localConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.wg.Wait()
	return nil
}

// fail gives err this Conn's shape.
func (c *localConn) fail(op string, kind, err error) error {
	return &Error{Op: op, Kind: kind, Err: err}
}

func (c *localConn) Files(ctx context.Context) (FS, error) {
	select {
	case <-c.closed:
		return nil, c.fail("files", ErrClosed, nil)
	case <-ctx.Done():
		return nil, c.fail("files", nil, proc.Ended(ctx))
	default:
		return &localFS{ctx: ctx, closed: c.closed}, nil
	}
}

func (c *localConn) Exec(ctx context.Context, cmd Cmd) error {
	select {
	case <-c.closed:
		return c.fail("exec", ErrClosed, nil)
	default:
	}
	if err := ctx.Err(); err != nil {
		return c.fail("exec", nil, proc.Ended(ctx))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.wg.Add(1)
	defer c.wg.Done()
	go func() {
		select {
		case <-c.closed:
			cancel(ErrClosed)
		case <-ctx.Done():
		}
	}()
	return c.run(ctx, cancel, cmd)
}

// run starts the shell and follows it to its end.
func (c *localConn) run(ctx context.Context, cancel context.CancelCauseFunc, cmd Cmd) error {
	p, err := shell(ctx, cmd.Line)
	if err != nil {
		return c.fail("exec", ErrNoExec, err)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if fi, err := os.Stat(home); err == nil && fi.IsDir() {
			p.Dir = home
		}
	}
	p.WaitDelay = cancelGrace
	// A writer that fails must end the command; os/exec alone would leave it running.
	stdout := &guardedWriter{w: cmd.Stdout, failed: cancel}
	stderr := &guardedWriter{w: cmd.Stderr, failed: cancel}
	defer stdout.retire()
	defer stderr.retire()
	p.Stdout, p.Stderr = stdout, stderr
	if cmd.Stdin != nil {
		// A pipe of our own: with p.Stdin set, Wait would wait for a Read that never ends.
		in, err := p.StdinPipe()
		if err != nil {
			return c.fail("exec", nil, err)
		}
		defer in.Close()
		// End of file too, for a command whose signal came when nobody was listening yet.
		defer context.AfterFunc(ctx, func() { in.Close() })()
		feed(in, cmd.Stdin, cancel)
	}
	if err := p.Start(); err != nil {
		if ctx.Err() != nil { // the input failed, or the caller gave up, before there was a command
			return c.stopped(ctx)
		}
		return c.fail("exec", ErrNoExec, err)
	}
	err = p.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return c.stopped(ctx)
	case errors.As(err, &exit):
		return exitError(exit.ProcessState)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // it exited with 0; a process it left behind still holds its output
	case err != nil:
		return c.fail("exec", nil, err)
	}
	return nil
}

// stopped says why a command was ended before its time.
func (c *localConn) stopped(ctx context.Context) error {
	cause := context.Cause(ctx)
	var w *writeError
	switch {
	case errors.As(cause, &w):
		return c.fail("exec", nil, w.err)
	case errors.Is(cause, ErrClosed):
		return c.fail("exec", ErrClosed, nil)
	}
	return c.fail("exec", nil, proc.Ended(ctx))
}

// writeError marks a failure of the caller's own reader or writers as the reason a command ended.
type writeError struct{ err error }

func (w *writeError) Error() string { return w.err.Error() }
func (w *writeError) Unwrap() error { return w.err }

// guardedWriter writes to w, if there is one, reports the first error before it returns it, and
// writes no more once it is retired.
type guardedWriter struct {
	w      io.Writer
	failed context.CancelCauseFunc

	mu   sync.Mutex
	over atomic.Bool
}

func (g *guardedWriter) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w == nil || g.over.Load() {
		return len(p), nil
	}
	n, err := g.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		g.failed(&writeError{err})
	}
	return n, err
}

// retire sees to it that nothing is written once the caller has its result. A write that the
// caller's own writer holds up is waited for no longer than cancelGrace.
func (g *guardedWriter) retire() {
	g.over.Store(true)
	idle := make(chan struct{})
	go func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(idle)
	}()
	limit := time.NewTimer(cancelGrace)
	defer limit.Stop()
	select {
	case <-idle:
	case <-limit.C:
	}
}

// feed copies r to w in the background and closes w at its end. A reader that fails is reported
// rather than looking to the command like the end of its input. When the command ends first, a Read
// under way ends by itself.
func feed(w io.WriteCloser, r io.Reader, failed context.CancelCauseFunc) {
	go func() {
		if err := copyInput(w, r); err != nil {
			failed(&writeError{err})
			return
		}
		w.Close()
	}()
}

// copyInput copies r to w. It returns an error only if r fails: a command may end, or close its
// standard input, without reading all of it.
func copyInput(w io.Writer, r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &inputError{err}
		}
	}
}

// inputError says which side failed when the caller's reader did.
type inputError struct{ err error }

func (e *inputError) Error() string { return "reading the command's input: " + e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }
