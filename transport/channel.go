package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

const (
	// openAttempts is how often a channel is asked for that the server refuses while none of ours
	// stands in its way: other sessions share the connection, or it is still clearing one away.
	openAttempts = 5
	// openPause is the mean pause before the second attempt; it grows with each.
	openPause = 100 * time.Millisecond
)

// channel takes one of the connection's channels and makes a request on it; release gives the
// channel back. A server that opens fewer than MaxChannels (MaxSessions) is asked for fewer from
// then on: what it refuses waits for a command of ours to end.
func (c *sshConn) channel(ctx context.Context, op, request string, payload []byte, refused error) (o *opened, release func(), err error) {
	release, err = c.acquire(ctx, op)
	if err != nil {
		return nil, nil, err
	}
	for alone := 0; ; {
		o, err = c.session(ctx, op, request, payload, refused)
		if err == nil {
			return o, c.counted(request, release), nil
		}
		if _, full := errors.AsType[*ssh.OpenChannelError](err); !full {
			break
		}
		if c.busy() {
			// The slot that is held now is kept for good, and the next one to be free is taken.
			if release, err = c.acquire(ctx, op); err != nil {
				return nil, nil, err
			}
			continue
		}
		if alone++; alone == openAttempts {
			break
		}
		select {
		case <-time.After(time.Duration(alone) * (openPause/2 + rand.N(openPause))):
			continue
		case <-c.closed:
			err = c.newError(op, ErrClosed, nil)
		case <-ctx.Done():
			err = c.newError(op, nil, proc.Ended(ctx))
		}
		break
	}
	release()
	return nil, nil, err
}

// takeTurn waits until a command may be run, and returns what lets the next one. Dropbear, 2022.83 at
// least, now and then closes a channel without an answer, or ends the whole connection, when several
// commands are started together.
func (c *sshConn) takeTurn(ctx context.Context, op string) (done func(), err error) {
	if c.turn == nil {
		return func() {}, nil
	}
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, c.newError(op, nil, proc.Ended(ctx))
	case <-c.closed:
		return nil, c.newError(op, ErrClosed, nil)
	case <-c.dead:
		return nil, c.lost(op, nil)
	}
}

// counted counts a command's channel as live until it is released. The one for files is not
// counted: nobody can wait for its end.
func (c *sshConn) counted(request string, release func()) func() {
	if request != "exec" {
		return release
	}
	c.mu.Lock()
	c.live++
	c.mu.Unlock()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		c.live--
		c.mu.Unlock()
		release()
	})
}

// busy reports whether a command of ours has a channel.
func (c *sshConn) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live > 0
}

// opened is a session channel and its requests.
type opened struct {
	ch   ssh.Channel
	reqs <-chan *ssh.Request
}

// session opens a session channel and makes one request on it, "exec" or "subsystem". refused is
// the kind of error that a refusal of the request is.
func (c *sshConn) session(ctx context.Context, op, request string, payload []byte, refused error) (*opened, error) {
	type result struct {
		o   *opened
		err error
	}
	done := make(chan result, 1)
	abandoned := make(chan struct{})
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		o, err := c.openSession(op, request, payload, refused, abandoned)
		done <- result{o, err}
	}()
	limit := c.timer()
	defer limit.Stop()
	var err error
	select {
	case r := <-done:
		return r.o, r.err
	case <-ctx.Done():
		err = c.newError(op, nil, proc.Ended(ctx))
	case <-c.closed:
		err = c.newError(op, ErrClosed, nil)
	case <-limit.C:
		err = c.newError(op, ErrTimeout, fmt.Errorf("the server did not answer the request for a channel within %v", c.idle))
	}
	close(abandoned)
	if errors.Is(err, ErrTimeout) {
		// A server that does not answer this answers nothing.
		c.giveUp(ErrTimeout, errors.New("the server does not open channels"))
	}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		if r := <-done; r.o != nil {
			r.o.ch.Close()
			ssh.DiscardRequests(r.o.reqs)
		}
	}()
	return nil, err
}

// openSession does what session promises, without its limits.
func (c *sshConn) openSession(op, request string, payload []byte, refused error, abandoned <-chan struct{}) (*opened, error) {
	ch, reqs, err := c.openChannel()
	if err != nil {
		return nil, c.noChannel(op, err)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-abandoned:
			ch.Close()
		case <-stop:
		}
	}()
	c.sendEnv(ch)
	ok, err := ch.SendRequest(request, true, payload)
	if err == nil && ok {
		select {
		case <-abandoned:
			ch.Close()
			go ssh.DiscardRequests(reqs)
			return nil, c.newError(op, ErrClosed, nil)
		default:
			return &opened{ch, reqs}, nil
		}
	}
	ch.Close()
	go ssh.DiscardRequests(reqs)
	if err != nil {
		return nil, c.lost(op, err)
	}
	return nil, c.newError(op, refused, errors.New("the server refused the request"))
}

// openChannel opens a session channel, unless one is ready.
func (c *sshConn) openChannel() (ssh.Channel, <-chan *ssh.Request, error) {
	select {
	case o := <-c.spare:
		return o.ch, o.reqs, nil
	default:
		return c.open()
	}
}

// open opens a session channel.
func (c *sshConn) open() (ch ssh.Channel, reqs <-chan *ssh.Request, err error) {
	err = c.socket.open(func() error {
		ch, reqs, err = c.client.OpenChannel("session", nil)
		return err
	})
	return ch, reqs, err
}

// noChannel says why there is no channel.
func (c *sshConn) noChannel(op string, err error) error {
	no, ok := errors.AsType[*ssh.OpenChannelError](err)
	if !ok {
		e := c.lost(op, err)
		e.early = true
		return e
	}
	e := c.newError(op, ErrRefused, fault.Both(fmt.Errorf("no channel: %s", display.Said(no.Message)), no))
	e.Advice = "other sessions may use up what the server allows (MaxSessions); try again when they ended"
	if c.way == WayControl {
		e.Err = fault.Both(fmt.Errorf("no channel on the connection shared with the user's own ssh sessions: %s", display.Said(no.Message)), no)
		e.Advice = "these sessions use up what the server allows (MaxSessions); end some, or do not share their connection"
	}
	return e
}

// timer returns a timer for the connection's idle limit, one that never fires when there is none.
func (c *sshConn) timer() *time.Timer {
	if c.idle < 0 {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(c.idle)
}

// hangUp closes a channel and waits a moment for the server to confirm, so that it is not counted
// as free before it is. sshd does not confirm while a process holds the command's output; whether a
// silent server is dead is for keepAlive to find out. finished is closed when the channel's requests
// end.
func (c *sshConn) hangUp(ch ssh.Channel, finished <-chan struct{}) {
	c.spawn(func() { ch.Close() }) // can block on a dead link
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
	case <-c.closed:
	}
}
