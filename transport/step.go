package transport

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sshconfig"
)

// Step is one step of reaching a machine: what was found, or what failed.
type Step struct {
	Target Target        // the machine: the one that was asked for, or one on the way to it
	Name   string        // what was settled: one of the Step constants
	Value  string        // what was found and where it stands, for a person, quoted
	Err    error         // why it failed, or nil
	Took   time.Duration // how long it took; 0 where that says nothing
}

// The names of steps, in the order in which a machine is reached.
const (
	StepConfiguration = "configuration"  // which files said what
	StepSocket        = "control-socket" // whether the master of a ControlPath is shared
	StepWay           = "connection"     // the Way, and why that one
	StepAddress       = "address"        // what was connected to, and how: directly, by a command, through whom
	StepHostKey       = "host-key"       // type, fingerprint, and the file and line that knows it
	StepLogin         = "login"          // the account, and the key or method that opened it
	StepServer        = "server"         // the server's version
)

// step tells whoever listens about a step: Options.Trace, and the log.
func (o Options) step(s Step) {
	log := o.logger().With("target", s.Target.String(), "step", s.Name)
	if s.Took > 0 {
		log = log.With("took", s.Took.Round(100*time.Microsecond))
	}
	if s.Err != nil {
		log.Debug("failed", "error", display.Quote(s.Err.Error()))
	} else {
		log.Debug("done", "found", s.Value)
	}
	if o.Trace != nil {
		o.Trace(s)
	}
}

// configured says what the configuration came to, for a person.
func configured(s *sshconfig.Settings) string {
	v := fmt.Sprintf("host %s, port %d, user %s", display.Said(s.Host), s.Port, display.Said(s.User))
	if len(s.Sources) > 0 {
		v += ", from " + display.Said(strings.Join(s.Sources, ", "))
	}
	return v
}

// tellAddress tells what conn leads to and how, or that none came about.
func (a *attempt) tellAddress(conn net.Conn, err error, took time.Duration) {
	s := Step{Target: a.t, Name: StepAddress, Err: err, Took: took}
	switch {
	case err != nil:
	case len(a.jumps) > 0:
		s.Value = a.addr + ", through " + strings.TrimSpace(a.jumps[len(a.jumps)-1])
	case a.s.ProxyCommand != "":
		s.Value = a.addr + ", by ProxyCommand"
	default:
		s.Value = conn.RemoteAddr().String()
		if s.Value != a.addr {
			s.Value += " for " + a.addr
		}
		s.Value += ", directly"
	}
	s.Value = display.Said(s.Value)
	a.o.step(s)
}

// tellServer tells which server it is that let us in, or that none spoke as far as its host key, or that
// the login came to no end. A host key or a login that was refused has been told already.
func (a *attempt) tellServer(client *ssh.Client, err error, took time.Duration) {
	switch {
	case err == nil:
		a.o.step(Step{Target: a.t, Name: StepServer, Value: display.Said(string(client.ServerVersion())), Took: took})
	case !a.keys.passed && a.keys.refused == nil:
		a.o.step(Step{Target: a.t, Name: StepServer, Err: err, Took: took})
	case a.keys.passed && !errors.Is(err, ErrAuth) && !errors.Is(err, ErrLost):
		a.o.step(Step{Target: a.t, Name: StepLogin, Err: err, Took: took})
	}
}
