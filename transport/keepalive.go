package transport

import (
	"fmt"
	"time"
)

// keepalive says how a connection's life is asked after. The zero value never asks.
type keepalive struct {
	every    time.Duration
	patience time.Duration // without an answer, until the connection is given up
}

// keepAlive asks the server for an answer again and again and gives the connection up where there
// is none.
func (c *sshConn) keepAlive(k keepalive) {
	defer c.wg.Done()
	tick := time.NewTicker(k.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.dead:
			return
		}
		answered := make(chan struct{})
		c.wg.Add(1)
		go func() {
			defer c.wg.Done()
			// Whatever the answer is, it is one.
			_, _, _ = c.client.SendRequest("keepalive@openssh.com", true, nil)
			close(answered)
		}()
		limit := time.NewTimer(k.patience)
		select {
		case <-answered:
		case <-limit.C:
			c.giveUp(ErrTimeout, fmt.Errorf("no answer to a keepalive in %v", k.patience))
		case <-c.dead:
		}
		limit.Stop()
	}
}

// keepalive says how often the server is asked whether it lives: as the caller says, else as the
// configuration does, else every 15 seconds.
func (a *attempt) keepalive() keepalive {
	switch {
	case a.o.Keepalive != 0:
		return keepalive{a.o.Keepalive, 2 * a.o.Keepalive}
	case a.s.AliveInterval > 0 && a.s.AliveCountMax > 0:
		return keepalive{a.s.AliveInterval, time.Duration(a.s.AliveCountMax) * a.s.AliveInterval}
	}
	return keepalive{15 * time.Second, 30 * time.Second}
}
