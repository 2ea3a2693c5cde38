package transport

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/sshconfig"
)

// answerTime is how long the system's ssh may take longer where it can ask a person: when it asks,
// and for how long, is not to be seen from here.
const answerTime = 2 * time.Minute

// system has the system's ssh make and hold the connection, and shares it by a socket of its own.
func (a *attempt) system(ctx context.Context) (*sshConn, error) {
	ssh, err := systemSSH()
	if err != nil {
		return nil, a.fail("dial", ErrConfig, err)
	}
	limit := a.systemLimit()
	waiting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the system's ssh was not done within %v", limit))
	defer cancel()
	m, err := startMaster(ssh, a.masterArgs, a.asks())
	if err != nil {
		return nil, a.fail("dial", nil, fmt.Errorf("starting ssh: %w", err))
	}
	if err := m.await(waiting); err != nil {
		text := m.stop()
		return nil, a.masterError(ctx, waiting, err, text)
	}
	client, _, err := dialControl(waiting, m.socket)
	if err != nil {
		text := m.stop()
		return nil, a.masterError(ctx, waiting, err, text)
	}
	c := a.conn(client, WaySystem)
	c.ended = func() error {
		if text := m.lastWords(); text != "" {
			return fmt.Errorf("the system's ssh ended: %s", display.Said(text))
		}
		return errors.New("the system's ssh ended")
	}
	c.own(keepalive{}, func() { m.stop() })
	return c, nil
}

// asks reports whether ssh may ask a person.
func (a *attempt) asks() bool { return a.o.Ask != nil && !a.s.BatchMode }

// systemLimit is how long ssh may take for all the machines on the way.
func (a *attempt) systemLimit() time.Duration {
	limit := (a.dialTimeout() + a.o.handshake()) * time.Duration(1+len(a.jumps))
	if a.asks() {
		limit += answerTime
	}
	return limit
}

// masterArgs are the arguments that make the user's ssh a master and nothing else. What stands
// first wins, so that neither the configuration nor Options.Options gets in the way: no session,
// terminal, command or forwarding of any kind, and no going into the background.
func (a *attempt) masterArgs(socket, log string) []string {
	args := []string{"-N", "-T", "-x", "-a", "-S", socket, "-E", log}
	opts := []string{
		"ControlMaster=yes", "ControlPersist=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "RemoteCommand=none",
		"Tunnel=no", "LogLevel=ERROR",
		// "no" has become "accept-new": a changed key is refused here too.
		"StrictHostKeyChecking=" + a.s.StrictHostKey,
		"ConnectTimeout=" + seconds(a.dialTimeout()),
	}
	if k := a.keepalive(); k.every > 0 {
		opts = append(opts, "ServerAliveInterval="+seconds(k.every), fmt.Sprint("ServerAliveCountMax=", max(1, int(k.patience/k.every))))
	}
	if a.s.ForkAfterAuth {
		opts = append(opts, "ForkAfterAuthentication=no") // unknown to an ssh before 8.7
	}
	if !a.asks() {
		opts = append(opts, "BatchMode=yes")
	}
	if a.named {
		opts = append(opts, "ProxyJump="+strings.Join(a.jumps, ","))
	}
	for _, kv := range opts {
		args = append(args, "-o", kv)
	}
	return append(args, a.o.query(a.t).Args()...)
}

// seconds is d as ssh counts it: whole seconds, at least one.
func seconds(d time.Duration) string { return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second))) }

// masterError says why ssh did not get through. text is what it wrote.
func (a *attempt) masterError(ctx, waiting context.Context, err error, text string) error {
	switch {
	case ctx.Err() != nil:
		return a.fail("dial", nil, proc.Ended(ctx))
	case waiting.Err() != nil:
		e := a.fail("dial", ErrTimeout, context.Cause(waiting))
		e.Advice = "see what it waits for with: " + sshLine("ssh", a.o.query(a.t))
		return e
	case text == "":
		e := a.fail("dial", nil, fmt.Errorf("the system's ssh said nothing: %w", err))
		e.Advice = "see how far it comes with: " + sshLine("ssh -v", a.o.query(a.t))
		return e
	}
	return a.sshError(text)
}

// sshError makes a typed error of what ssh wrote before it gave up.
func (a *attempt) sshError(text string) error {
	advice, kind := classify(text)
	e := a.fail("dial", kind, fmt.Errorf("ssh said: %s", display.Said(withoutFrames(text))))
	e.Advice = advice
	switch kind {
	case ErrHostKey:
		if changed := changedKey(text); changed != nil {
			changed.Addr = a.addr
			e.Err = changed
		} else {
			e.Advice = "connect once by hand and compare the fingerprint that ssh shows with the machine's own: " + sshLine("ssh", a.o.query(a.t))
		}
	case ErrLost:
		if strings.Contains(text, "kex_exchange_identification") {
			e.Err = fault.Both(e.Err, &droppedError{addr: a.addr, err: errors.New("in the key exchange")})
		}
	}
	return e
}

// sshLine is a command of ssh's with what is asked for in q, for a person.
func sshLine(command string, q sshconfig.Query) string {
	for _, arg := range q.Args() {
		command += " " + word(arg)
	}
	return command
}

// classify finds the kind of failure in what ssh wrote. Its words are English in every locale, but
// for the system's after them. Of several, what is first here counts: a machine on the way fails
// first, and the target's "Connection closed" follows.
func classify(text string) (advice string, kind error) {
	for _, c := range []struct {
		words  string
		kind   error
		advice string
	}{
		{"Host key verification failed", ErrHostKey, ""},
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", ErrHostKey, ""},
		{"REVOKED HOST KEY", ErrHostKey, ""},
		{"Permission denied (", ErrAuth, "check that the account knows the key, and that it can be unlocked without a terminal: ssh-add"},
		{"Too many authentication failures", ErrAuth, "name the one key that is right with IdentityFile and IdentitiesOnly"},
		{"No more authentication methods", ErrAuth, ""},
		{"Bad configuration option", ErrConfig, "mend the line that is named"},
		{"bad configuration option", ErrConfig, "mend the line that is named"},
		{"Bad owner or permissions", ErrConfig, "take the rights to write away from others"},
		{"Could not resolve hostname", ErrUnreachable, "check the name, or give it an address with a Host block in the ssh configuration"},
		{"timed out during banner exchange", ErrTimeout, "check that an SSH server listens there"},
		{"connect to host", ErrUnreachable, "check that the machine is on, that an SSH server listens there, and that no firewall is in between"},
		{"open failed: connect failed", ErrUnreachable, "the machine on the way cannot reach the target"},
		{"Unable to negotiate", ErrProtocol, "the two sides share no algorithm; the configuration can add one"},
		{"Protocol major versions differ", ErrProtocol, "it is too old to be trusted with anything; have the SSH server there replaced"},
		{"No SSH version received", ErrProtocol, "check that it is an SSH server that listens there"},
		{"kex_exchange_identification", ErrLost, "too many connections at once, or a server that has had enough of this address, end so; wait and try again"},
		{"Connection closed", ErrLost, ""},
		{"Connection reset", ErrLost, ""},
	} {
		if strings.Contains(text, c.words) {
			return c.advice, c.kind
		}
	}
	return "", nil
}

// changedKey reads ssh's warning about a changed or revoked key, nil where it is none.
func changedKey(text string) *HostKeyError {
	e := &HostKeyError{
		Changed: strings.Contains(text, "REMOTE HOST IDENTIFICATION HAS CHANGED"),
		Revoked: strings.Contains(text, "REVOKED HOST KEY"),
	}
	if !e.Changed && !e.Revoked {
		return nil
	}
	file := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n.")
		if rest, ok := strings.CutPrefix(line, "The fingerprint for the "); ok {
			e.KeyType, _, _ = strings.Cut(rest, " ")
			e.KeyType = display.Said(e.KeyType)
		}
		if strings.HasPrefix(line, "SHA256:") {
			e.Fingerprint = display.Said(line)
		}
		if rest, ok := strings.CutPrefix(line, "Host key for "); ok && e.Host == "" {
			e.Host, _, _ = strings.Cut(rest, " ")
			e.Host = display.Said(e.Host)
		}
		if _, at, ok := strings.Cut(line, " key in "); ok && strings.HasPrefix(line, "Offending ") {
			e.Known = append(e.Known, at)
			file = at[:max(0, strings.LastIndexByte(at, ':'))]
		}
	}
	e.Record = fmt.Sprintf("ssh-keygen -R %s -f %s", word(e.Host), word(file))
	return e
}

// withoutFrames drops the lines that ssh draws around its warnings.
func withoutFrames(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "@") != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
