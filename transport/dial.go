package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/sshconfig"
)

const (
	// dialAttempts is how often a connection is made that the server drops before it says who it
	// is, which is what sshd does when too many others are about to log in (MaxStartups).
	dialAttempts = 3
	// dialPause is the mean pause before the second attempt; it grows with each.
	dialPause = 300 * time.Millisecond
	// maxJumps bounds a chain of ProxyJump, which a configuration can make endless.
	maxJumps = 8
)

// Dial reaches t: this machine for the zero Target, else by an SSH connection of its own that does
// what the user's ssh configuration says. The error is an *Error; below it may be a *HostKeyError,
// an *AuthError or a *KeyError.
func Dial(ctx context.Context, t Target, o Options) (Conn, error) {
	if t.Local() {
		return Local(), nil
	}
	c, err := dialSSH(ctx, t, o, nil, 0)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// attempt is one try to connect to one machine.
type attempt struct {
	t      Target
	o      Options
	s      *sshconfig.Settings
	keys   *hostKeys
	addr   string
	jumps  []string // the machines to go through
	named  bool     // jumps were named by the caller, not by the configuration
	depth  int
	way    Way
	under  func() // closes what the connection runs over
	banner bool
}

// dialSSH connects to t. jumps, if not nil, are the machines to go through, in place of what the
// configuration says; depth is how many connections run over this one.
func dialSSH(ctx context.Context, t Target, o Options, jumps []string, depth int) (*sshConn, error) {
	checked := t
	if err := checked.check(); err != nil {
		return nil, &Error{Op: "resolve", Target: t, Kind: ErrConfig, Err: err}
	}
	if depth > maxJumps {
		return nil, &Error{Op: "resolve", Target: t, Kind: ErrConfig, Err: fmt.Errorf("more than %d machines to go through; does ProxyJump lead back?", maxJumps)}
	}
	s, err := sshconfig.Resolve(ctx, o.query(checked))
	if err != nil {
		kind := ErrConfig
		if ctx.Err() != nil {
			kind = nil
		} else if errors.Is(err, context.DeadlineExceeded) {
			kind = ErrTimeout
		}
		return nil, &Error{Op: "resolve", Target: t, Kind: kind, Err: err, Advice: "see what ssh says: ssh -G " + word(checked.Host)}
	}
	a := &attempt{t: t, o: o, s: s, jumps: jumps, named: jumps != nil, depth: depth, addr: net.JoinHostPort(s.Host, strconv.Itoa(s.Port))}
	if jumps == nil {
		a.jumps = s.ProxyJump
	}
	if c, err := a.choose(ctx); c != nil || err != nil {
		return c, err
	}
	for n := 1; ; n++ {
		c, err := a.connect(ctx)
		var dropped *droppedError
		if err == nil || n == dialAttempts || !errors.As(err, &dropped) {
			return c, err
		}
		o.logger().Info("the server dropped the connection before it began; trying again", "target", t.String(), "attempt", n)
		select {
		case <-time.After(time.Duration(n) * (dialPause/2 + rand.N(dialPause))):
		case <-ctx.Done():
			return nil, a.fail("dial", nil, proc.Ended(ctx))
		}
	}
}

func (a *attempt) fail(op string, kind, err error) *Error {
	return &Error{Op: op, Target: a.t, Addr: a.addr, Kind: kind, Err: err}
}

// connect makes the connection and logs in.
func (a *attempt) connect(ctx context.Context) (*sshConn, error) {
	if a.way == WaySystem {
		return a.system(ctx)
	}
	keys, err := newHostKeys(a.s, a.o)
	if err != nil {
		return nil, a.fail("resolve", ErrConfig, err)
	}
	a.keys, a.under = keys, nil
	conn, err := a.reach(ctx)
	if err != nil {
		return nil, err
	}
	client, err := a.handshake(ctx, conn)
	if err != nil {
		conn.Close()
		if a.under != nil {
			a.under()
		}
		return nil, err
	}
	c := a.conn(client, WayNative)
	c.own(a.keepalive(), a.under)
	return c, nil
}

// reach makes the connection that SSH is to run over.
func (a *attempt) reach(ctx context.Context) (net.Conn, error) {
	switch {
	case len(a.jumps) > 0:
		return a.jump(ctx)
	case a.s.ProxyCommand != "":
		return a.proxy()
	}
	d := net.Dialer{Timeout: a.dialTimeout()}
	network := map[string]string{"inet": "tcp4", "inet6": "tcp6"}[a.s.AddressFamily]
	if network == "" {
		network = "tcp"
	}
	if a.s.BindAddress != "" {
		ip := net.ParseIP(a.s.BindAddress)
		if ip == nil {
			return nil, a.fail("resolve", ErrConfig, fmt.Errorf("BindAddress %q is not an address", display.Quote(a.s.BindAddress)))
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	conn, err := d.DialContext(ctx, network, a.addr)
	if err != nil {
		return nil, a.unreachable(ctx, err)
	}
	return conn, nil
}

func (a *attempt) dialTimeout() time.Duration {
	if a.o.DialTimeout != 0 {
		return a.o.DialTimeout
	}
	return orDefault(a.s.ConnectTimeout, 10*time.Second)
}

// unreachable says why no connection came about.
func (a *attempt) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return a.fail("dial", nil, proc.Ended(ctx))
	}
	var dns *net.DNSError
	var timeout net.Error
	e := a.fail("dial", ErrUnreachable, err)
	switch {
	case errors.As(err, &dns):
		e.Err = fmt.Errorf("the name %s was not found (%s)", display.Quote(a.s.Host), display.Said(dns.Err))
		e.Advice = "check the name, or give it an address with a Host block in the ssh configuration"
	case errors.As(err, &timeout) && timeout.Timeout():
		e.Err = &both{fmt.Errorf("no answer within %v", a.dialTimeout()), ErrTimeout}
		e.Advice = "check that the machine is on and that no firewall is in between"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Err = &both{errors.New("connection refused"), err}
		e.Advice = fmt.Sprintf("check that an SSH server listens on port %d", a.s.Port)
	}
	return e
}

// droppedError is a connection that ended before the server had said who it is.
type droppedError struct{ err error }

func (d *droppedError) Error() string {
	return "the server closed the connection before the handshake: " + display.Said(d.err.Error())
}
func (d *droppedError) Unwrap() error { return d.err }

// handshake speaks SSH over conn until the account has let us in. It ends when ctx does and after
// Options.HandshakeTimeout, the time a person takes to answer a question not counted.
func (a *attempt) handshake(ctx context.Context, conn net.Conn) (*ssh.Client, error) {
	clock := newHandshakeClock(a.o.handshake(), func() { conn.Close() })
	defer clock.stop()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ring := newKeyring(ctx, a.s, a.o, clock)
	defer ring.agent.close()
	cfg := a.clientConfig(ctx, ring)
	c, chans, reqs, err := ssh.NewClientConn(conn, a.addr, cfg)
	if err == nil && stop() && clock.stop() {
		a.o.logger().Debug("connected", "target", a.t.String(), "address", a.addr, "user", a.s.User, "server", display.Quote(string(c.ServerVersion())))
		return ssh.NewClient(c, chans, reqs), nil
	}
	if err == nil {
		c.Close()
	}
	return nil, a.refused(ctx, clock, ring, err)
}

// refused says why the handshake failed.
func (a *attempt) refused(ctx context.Context, clock *handshakeClock, ring *keyring, err error) error {
	const op = "handshake"
	switch {
	case ctx.Err() != nil:
		return a.fail(op, nil, proc.Ended(ctx))
	case !clock.stop():
		e := a.fail(op, ErrTimeout, fmt.Errorf("not done within %v", a.o.handshake()))
		e.Advice = "check that an SSH server listens at " + a.addr
		return e
	case a.keys.refused != nil:
		return a.fail(op, ErrHostKey, a.keys.refused)
	case !a.keys.passed && dropped(err):
		e := a.fail(op, ErrLost, &droppedError{err})
		e.Advice = "too many connections at once, or a server that has had enough of this address, end so; wait and try again"
		return e
	case !a.keys.passed:
		return a.fail(op, ErrProtocol, errors.New(display.Said(err.Error())))
	case dropped(err):
		return a.fail(op, ErrLost, fmt.Errorf("the server closed the connection during authentication: %s", display.Said(err.Error())))
	}
	failure := ring.failure(err)
	return &Error{Op: op, Target: a.t, Addr: a.addr, Kind: ErrAuth, Err: failure}
}

// dropped reports whether err is the other side's closing of the connection.
func dropped(err error) bool {
	return isEnd(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// clientConfig says what the handshake may use.
func (a *attempt) clientConfig(ctx context.Context, ring *keyring) *ssh.ClientConfig {
	able, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	cfg := &ssh.ClientConfig{
		Config: ssh.Config{
			Ciphers:      choose(a.s.Ciphers, able.Ciphers, old.Ciphers),
			MACs:         choose(a.s.MACs, able.MACs, old.MACs),
			KeyExchanges: choose(a.s.Kex, able.KeyExchanges, old.KeyExchanges),
		},
		User:              a.s.User,
		HostKeyCallback:   a.keys.check,
		HostKeyAlgorithms: a.keys.algorithms(),
		BannerCallback:    a.showBanner,
	}
	if a.s.PubkeyAuth {
		cfg.Auth = []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) { return ring.signers(ctx) })}
	}
	return cfg
}

// choose returns those of the wanted algorithms that there are, nil for the library's own choice.
func choose(want []string, able ...[]string) []string {
	var names []string
	for _, w := range want {
		if slices.Contains(slices.Concat(able...), w) {
			names = append(names, w)
		}
	}
	return names
}

// showBanner logs the first of what the server has to say before it lets anybody in.
func (a *attempt) showBanner(text string) error {
	if !a.banner {
		a.banner = true
		a.o.logger().Info("banner", "target", a.t.String(), "text", display.Said(text))
	}
	return nil
}
