package transport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

const (
	// controlTimeout bounds the answer of a master, a process on this machine.
	controlTimeout = 2 * time.Second
	// spareTimeout bounds the first channels over a user's master, whose link may be long dead.
	spareTimeout = 5 * time.Second
	// spareChannels is how many channels are opened on a user's master before it is settled on: one
	// for commands and one for files.
	spareChannels = 2
	// leaveTimeout bounds the closing of what is still open on a master's connection.
	leaveTimeout = time.Second
)

// control shares the connection of the master that the configuration's ControlPath names. It
// returns nil where there is none that can be used.
func (a *attempt) control(ctx context.Context) *sshConn {
	start, socket := time.Now(), a.s.ControlPath
	c, err := a.share(ctx, socket)
	found := Step{Target: a.t, Name: StepSocket, Value: display.Quote(socket) + ": live", Took: time.Since(start)}
	if err != nil {
		found.Value = display.Quote(socket) + ": not used: " + display.Said(err.Error())
		if !errors.Is(err, fs.ErrNotExist) {
			a.o.logger().Info("the control socket is not used", "target", a.t.String(), "socket", display.Quote(socket), "error", display.Said(err.Error()))
		}
	}
	a.o.step(found)
	return c
}

// share connects to the master at socket and makes sure that it has channels to give.
func (a *attempt) share(ctx context.Context, socket string) (*sshConn, error) {
	client, conn, err := dialControl(ctx, socket)
	if err != nil {
		return nil, err
	}
	c := a.conn(client, WayControl)
	c.socket = &lent{conn: conn}
	c.ended = func() error { return fmt.Errorf("the ssh master at %s ended", display.Quote(socket)) }
	c.own(keepalive{}, nil)
	if a.depth > 0 {
		return c, nil // a machine on the way carries a connection and no sessions
	}
	if err := c.reserve(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// dialControl speaks to the OpenSSH master at socket, which has to be this user's.
func dialControl(ctx context.Context, socket string) (*ssh.Client, *net.UnixConn, error) {
	if err := ownSocket(socket); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, controlTimeout, fmt.Errorf("no answer within %v", controlTimeout))
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, err
	}
	conn := c.(*net.UnixConn)
	if err := ownPeer(conn); err != nil {
		conn.Close()
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	mux, chans, reqs, err := ssh.NewControlClientConn(conn)
	if err == nil && stop() {
		return ssh.NewClient(mux, chans, reqs), conn, nil
	}
	conn.Close()
	if ctx.Err() != nil {
		return nil, nil, proc.Ended(ctx)
	}
	return nil, nil, err
}

// ownSocket reports why name is not a socket that this user made. Whoever owns the socket sees and
// answers everything.
func ownSocket(name string) error {
	fi, err := os.Lstat(name)
	if err != nil {
		return fault.Bare(err)
	}
	uid, _, known := localOwner(fi)
	switch {
	case fi.Mode().Type() != fs.ModeSocket:
		return errors.New("it is not a socket")
	case !known || int(uid) != os.Getuid():
		return errors.New("it belongs to another user")
	}
	return nil
}

// reserve opens the connection's first channels, so that a master whose link is dead or whose
// sessions use up what the server allows is found out while there is another way. It costs nothing:
// the first uses take these channels. After an error, the channels that did open are closed by Close.
func (c *sshConn) reserve(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, spareTimeout, fmt.Errorf("its connection opened no channel within %v", spareTimeout))
	defer cancel()
	results := make(chan error, spareChannels)
	for range spareChannels {
		c.wg.Add(1)
		go func() {
			defer c.wg.Done()
			ch, reqs, err := c.open()
			if err == nil {
				c.spare <- opened{ch, reqs}
			}
			results <- err
		}()
	}
	var failed error
	for range spareChannels {
		select {
		case err := <-results:
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return proc.Ended(ctx)
		}
	}
	var no *ssh.OpenChannelError
	if errors.As(failed, &no) {
		return fmt.Errorf("the sessions on it use up what the server allows (MaxSessions): %s", display.Said(no.Message))
	}
	return failed
}

// lent is the socket of a master that is the user's. A master ends, with every session on it, when a
// socket is closed over which a channel was asked for that never came to be: OpenSSH (9.2 and others)
// keeps such a channel, and dies of not knowing its number when it is to close it. So it has to stay
// open then. The nil lent stands for any other connection.
type lent struct {
	conn *net.UnixConn
	owed atomic.Int32 // channels asked for that are not open or were not
	once sync.Once
}

// open counts what opens a channel.
func (l *lent) open(open func() error) error {
	if l == nil {
		return open()
	}
	l.owed.Add(1)
	err := open()
	if err == nil {
		l.owed.Add(-1)
	}
	return err
}

// keep is called before the socket is closed. Where the master would die of that, it returns another
// descriptor of the socket, for holdOpen, and nil otherwise.
func (l *lent) keep() (kept *os.File) {
	if l == nil || l.owed.Load() == 0 {
		return nil
	}
	l.once.Do(func() { kept = duplicate(l.conn) })
	return kept
}

// holdOpen leaves a socket to a process that holds it until its other end, a master, is closed.
func holdOpen(kept *os.File, log *slog.Logger) {
	if kept == nil {
		return
	}
	defer kept.Close()
	pid, err := startHolder(kept)
	if err != nil {
		log.Warn("the ssh master may end, for a channel was refused on its connection", "error", err)
		return
	}
	log.Info("a process holds the control socket, without which the ssh master would end: a channel was refused on it", "pid", pid)
}

// leave closes the channels that are still open on a master's connection, which would live on there.
func (c *sshConn) leave() {
	c.waitFor(leaveTimeout)
	for {
		select {
		case o := <-c.spare:
			_ = o.ch.Close()
			go ssh.DiscardRequests(o.reqs)
		default:
			return
		}
	}
}
