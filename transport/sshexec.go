package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/watchdog"
)

// Exec runs the line in one exec request.
func (c *sshConn) Exec(ctx context.Context, cmd Cmd) error {
	end, err := c.begin("exec")
	if err != nil {
		return err
	}
	defer end()
	done, err := c.takeTurn(ctx, "exec")
	if err != nil {
		return err
	}
	line := ssh.Marshal(struct{ Line string }{cmd.Line})
	o, release, err := c.channel(ctx, "exec", "exec", line, ErrNoExec)
	if err != nil {
		done()
		return err
	}
	e := &execution{c: c, ch: o.ch, finished: make(chan struct{})}
	defer func() {
		// The slot is free again when the server has closed its side too.
		c.wg.Add(1)
		go func() {
			defer c.wg.Done()
			c.hangUp(o.ch, e.finished)
			release()
			done()
		}()
	}()
	return e.run(ctx, cmd, o.reqs)
}

// execution is one command that runs.
type execution struct {
	c        *sshConn
	ch       ssh.Channel
	finished chan struct{} // closed when the server closed the channel

	mu     sync.Mutex
	status int // what the server said about the end
	signal string
	said   bool // the server said something about the end
}

func (e *execution) run(parent context.Context, cmd Cmd, reqs <-chan *ssh.Request) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	limit := cmd.Idle
	if limit == 0 {
		limit = e.c.idle
	}
	watch := watchdog.New(limit, func() {
		cancel(fault.Both(fmt.Errorf("the command moved no byte for %v", limit), ErrTimeout))
	})
	defer watch.Stop()

	go func() {
		defer close(e.finished)
		e.readRequests(reqs)
	}()
	var output sync.WaitGroup
	for _, stream := range []struct {
		w io.Writer
		r io.Reader
	}{{cmd.Stdout, e.ch}, {cmd.Stderr, e.ch.Stderr()}} {
		w := &guardedWriter{w: stream.w, failed: cancel}
		defer w.retire()
		output.Go(func() { drain(w, stream.r, watch) })
	}
	if cmd.Stdin == nil {
		cmd.Stdin = strings.NewReader("")
	}
	feed(&inputWriter{ch: e.ch, watch: watch}, cmd.Stdin, cancel)

	done := make(chan struct{})
	go func() {
		<-e.finished
		output.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return e.stop(ctx)
	case <-e.c.closed:
		return e.c.newError("exec", ErrClosed, nil)
	}
	if w, ok := errors.AsType[*writeError](context.Cause(ctx)); ok {
		return e.c.newError("exec", nil, w.err)
	}
	return e.result()
}

// inputWriter writes the command's standard input. The command owes nothing while its caller has
// more to say: the watchdog's clock runs while a write waits, and from the end of the input on.
type inputWriter struct {
	ch    ssh.Channel
	watch *watchdog.Watchdog
}

func (w *inputWriter) Write(p []byte) (int, error) {
	w.watch.Owe(1)
	n, err := w.ch.Write(p)
	w.watch.Moved()
	w.watch.Owe(-1)
	return n, err
}

func (w *inputWriter) Close() error {
	w.watch.Owe(1)
	return w.ch.CloseWrite()
}

// drain copies r to w until r ends. After a failed write it goes on reading, so that the
// connection's other channels are not held up while the command is being ended.
func drain(w io.Writer, r io.Reader, watch *watchdog.Watchdog) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			watch.Moved()
			if w != nil {
				if _, werr := w.Write(buf[:n]); werr != nil {
					w = nil
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// readRequests notes how the command ended.
func (e *execution) readRequests(reqs <-chan *ssh.Request) {
	for r := range reqs {
		switch r.Type {
		case "exit-status":
			if len(r.Payload) >= 4 {
				e.note(int(binary.BigEndian.Uint32(r.Payload)), "")
			}
		case "exit-signal":
			var s struct {
				Signal     string
				CoreDumped bool
				Error      string
				Lang       string
			}
			if ssh.Unmarshal(r.Payload, &s) == nil {
				e.note(-1, s.Signal[:min(len(s.Signal), 32)])
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

func (e *execution) note(status int, signal string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status, e.signal, e.said = status, signal, true
}

// ended reports whether the server said how the command ended.
func (e *execution) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.said
}

// result turns the server's word about the end into an error.
func (e *execution) result() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.said:
		return e.c.lost("exec", errors.New("the command ended without an exit status"))
	case e.status != 0:
		return &ExitError{Status: e.status, Signal: e.signal}
	}
	return nil
}

// stop ends the command before its time and says why: a signal and end of file first, so that what
// it has to clean up it can. Exec then closes the channel.
func (e *execution) stop(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrTimeout) && e.ended() {
		return e.result() // only something it left behind still holds its output
	}
	if _, refused := errors.AsType[*writeError](cause); e.ended() && !refused {
		return e.c.newError("exec", nil, proc.Ended(ctx)) // there is nobody to wait for
	}
	e.c.wg.Add(1)
	go func() {
		defer e.c.wg.Done()
		// Either can block on a dead link, and fail on a server that has no signals.
		_, _ = e.ch.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"TERM"}))
		_ = e.ch.CloseWrite()
	}()
	grace := time.NewTimer(e.c.grace)
	defer grace.Stop()
	select {
	case <-e.finished:
	case <-grace.C:
	case <-e.c.closed:
	}
	if w, ok := errors.AsType[*writeError](cause); ok {
		return e.c.newError("exec", nil, w.err)
	}
	if errors.Is(cause, ErrTimeout) {
		return e.c.newError("exec", ErrTimeout, cause)
	}
	return e.c.newError("exec", nil, proc.Ended(ctx))
}
