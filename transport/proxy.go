package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
)

// jump connects through the last of the machines in a.jumps, itself reached through the others, each
// with its own configuration, its own host key check and its own login.
func (a *attempt) jump(ctx context.Context) (net.Conn, error) {
	last := strings.TrimSpace(a.jumps[len(a.jumps)-1])
	t, err := parseJump(last)
	if err != nil {
		return nil, a.fail("resolve", ErrConfig, fmt.Errorf("ProxyJump %q: %w", display.Said(last), err))
	}
	o := a.o
	// As with ssh, what was said for the target is not meant for the machines on the way.
	o.User, o.Port, o.IdentityFiles, o.Options = "", 0, nil, nil
	before := a.jumps[:len(a.jumps)-1]
	if len(before) == 0 {
		before = nil // the first machine's own configuration says how it is reached
	}
	hop, err := dialSSH(ctx, t, o, before, a.depth+1)
	if errors.Is(err, errJumps) {
		return nil, err // as it is: the machines on the way are the same again and again
	}
	if err != nil {
		return nil, &Error{Op: "jump", Target: a.t, Addr: a.addr, Err: err}
	}
	dialing, cancel := context.WithTimeout(ctx, a.dialTimeout())
	defer cancel()
	var conn net.Conn
	err = hop.socket.open(func() (err error) {
		conn, err = hop.client.DialContext(dialing, "tcp", a.addr)
		return err
	})
	if err == nil {
		a.under = func() { _ = hop.Close() }
		return conn, nil
	}
	hop.Close()
	var no *ssh.OpenChannelError
	e := a.fail("dial", ErrUnreachable, nil)
	e.Advice = fmt.Sprintf("check that an SSH server listens at %s, as %s sees it", a.addr, t)
	switch {
	case ctx.Err() != nil:
		return nil, a.fail("dial", nil, proc.Ended(ctx))
	case errors.As(err, &no) && no.Reason == ssh.Prohibited:
		e.Err = fmt.Errorf("%s does not connect others: %s", t, display.Said(no.Message))
		e.Advice = fmt.Sprintf("have the server at %s allow it (AllowTcpForwarding, PermitOpen), or go through another", t)
	case errors.As(err, &no):
		e.Err = fmt.Errorf("%s could not connect: %s", t, display.Said(no.Message))
	case dialing.Err() != nil:
		e.Err = fault.Both(fmt.Errorf("no answer through %s within %v", t, a.dialTimeout()), ErrTimeout)
	default:
		e.Err = fmt.Errorf("through %s: %s", t, display.Said(err.Error()))
	}
	return nil, e
}

// parseJump reads one machine of ProxyJump: [user@]host[:port], or an ssh URL. Only the URL's user is
// %-encoded. ssh -G puts brackets around every address, also one of IPv4, and around what looks like one.
func parseJump(s string) (Target, error) {
	if strings.HasPrefix(strings.ToLower(s), "ssh://") {
		return ParseTarget(s)
	}
	user, host := "", s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, host = s[:i], s[i+1:]
	}
	t, err := hostPort(user, host)
	if err != nil {
		return t, err
	}
	if inner := strings.TrimSuffix(strings.TrimPrefix(t.Host, "["), "]"); strings.Trim(inner, "0123456789.") == "" {
		t.Host = inner
	}
	return t, t.check()
}

// proxy connects through the input and output of ProxyCommand.
func (a *attempt) proxy() (net.Conn, error) {
	p, err := proxyShell(a.s.ProxyCommand)
	if err != nil {
		return nil, a.fail("dial", ErrUnreachable, fmt.Errorf("ProxyCommand: %w", err))
	}
	conn, err := startProxy(p, a.addr)
	if err != nil {
		return nil, a.fail("dial", ErrUnreachable, fmt.Errorf("ProxyCommand: %w", err))
	}
	a.o.logger().Debug("connecting through a command", "target", a.t.String())
	return conn, nil
}

// lastWords is how long a command that closed its output may take to end.
const lastWords = time.Second

// proxyConn is a command's output and input as a connection.
type proxyConn struct {
	io.Reader
	io.Writer
	p     *exec.Cmd
	words *words
	addr  proxyAddr
	in    io.Closer
	once  sync.Once
}

// startProxy starts p and returns it as a connection to addr.
func startProxy(p *exec.Cmd, addr string) (*proxyConn, error) {
	in, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c := &proxyConn{Reader: out, Writer: in, in: in, p: p, words: &words{kept: proc.FirstBytes{Max: display.SaidBytes}}, addr: proxyAddr(addr)}
	p.Stderr = c.words
	p.WaitDelay = cancelGrace
	if err := p.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// end ends the command: by closing its input, after patience by a signal, and then by force.
func (c *proxyConn) end(patience time.Duration) {
	c.once.Do(func() {
		c.in.Close()
		ask := time.AfterFunc(patience, func() { killProxy(c.p.Process) })
		force := time.AfterFunc(patience+cancelGrace, func() { _ = c.p.Process.Kill() })
		_ = c.p.Wait() // closes the output, and is bounded by WaitDelay once the command is gone
		ask.Stop()
		force.Stop()
	})
}

// Read fails with what the command wrote to its standard error, where it ends.
func (c *proxyConn) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	return n, c.ended(err)
}

// Write fails as Read does: which of the two meets the end first is chance.
func (c *proxyConn) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	return n, c.ended(err)
}

// ended adds the command's last words to an error, or returns nil for nil.
func (c *proxyConn) ended(err error) error {
	if err == nil {
		return nil
	}
	// What it had to say is complete when it is gone.
	c.end(lastWords)
	e := &proxyError{err: err, words: c.words.String()}
	if st := c.p.ProcessState; st != nil && st.Exited() && st.ExitCode() != 0 {
		e.status = st.ExitCode()
	}
	return e
}

// proxyError is the end of a connection through a command.
type proxyError struct {
	err    error
	status int    // with which the command ended by itself, or 0
	words  string // what it said of it
}

func (e *proxyError) Error() string {
	text := "ProxyCommand ended"
	if e.status != 0 {
		text += fmt.Sprintf(" with exit status %d", e.status)
	}
	if e.words != "" {
		text += " and said: " + display.Said(e.words)
	}
	return text
}

func (e *proxyError) Unwrap() error { return e.err }

func (c *proxyConn) Close() error {
	c.end(0)
	return nil
}

func (c *proxyConn) LocalAddr() net.Addr  { return c.addr }
func (c *proxyConn) RemoteAddr() net.Addr { return c.addr }

// Deadlines are not to be had on a pipe of a command; this package ends connections by Close.
func (c *proxyConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *proxyConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *proxyConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// proxyAddr is the address that a command connects to.
type proxyAddr string

func (proxyAddr) Network() string  { return "proxy" }
func (a proxyAddr) String() string { return string(a) }
