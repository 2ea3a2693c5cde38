package transport

import (
	"context"

	"github.com/punnet/punnet/internal/sshconfig"
)

// Dialer reaches machines. It remembers for a minute what the user's ssh configuration says about each,
// so that a reconnection and a hop that many machines share ask once. The zero value does what ssh
// would. It may be used by several goroutines, and must not be copied after its first use; a change of
// Options counts for the calls of Dial that follow it.
type Dialer struct {
	Options

	known sshconfig.Resolver
}

// Dial reaches t: this machine for the zero Target, else by an SSH connection of its own that does
// what the user's ssh configuration says. The error is an *Error; below it may be a *HostKeyError,
// an *AuthError or a *KeyError.
func (d *Dialer) Dial(ctx context.Context, t Target) (Conn, error) {
	if t.Local() {
		return Local(), nil
	}
	o := d.Options
	o.settings = &d.known
	c, err := dialSSH(ctx, t, o, nil, 0)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Dial reaches t with a Dialer for this one call; its errors are those of Dialer.Dial.
func Dial(ctx context.Context, t Target, o Options) (Conn, error) {
	d := Dialer{Options: o}
	return d.Dial(ctx, t)
}
