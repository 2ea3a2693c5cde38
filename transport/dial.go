package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
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

// errJumps is a ProxyJump that has no end.
var errJumps = fmt.Errorf("more than %d machines to go through; does ProxyJump lead back?", maxJumps)

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
	heard  *greeting
	banner bool
}

// dialSSH connects to t. jumps, if not nil, are the machines to go through, in place of what the
// configuration says; depth is how many connections run over this one.
func dialSSH(ctx context.Context, t Target, o Options, jumps []string, depth int) (*sshConn, error) {
	started := time.Now()
	checked := t
	if err := checked.check(); err != nil {
		return nil, &Error{Op: "resolve", Target: t, Kind: ErrConfig, Err: err}
	}
	if depth > maxJumps {
		return nil, &Error{Op: "resolve", Target: t, Kind: ErrConfig, Err: errJumps, Advice: "see where it leads to: " + sshLine("ssh -G", o.query(checked))}
	}
	s, err := o.settings.Resolve(ctx, o.query(checked))
	if err != nil {
		kind := ErrConfig
		if ctx.Err() != nil {
			kind = nil
		} else if errors.Is(err, context.DeadlineExceeded) {
			kind = ErrTimeout
		}
		err = &Error{Op: "resolve", Target: t, Kind: kind, Err: err, Advice: "see what ssh says: " + sshLine("ssh -G", o.query(checked))}
		o.step(Step{Target: t, Name: StepConfiguration, Err: err, Took: time.Since(started)})
		return nil, err
	}
	o.step(Step{Target: t, Name: StepConfiguration, Value: configured(s), Took: time.Since(started)})
	a := &attempt{t: t, o: o, s: s, jumps: jumps, named: jumps != nil, depth: depth, addr: net.JoinHostPort(s.Host, strconv.Itoa(s.Port))}
	if jumps == nil {
		a.jumps = s.ProxyJump
	}
	if c, err := a.choose(ctx); c != nil || err != nil {
		return c, err
	}
	for n := 1; ; n++ {
		c, err := a.connect(ctx)
		dropped, ok := errors.AsType[*droppedError](err)
		if !ok || n == dialAttempts || dropped.penalised() {
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
	if errors.Is(err, ErrHostKey) {
		err = a.fail("resolve", ErrHostKey, err)
		a.o.step(Step{Target: a.t, Name: StepHostKey, Err: err})
		return nil, err
	} else if err != nil {
		return nil, a.fail("resolve", ErrConfig, err)
	}
	if a.named {
		keys.through = a.jumps
	}
	a.keys, a.under = keys, nil
	started := time.Now()
	conn, err := a.reach(ctx)
	a.tellAddress(conn, err, time.Since(started))
	if err != nil {
		return nil, err
	}
	started = time.Now()
	client, err := a.handshake(ctx, conn)
	a.tellServer(client, err, time.Since(started))
	if err != nil {
		conn.Close()
		if a.under != nil {
			a.under()
		}
		return nil, err
	}
	c := a.conn(client, WayNative)
	c.hostKey = a.keys.machine()
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
	return a.direct(ctx)
}

// handshake speaks SSH over conn until the account has let us in. It ends when ctx does and after
// Options.HandshakeTimeout, the time a person takes to answer a question not counted.
func (a *attempt) handshake(ctx context.Context, conn net.Conn) (*ssh.Client, error) {
	clock := newHandshakeClock(a.o.handshake(), func() { conn.Close() })
	a.keys.begin(ctx, a.t, clock)
	defer clock.stop()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	login := newLogin(ctx, a.s, a.o, clock)
	defer login.close()
	begun := time.Now()
	a.heard = &greeting{Conn: conn}
	c, chans, reqs, err := ssh.NewClientConn(login.watch(a.heard), a.addr, a.clientConfig(login))
	if err == nil && stop() && clock.stop() {
		a.o.step(Step{Target: a.t, Name: StepLogin, Value: display.Said(a.s.User) + ", by " + login.how(), Took: time.Since(begun)})
		a.o.logger().Debug("connected", "target", a.t.String(), "address", a.addr, "user", a.s.User, "server", display.Quote(string(c.ServerVersion())))
		return ssh.NewClient(c, chans, reqs), nil
	}
	if err == nil {
		c.Close()
	}
	return nil, a.refused(ctx, clock, login, err)
}

// refused says why the handshake failed.
func (a *attempt) refused(ctx context.Context, clock *handshakeClock, login *login, err error) error {
	const op = "handshake"
	switch {
	case ctx.Err() != nil:
		return a.fail(op, nil, proc.Ended(ctx))
	case !clock.stop():
		e := a.fail(op, ErrTimeout, fmt.Errorf("not done within %v%s", a.o.handshake(), a.saying()))
		e.Advice = "check that an SSH server listens at " + a.addr
		return e
	case errors.Is(err, errOld):
		e := a.fail(op, ErrProtocol, errOld)
		e.Advice = "it is too old to be trusted with anything; have the SSH server there replaced"
		return e
	case a.keys.refused != nil:
		return a.fail(op, ErrHostKey, a.keys.refused)
	case !a.keys.passed && dropped(err):
		if proxy, ok := errors.AsType[*proxyError](err); ok && proxy.status != 0 {
			e := a.fail(op, ErrLost, fault.Both(fmt.Errorf("%s%s", proxy.Error(), a.saying()), proxy))
			e.Advice = "see what is wrong with the ProxyCommand, with: " + sshLine("ssh -v", a.o.query(a.t))
			return e
		}
		d := &droppedError{a.heard.words(), a.addr, err}
		e := a.fail(op, ErrLost, d)
		e.Advice = d.advice()
		return e
	case !a.keys.passed:
		e := a.fail(op, ErrProtocol, fmt.Errorf("%s%s", display.Said(err.Error()), a.saying()))
		e.Advice = "check that it is an SSH server that listens at " + a.addr
		if strings.Contains(err.Error(), "no common algorithm") {
			e.Advice = "the two sides share no algorithm; try --transport system, or allow one that the server offers in the ssh configuration " +
				"(KexAlgorithms, HostKeyAlgorithms, Ciphers, MACs)"
		}
		return e
	case dropped(err):
		e := a.fail(op, ErrLost, fmt.Errorf("the server closed the connection during authentication: %s", display.Said(err.Error())))
		if login.ask.asked {
			e.Advice = serverWaiting
		}
		a.o.step(Step{Target: a.t, Name: StepLogin, Err: e})
		return e
	}
	e := a.fail(op, ErrAuth, login.failure(err))
	a.o.step(Step{Target: a.t, Name: StepLogin, Err: e})
	return e
}

// saying returns what the server said in place of its version, to be put behind an error.
func (a *attempt) saying() string {
	if words := a.heard.words(); words != "" {
		return "; the server said: " + display.Said(words)
	}
	return ""
}

// dropped reports whether err is the other side's closing of the connection.
func dropped(err error) bool {
	return fault.IsEnd(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
}

// clientConfig says what the handshake may use.
func (a *attempt) clientConfig(login *login) *ssh.ClientConfig {
	able, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	return &ssh.ClientConfig{
		Config: ssh.Config{
			Ciphers:      choose(a.s.Ciphers, able.Ciphers, old.Ciphers),
			MACs:         choose(a.s.MACs, able.MACs, old.MACs),
			KeyExchanges: choose(a.s.Kex, able.KeyExchanges, old.KeyExchanges),
		},
		User:              a.s.User,
		HostKeyCallback:   a.keys.check,
		HostKeyAlgorithms: a.keys.algorithms(),
		BannerCallback:    a.showBanner,
		AuthCallback:      login.next,
	}
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
