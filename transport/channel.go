package transport

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

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
