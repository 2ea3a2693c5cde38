package transport

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
)

// Way is how a connection to a machine is made.
type Way string

// The ways. Options.Way takes WayAuto, WayNative and WaySystem; Conn.Way returns the others.
const (
	// WayAuto shares the connection of a live control socket where the configuration names one, and
	// else connects natively, or by the system's ssh where the configuration needs it.
	WayAuto Way = ""
	// WayLocal is this machine: there is no connection.
	WayLocal Way = "local"
	// WayControl is the connection of an OpenSSH master that its user started, shared.
	WayControl Way = "control"
	// WayNative is an SSH connection of this package's own.
	WayNative Way = "native"
	// WaySystem is a master that the user's own ssh program holds for this package: it can use keys on
	// hardware, GSSAPI, and whatever else that program can.
	WaySystem Way = "system"
	// WayGiven is a client that the caller made, see NewConn and Lazy.
	WayGiven Way = "given"
)

// choose settles the way. Where that is the connection of a control socket it returns the Conn.
func (a *attempt) choose(ctx context.Context) (*sshConn, error) {
	why := "as asked for"
	switch a.way = a.o.Way; a.way {
	case WayNative:
	case WaySystem:
		if _, err := systemSSH(); err != nil {
			e := a.fail("resolve", ErrConfig, err)
			e.Advice = "connect natively, which is what happens where no way is asked for"
			return nil, e
		}
	case WayAuto:
		if a.s.ControlPath != "" {
			if c := a.control(ctx); c != nil {
				a.tellWay(WayControl, "its master is live")
				return c, nil
			}
		}
		a.way, why = a.automatic(ctx)
	default:
		return nil, a.fail("resolve", ErrConfig, fmt.Errorf("%q is no way to connect", display.Quote(string(a.o.Way))))
	}
	a.tellWay(a.way, why)
	return nil, nil
}

// automatic chooses between the library and the system's ssh, and says why. What the library cannot
// do is known beforehand: a login that fails first counts with a server.
func (a *attempt) automatic(ctx context.Context) (Way, string) {
	reason := needs(ctx, a.s)
	if reason == "" {
		return WayNative, "nothing in the configuration needs the system's ssh"
	}
	if _, err := systemSSH(); err != nil {
		a.o.logger().Warn("the configuration needs the system's ssh; connecting without what needs it",
			"target", a.t.String(), "needs", reason, "error", err)
		return WayNative, reason + ", but " + err.Error()
	}
	return WaySystem, reason
}

func (a *attempt) tellWay(way Way, why string) {
	a.o.step(Step{Target: a.t, Name: StepWay, Value: fmt.Sprintf("%s: %s", way, why)})
}

// conn makes a Conn of a client that was reached by way.
func (a *attempt) conn(client *ssh.Client, way Way) *sshConn {
	c := newSSHConn(client, a.o)
	c.target, c.addr, c.way = a.t, a.addr, way
	c.shared = way != WayNative
	c.env = sessionEnv(a.s, os.Environ())
	return c
}
