package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/punnet/punnet/internal/sshconfig"
)

// Options says how Dial reaches a machine. The zero value does what ssh would.
type Options struct {
	ConfigFile    string   // read instead of the user's and the system's configuration (ssh -F)
	IdentityFiles []string // private keys to offer first (ssh -i)
	User          string   // the account (ssh -l); wins over the target's
	Port          int      // the port (ssh -p); wins over the target's
	Options       []string // configuration lines, each Key=Value (ssh -o)

	// Way is WayAuto, WayNative or WaySystem. By WaySystem, ssh itself asks what it has to know, on
	// the terminal or by SSH_ASKPASS, if Ask is not nil.
	Way Way

	// Ask asks a person. Nil means that there is nobody to ask: what would need an answer fails
	// with a typed error instead. It returns when ctx ends, and an error for "not answered". Of
	// several connections it may be called at the same time.
	Ask func(ctx context.Context, p Prompt) (string, error)

	DialTimeout      time.Duration // for the TCP connection; 0 is the configuration's ConnectTimeout, else 10 s
	HandshakeTimeout time.Duration // for the SSH handshake, prompts not counted; 0 is 20 s
	Idle             time.Duration // without a byte while some are owed; 0 is 30 s, below 0 no limit
	Keepalive        time.Duration // between questions whether the server lives; 0 is the configuration's ServerAliveInterval, else 15 s

	// home stands in for the account's home directory in tests.
	home string

	// settings is asked what the configuration says; nil remembers nothing.
	settings *sshconfig.Resolver

	// Trace is told each step of reaching a machine as it is done. It may be called from several
	// goroutines, one after another.
	Trace func(Step)

	// Log receives what is worth knowing when something goes wrong, never a secret. Nil discards.
	Log *slog.Logger
}

func (o Options) handshake() time.Duration { return orDefault(o.HandshakeTimeout, 20*time.Second) }
func (o Options) idle() time.Duration      { return orDefault(o.Idle, 30*time.Second) }

// query is the question what the configuration says about t.
func (o Options) query(t Target) sshconfig.Query {
	q := sshconfig.Query{
		Host: t.Host, User: t.User, Port: t.Port, ConfigFile: o.ConfigFile,
		IdentityFiles: o.IdentityFiles, Options: o.Options, Home: o.home, Log: o.logger(),
	}
	if o.User != "" {
		q.User = o.User
	}
	if o.Port != 0 {
		q.Port = o.Port
	}
	return q
}

func orDefault(d, def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return d
}

func (o Options) logger() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}
