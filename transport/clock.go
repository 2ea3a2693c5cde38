package transport

import (
	"sync"
	"time"
)

// handshakeClock bounds a handshake and stands still while a person is asked.
type handshakeClock struct {
	expire func()

	mu      sync.Mutex
	timer   *time.Timer
	left    time.Duration
	since   time.Time
	paused  int
	expired bool
	over    bool
}

// newHandshakeClock starts a clock that calls expire after limit.
func newHandshakeClock(limit time.Duration, expire func()) *handshakeClock {
	c := &handshakeClock{expire: expire, left: limit}
	c.start()
	return c
}

func (c *handshakeClock) start() {
	c.since = time.Now()
	c.timer = time.AfterFunc(c.left, func() {
		c.mu.Lock()
		run := !c.over && c.paused == 0
		if run {
			c.over, c.expired = true, true
		}
		c.mu.Unlock()
		if run {
			c.expire()
		}
	})
}

// pause stops the clock until resume is called.
func (c *handshakeClock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused++; c.paused == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.paused--; c.paused == 0 && !c.over {
			c.start()
		}
	}
}

// stop ends the clock and reports whether it never expired.
func (c *handshakeClock) stop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.timer.Stop()
	return !c.expired
}
