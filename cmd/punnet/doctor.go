package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor TARGET",
		Short: "Say what would work on a target, and what mends the rest",
		Long: `Doctor goes through every step of reaching a target and of publishing there: what the ssh
configuration says, which connection is used, which address, host key and key were
accepted, whether the account runs commands or allows SFTP alone, which programs it has,
and whether its cache is safe, can be written to and has room. Beneath what is wrong, or
could be better, stands what mends it. Nothing on the target is changed.

It exits with 0 when a push would work, with 4 when the host key or the login is what
stands in its way, and with 1 when something else does. -v shows the same as it happens.

` + targetHelp,
		Example: `  punnet doctor devbox
  punnet doctor --json ssh://me@10.0.0.7:2222
  punnet doctor --no-exec devbox      # as if the account allowed SFTP alone`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.doctor(cmd.Context(), args[0]) },
	}
}

// check is one thing that doctor looked at. Everything in it is fit to be shown.
type check struct {
	Name   string `json:"name"`
	Target string `json:"via,omitempty"` // the machine on the way that it is about
	OK     bool   `json:"ok"`
	Value  string `json:"value"`
	Hint   string `json:"hint,omitempty"`
}

// diagnosis is what doctor found.
type diagnosis struct {
	SchemaVersion int     `json:"schemaVersion"`
	Target        string  `json:"target"`
	Checks        []check `json:"checks"`
	Class         string  `json:"class"`
	Connection    string  `json:"connection"`

	exit int
}

func (a *app) doctor(ctx context.Context, arg string) error {
	t, err := parseTarget(arg)
	if err != nil {
		return err
	}
	d, err := a.diagnose(ctx, arg, t)
	if err != nil {
		return aboutTarget(arg, err)
	}
	if a.json {
		a.printJSON(d)
	} else {
		a.showDiagnosis(d)
	}
	if d.exit != exitDone {
		return found(d.exit)
	}
	return nil
}

// diagnose goes through the steps. The error is for a signal that ended the whole of it; what --timeout
// ends is a finding like others.
func (a *app) diagnose(ctx context.Context, arg string, t transport.Target) (*diagnosis, error) {
	defer a.progress("looking at " + display.Quote(arg))()
	d := &diagnosis{SchemaVersion: schemaVersion, Target: display.Quote(arg), Checks: []check{}}
	steps := &stepList{target: t}
	a.trace = steps.add
	r, err := a.reach(ctx, t)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	d.Checks = append(d.Checks, steps.checks(err)...)
	if err != nil {
		d.exit = connectionExit(err)
		d.ended(ctx)
		return d, nil
	}
	defer r.conn.Close()
	d.Connection = string(r.conn.Way())
	d.connection(r.conn)
	p, err := r.cache.Probe(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	if err != nil {
		d.add(failing("class", err))
	} else {
		d.Class = p.Class
		d.probed(p, a.ssh.noExec)
	}
	d.ended(ctx)
	for _, c := range d.Checks {
		if !c.OK {
			d.exit = exitFailed
		}
	}
	return d, nil
}

func (d *diagnosis) add(c check) { d.Checks = append(d.Checks, c) }

// ended says that --timeout ended what was being looked at, if it did.
func (d *diagnosis) ended(ctx context.Context) {
	if ctx.Err() != nil {
		d.add(check{Name: "timeout", Value: display.Quote(context.Cause(ctx).Error()), Hint: "give it more time with --timeout"})
	}
}

// connection says how the target is reached, where no step did.
func (d *diagnosis) connection(conn transport.Conn) {
	for _, c := range d.Checks {
		if c.Name == transport.StepWay && c.Target == "" {
			return
		}
	}
	value := d.Connection
	switch conn.Way() {
	case transport.WayLocal:
		value = "none needed: this machine"
	case transport.WayGiven:
		value = "made by the program that runs this"
	}
	d.add(check{Name: transport.StepWay, OK: true, Value: value})
}

// failing is a check that came to an error.
func failing(name string, err error) check {
	return check{Name: name, Value: display.Quote(err.Error()), Hint: display.Quote(transport.Hint(err))}
}

// stepList gathers the steps of reaching a target. A step that is done again, as when a dropped
// connection is tried anew, replaces what it was before.
type stepList struct {
	target transport.Target
	steps  []transport.Step
}

func (l *stepList) add(s transport.Step) {
	for i, had := range l.steps {
		if had.Target == s.Target && had.Name == s.Name {
			l.steps[i] = s
			return
		}
	}
	l.steps = append(l.steps, s)
}

// checks returns what the steps came to. err is why the target was not reached, or nil: then a step
// that failed was one that could be done without.
func (l *stepList) checks(err error) []check {
	var list []check
	told := false
	for _, s := range l.steps {
		c := check{Name: s.Name, OK: true, Value: s.Value}
		if s.Err != nil {
			c = failing(s.Name, s.Err)
			c.OK = err == nil
			told = told || !c.OK
		} else if s.Took > 0 {
			c.Value += fmt.Sprintf(" (%s)", duration(s.Took))
		}
		if s.Target != l.target {
			c.Target = display.Quote(s.Target.String())
		}
		list = append(list, c)
	}
	if err != nil && !told {
		list = append(list, failing(failedStep(err), err))
	}
	return list
}

// failedStep names the step that an error belongs to.
func failedStep(err error) string {
	for _, s := range []struct {
		kind error
		name string
	}{
		{transport.ErrHostKey, transport.StepHostKey}, {transport.ErrAuth, transport.StepLogin},
		{transport.ErrConfig, transport.StepConfiguration}, {transport.ErrUnreachable, transport.StepAddress},
	} {
		if errors.Is(err, s.kind) {
			return s.name
		}
	}
	return transport.StepWay
}

// showDiagnosis prints a line a check, and what mends it beneath.
func (a *app) showDiagnosis(d *diagnosis) {
	width := 0
	for _, c := range d.Checks {
		width = max(width, utf8.RuneCountInString(c.Name))
	}
	for _, c := range d.Checks {
		mark := a.paint(a.stdout, green, "ok  ")
		switch {
		case !c.OK:
			mark = a.paint(a.stdout, red, "FAIL")
		case c.Hint != "":
			mark = a.paint(a.stdout, yellow, "warn")
		}
		value := c.Value
		if c.Target != "" {
			value = c.Target + ": " + value
		}
		line := fmt.Sprintf("%s  %s%s  %s", mark, c.Name, strings.Repeat(" ", width-utf8.RuneCountInString(c.Name)), value)
		fmt.Fprintln(a.stdout, strings.TrimRight(line, " "))
		if c.Hint != "" {
			fmt.Fprintf(a.stdout, "      hint: %s\n", c.Hint)
		}
	}
}
