package transport

import (
	"time"

	"github.com/punnet/punnet/internal/display"
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
	StepConfiguration = "configuration" // which files said what
	StepSocket        = "control-socket"
	StepWay           = "connection" // the Way, and why that one
	StepAddress       = "address"    // what was connected to, and how: directly, by a command, through whom
	StepHostKey       = "host-key"   // type, fingerprint, and the file and line that knows it
	StepLogin         = "login"      // the account, and the key or method that opened it
	StepServer        = "server"     // the server's version
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
