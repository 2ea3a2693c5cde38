package transport

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"
)

// Options says how Dial reaches a machine. The zero value does what ssh would.
type Options struct {
	ConfigFile    string   // read instead of the user's and the system's configuration (ssh -F)
	IdentityFiles []string // private keys to offer first (ssh -i)
	User          string   // the account (ssh -l); wins over the target's
	Port          int      // the port (ssh -p); wins over the target's
	Options       []string // configuration lines, each Key=Value (ssh -o)

	// Ask asks a person. Nil means that there is nobody to ask: what would need an answer fails
	// with a typed error instead.
	Ask func(ctx context.Context, p Prompt) (string, error)

	DialTimeout      time.Duration // for the TCP connection; 0 is the configuration's ConnectTimeout, else 10 s
	HandshakeTimeout time.Duration // for the SSH handshake, prompts not counted; 0 is 20 s
	Idle             time.Duration // without a byte while some are owed; 0 is 30 s, below 0 no limit
	Keepalive        time.Duration // between questions whether the server lives; 0 is 15 s

	// home stands in for the account's home directory in tests.
	home string

	// Log receives what is worth knowing when something goes wrong, never a secret. Nil discards.
	Log *slog.Logger
}

// Prompt is one question to a person.
type Prompt struct {
	Text   string // the question, fit to be shown
	Secret bool   // the answer must not be shown while it is typed
}

func (o Options) handshake() time.Duration { return orDefault(o.HandshakeTimeout, 20*time.Second) }
func (o Options) idle() time.Duration      { return orDefault(o.Idle, 30*time.Second) }
func (o Options) keepalive() time.Duration { return orDefault(o.Keepalive, 15*time.Second) }

// homeDir is the home directory as ssh understands it: the account's, whatever HOME says.
func (o Options) homeDir() (string, error) {
	if o.home != "" {
		return o.home, nil
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		return u.HomeDir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the home directory: %w", err)
	}
	return home, nil
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
