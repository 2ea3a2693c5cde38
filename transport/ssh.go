package transport

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/sftp"
)

// closeGrace is how long a server may take to confirm that a channel is closed, with what is
// buffered on a slow link before it. It passes in the background.
const closeGrace = 5 * time.Second

// sshConn is a Conn over one SSH connection.
type sshConn struct {
	client  *ssh.Client
	hostKey string // the fingerprint of the server's, where it was seen
	target  Target
	addr    string
	idle    time.Duration
	grace   time.Duration // for a command that was asked to end
	log     *slog.Logger
	way     Way
	owned   bool
	shared  bool         // over the socket of an OpenSSH master
	socket  *lent        // of a master that is the user's, else nil
	under   func()       // closes what the connection runs over, once it is closed
	ended   func() error // says why the connection ended, if not nil
	env     []string     // NAME=value each, set in every session

	slots  chan struct{} // one token a channel
	spare  chan opened   // channels opened ahead of their use
	turn   chan struct{} // one token a command, where the server takes one at a time; else nil
	closed chan struct{} // Close was called
	dead   chan struct{} // an owned connection ended
	wg     sync.WaitGroup

	filesLock chan struct{} // one token: who opens or replaces files
	files     *sftp.Client

	mu    sync.Mutex
	cause error // why the connection was given up
	over  bool
	live  int // channels for commands that the server opened and has not closed
}

// NewConn returns a Conn over a client that the caller made and goes on owning: Close frees what
// the Conn opened and leaves the client open, no keepalives are sent, and at most MaxChannels of
// the client's channels are used at a time. When the link is dead, calls end at their limits, but
// only the caller, by closing the client, frees what they were waiting for. Of o, Idle and Log
// count.
func NewConn(client *ssh.Client, o Options) Conn {
	host := client.RemoteAddr().String()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	c := newSSHConn(client, o)
	c.target, c.way = Target{User: client.User(), Host: host}, WayGiven
	return c
}

func newSSHConn(client *ssh.Client, o Options) *sshConn {
	c := &sshConn{
		client: client, addr: client.RemoteAddr().String(), idle: o.idle(), grace: cancelGrace, log: o.logger(),
		slots: make(chan struct{}, MaxChannels), spare: make(chan opened, spareChannels), closed: make(chan struct{}), dead: make(chan struct{}),
		filesLock: make(chan struct{}, 1),
	}
	if strings.Contains(c.Server(), "dropbear") {
		c.turn = make(chan struct{}, 1)
	}
	return c
}

// own makes c responsible for the client: it watches it, keeps it alive if k says how, and closes
// it. under is called after the client is closed, if it is not nil.
func (c *sshConn) own(k keepalive, under func()) {
	c.owned, c.under = true, under
	go func() {
		defer close(c.dead)
		err := c.client.Wait()
		select {
		case <-c.closed:
			return
		default:
		}
		if c.ended != nil {
			err = c.ended()
		}
		c.giveUp(ErrLost, err)
	}()
	if k.every > 0 {
		c.wg.Add(1)
		go c.keepAlive(k)
	}
}

// giveUp closes an owned connection and remembers why, unless a reason is known already.
func (c *sshConn) giveUp(kind, err error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = c.newError("connection", kind, err)
	}
	c.mu.Unlock()
	c.disconnect()
}

// disconnect closes an owned connection.
func (c *sshConn) disconnect() {
	if c.owned {
		kept := c.socket.keep()
		_ = c.client.Close()
		holdOpen(kept, c.log)
	}
}

// lost returns why the connection ended, or err, which says that it did, in this package's terms.
func (c *sshConn) lost(op string, err error) *Error {
	select {
	case <-c.closed:
		return c.newError(op, ErrClosed, nil)
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		var e *Error
		if errors.As(c.cause, &e) {
			return c.newError(op, e.Kind, e.Err)
		}
	}
	return c.newError(op, ErrLost, err)
}

func (c *sshConn) newError(op string, kind, err error) *Error {
	return &Error{Op: op, Target: c.target, Addr: c.addr, Kind: kind, Err: err}
}

func (c *sshConn) Way() Way { return c.way }

func (c *sshConn) Server() string { return string(c.client.ServerVersion()) }

func (c *sshConn) Close() error {
	c.mu.Lock()
	first := !c.over
	c.over = true
	c.mu.Unlock()
	if !first {
		c.waitAll()
		return nil
	}
	close(c.closed)
	c.filesLock <- struct{}{}
	files := c.files
	<-c.filesLock
	if files != nil {
		files.Close()
	}
	if c.shared {
		c.leave()
	}
	c.disconnect()
	c.waitAll()
	if c.under != nil {
		c.under()
	}
	return nil
}

// waitAll waits for every goroutine of c. On a borrowed connection whose link is dead nothing here
// can free them, so that the wait has an end.
func (c *sshConn) waitAll() {
	if c.owned {
		c.wg.Wait()
		<-c.dead
		return
	}
	c.waitFor(c.grace + closeGrace)
}

// waitFor waits for the calls under way, but not longer than limit.
func (c *sshConn) waitFor(limit time.Duration) {
	all := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(all)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	}
}

// begin counts a call among those that Close waits for.
func (c *sshConn) begin(op string) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, c.newError(op, ErrClosed, nil)
	}
	c.wg.Add(1)
	return c.wg.Done, nil
}

// spawn runs f in a goroutine that Close waits for, unless Close waits already.
func (c *sshConn) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		go f()
		return
	}
	c.wg.Go(f)
}

// acquire waits for one of the connection's channels and returns what gives it back.
func (c *sshConn) acquire(ctx context.Context, op string) (release func(), err error) {
	// A select alone would now and then take a slot on a Conn that is closed.
	if err := c.usable(ctx, op); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-c.slots }), nil
	case <-ctx.Done():
		return nil, c.newError(op, nil, proc.Ended(ctx))
	case <-c.closed:
		return nil, c.newError(op, ErrClosed, nil)
	case <-c.dead:
		return nil, c.lost(op, nil)
	}
}

func (c *sshConn) usable(ctx context.Context, op string) error {
	select {
	case <-c.closed:
		return c.newError(op, ErrClosed, nil)
	case <-c.dead:
		return c.lost(op, nil)
	case <-ctx.Done():
		return c.newError(op, nil, proc.Ended(ctx))
	default:
		return nil
	}
}
