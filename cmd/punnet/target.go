package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/ask"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
)

// sshFlags are ssh's own, for what its configuration file does not say.
type sshFlags struct {
	configFile    string
	identityFiles []string
	port          int
	user          string
	options       []string
	transport     string
	noExec        bool
}

func (f *sshFlags) register(cmd *cobra.Command) {
	p := cmd.PersistentFlags()
	p.StringVarP(&f.configFile, "config-file", "F", "", "ssh configuration `FILE`, as ssh's -F")
	p.StringArrayVarP(&f.identityFiles, "identity", "i", nil, "private key `FILE` to offer first, as ssh's -i")
	p.IntVarP(&f.port, "port", "p", 0, "`PORT` of the target, as ssh's -p")
	p.StringVarP(&f.user, "login", "l", "", "`USER` on the target, as ssh's -l")
	p.StringArrayVarP(&f.options, "option", "o", nil, "ssh configuration `KEY=VALUE`, as ssh's -o")
	p.StringVar(&f.transport, "transport", "auto", "how to connect: auto, native or system, by your own ssh program")
	p.BoolVar(&f.noExec, "no-exec", false, "use SFTP alone on the target")
}

// way returns what --transport says.
func (f *sshFlags) way() (transport.Way, error) {
	switch f.transport {
	case "auto":
		return transport.WayAuto, nil
	case "native":
		return transport.WayNative, nil
	case "system":
		return transport.WaySystem, nil
	}
	return "", fmt.Errorf("--transport %q: it is one of auto, native and system", f.transport)
}

const targetHelp = "TARGET is an alias in the ssh configuration, [user@]host, ssh://[user@]host[:port], or\nlocal: for this machine."

// parseTarget reads a TARGET argument. A bad one is a mistake in how the command was called.
func parseTarget(arg string) (transport.Target, error) {
	t, err := transport.ParseTarget(arg)
	if err != nil {
		return t, &cliError{code: "usage", exit: exitUsage, err: err, hint: transport.Hint(err)}
	}
	return t, nil
}

// reached is a target that answers.
type reached struct {
	conn  transport.Conn
	cache *remote.Cache
}

// reach connects to a target. Close its conn after use.
func (a *app) reach(ctx context.Context, t transport.Target) (*reached, error) {
	conn, err := a.connect(ctx, t)
	if err != nil {
		return nil, err
	}
	memory := a.remember(t)
	cache, err := remote.Open(conn, remote.Options{
		Dir: a.profile.Cache, NoExec: a.ssh.noExec, Log: a.log,
		Believed: func(d bundle.Digest) bool { return memory[d] },
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &reached{conn: conn, cache: cache}, nil
}

func (a *app) connect(ctx context.Context, t transport.Target) (transport.Conn, error) {
	switch {
	case t.Local():
		return transport.Local(), nil
	case a.dial != nil:
		return a.dial(ctx, t)
	}
	way, err := a.ssh.way()
	if err != nil {
		return nil, err
	}
	return transport.Dial(ctx, t, transport.Options{
		Way: way, ConfigFile: a.ssh.configFile, IdentityFiles: a.ssh.identityFiles,
		User: a.ssh.user, Port: a.ssh.port, Options: a.ssh.options, Log: a.log,
		Ask: a.asks(), Trace: a.trace,
	})
}

// asks returns what asks the person who runs the command, nil where there is nobody to ask. All
// connections share it, so that their questions come one after another.
func (a *app) asks() func(context.Context, transport.Prompt) (string, error) {
	person := a.person()
	if person == nil {
		return nil
	}
	return func(ctx context.Context, p transport.Prompt) (string, error) {
		return person.Ask(ctx, ask.Question(p))
	}
}

// connectionExit returns the exit code for a failure to reach a single target.
func connectionExit(err error) int {
	if errors.Is(err, transport.ErrAuth) || errors.Is(err, transport.ErrHostKey) {
		return exitAccess
	}
	return exitFailed
}

// kindCode is the stable code of one kind of error.
type kindCode struct {
	kind error
	code string
}

// targetCodes are the codes of what goes wrong with a target. The first whose kind errors.Is finds is it.
func targetCodes() []kindCode {
	return []kindCode{
		{transport.ErrHostKey, "host-key"},
		{transport.ErrAuth, "authentication"},
		{transport.ErrConfig, "ssh-config"},
		{transport.ErrUnreachable, "unreachable"},
		{remote.ErrNoAccess, "no-access"},
		{remote.ErrUnsafe, "unsafe-target"},
		{remote.ErrNoSpace, "no-space"},
		{transport.ErrNoSpace, "no-space"},
		{remote.ErrReadOnly, "read-only"},
		{remote.ErrTools, "missing-tool"},
		{remote.ErrReply, "bad-reply"},
		{transport.ErrTimeout, "timeout"},
		{transport.ErrLost, "connection-lost"},
		{transport.ErrRefused, "channel-refused"},
		{transport.ErrProtocol, "protocol"},
	}
}

// targetCode returns the code of what went wrong with a target, or "".
func targetCode(err error) string {
	for _, c := range targetCodes() {
		if errors.Is(err, c.kind) {
			return c.code
		}
	}
	if _, ok := errors.AsType[*remote.DamagedError](err); ok {
		return "damaged"
	}
	return ""
}

// aboutTarget names the target that an error is about, and gives it its exit code.
func aboutTarget(target string, err error) error {
	if _, ok := errors.AsType[*cliError](err); ok {
		return err
	}
	return &cliError{code: errorCode(err), exit: connectionExit(err), err: &targetError{target, err}, hint: transport.Hint(err)}
}

// targetError puts a target before an error's words.
type targetError struct {
	target string
	err    error
}

func (e *targetError) Error() string { return display.Quote(e.target) + ": " + e.err.Error() }
func (e *targetError) Unwrap() error { return e.err }
