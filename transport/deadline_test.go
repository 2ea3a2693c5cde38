package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/punnet/punnet/transport/transporttest"
)

// short are limits that a test can wait for.
func short(o Options) Options {
	o.HandshakeTimeout, o.Idle, o.Keepalive = 400*time.Millisecond, 400*time.Millisecond, 200*time.Millisecond
	return o
}

// within fails the test if f takes longer than limit.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("took %v, at most %v wanted", took, limit)
	}
}

func TestAStalledHandshakeEnds(t *testing.T) {
	for name, f := range map[string]transporttest.Faults{
		"before the banner": {StallSent: -1},
		"in key exchange":   {StallSent: 100},
		"at login":          {StallAuth: true},
		"banners for ever":  {BannerFlood: true},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			s := startServer(t, transporttest.Options{Faults: f})
			o := needSSH(t, s)
			within(t, 10*time.Second, func() {
				_, err := Dial(t.Context(), Target{Host: "user"}, short(o))
				var e *Error
				if !errors.Is(err, ErrTimeout) || !errors.As(err, &e) || e.Op != "handshake" {
					t.Errorf("by its limit: %v", err)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			within(t, 10*time.Second, func() {
				if _, err := Dial(ctx, Target{Host: "user"}, o); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("by its context: %v", err)
				}
			})
		})
	}
}

func TestAChannelThatIsNeverOpenedEnds(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{Faults: transporttest.Faults{StallChannels: true}})
	o := needSSH(t, s)
	o.Idle = 300 * time.Millisecond
	for name, use := range map[string]func(ctx context.Context, c Conn) error{
		"exec":  func(ctx context.Context, c Conn) error { return c.Exec(ctx, Cmd{Line: "true"}) },
		"files": func(ctx context.Context, c Conn) error { _, err := c.Files(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, "user", o)
			within(t, 5*time.Second, func() {
				if err := use(t.Context(), c); !errors.Is(err, ErrTimeout) {
					t.Errorf("by its limit: %v", err)
				}
			})
			c = dial(t, "user", o)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			within(t, 5*time.Second, func() {
				if err := use(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("by its context: %v", err)
				}
			})
		})
	}
}

func TestAnSFTPReplyThatNeverComesEnds(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	o.Idle = 300 * time.Millisecond
	c := dial(t, "user", o)
	fsys := view(t, c)
	for range 2 {
		time.Sleep(2 * o.Idle) // nothing is owed, so nothing is given up
		if _, err := fsys.RealPath("."); err != nil {
			t.Fatalf("after a pause: %v", err)
		}
	}
	s.SetFaults(transporttest.Faults{StallFiles: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	brief, err := c.Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, func() {
		_, err := brief.RealPath(".")
		wantIs(t, "by its context", err, context.DeadlineExceeded)
	})
	within(t, 5*time.Second, func() {
		_, err := fsys.RealPath(".")
		wantIs(t, "by its limit", err, ErrTimeout)
	})
	s.SetFaults(transporttest.Faults{})
	fsys, err = c.Files(t.Context())
	if err != nil {
		t.Fatalf("opening the files again: %v", err)
	}
	if _, err := fsys.RealPath("."); err != nil {
		t.Errorf("on the second channel: %v", err)
	}
}

func TestADeadLinkIsNoticed(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	p := newRelay(t, s.Addr())
	o := needSSH(t, s)
	o.Options = p.options(t)
	o.Keepalive, o.Idle = 200*time.Millisecond, -1
	c := dial(t, "user", o)
	fsys := view(t, c)
	p.freeze()
	within(t, 8*time.Second, func() {
		if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrTimeout) {
			t.Errorf("exec: %v", err)
		}
	})
	_, err := fsys.RealPath(".")
	if !errors.Is(err, ErrLost) && !errors.Is(err, ErrTimeout) {
		t.Errorf("files: %v", err)
	}
	within(t, 5*time.Second, func() { c.Close() })
}

func TestClosingOverADeadLinkDoesNotHang(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	p := newRelay(t, s.Addr())
	o := needSSH(t, s)
	o.Options = p.options(t)
	c := dial(t, "user", o)
	fsys := view(t, c)
	p.freeze()
	go fsys.Lstat("/")
	go c.Exec(t.Context(), Cmd{Line: "true"})
	time.Sleep(50 * time.Millisecond)
	within(t, 8*time.Second, func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestACutConnectionIsSaid(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	p := newRelay(t, s.Addr())
	o := needSSH(t, s)
	o.Options = p.options(t)
	c := dial(t, "user", o)
	fsys := view(t, c)
	time.AfterFunc(100*time.Millisecond, p.cut)
	_, _, err := run(t.Context(), c, "sleep 5", "")
	var e *Error
	if !errors.Is(err, ErrLost) || !errors.As(err, &e) || e.Op != "exec" || e.Target.Host != "user" || !strings.Contains(err.Error(), e.Addr) {
		t.Errorf("exec: %v", err)
	}
	_, err = fsys.Lstat("/")
	wantIs(t, "files", err, ErrLost)
	if _, err := c.Files(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("more files: %v", err)
	}
}

func TestAServerCutAnywhereGivesATypedError(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	for _, at := range []int64{1, 10, 100, 1000, 1500, 2000, 2400, 2800, 3200} {
		for _, f := range []transporttest.Faults{{CutSent: at}, {CutReceived: at}} {
			s.SetFaults(f)
			c, err := Dial(t.Context(), Target{Host: "user"}, short(o))
			if err == nil {
				_, _, err = run(t.Context(), c, "seq 1 1000", "")
				c.Close()
			}
			if err != nil && !errors.Is(err, ErrLost) {
				t.Errorf("%+v: %v", f, err)
			}
		}
	}
}

func TestAConnectionThatIsDroppedAtOnceIsTriedAgain(t *testing.T) {
	s := startServer(t, transporttest.Options{Faults: transporttest.Faults{Drop: dialAttempts - 1}})
	o := needSSH(t, s)
	dial(t, "user", o)
	if n := s.Connections(); n != dialAttempts {
		t.Errorf("%d connections", n)
	}
	s.SetFaults(transporttest.Faults{Drop: 100})
	_, err := Dial(t.Context(), Target{Host: "user"}, o)
	if n := s.Connections(); !errors.Is(err, ErrLost) || n != 2*dialAttempts {
		t.Errorf("%v after %d connections", err, n)
	}
}

func TestAnUnreachableMachineSaysWhy(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	port := freePort(t)
	_, err := Dial(t.Context(), Target{Host: "127.0.0.1", Port: port}, o)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(Hint(err), fmt.Sprint(port)) {
		t.Errorf("refused: %v; hint %q", err, Hint(err))
	}
	_, err = Dial(t.Context(), Target{Host: "nosuchhost.invalid"}, o)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "nosuchhost.invalid") || Hint(err) == "" {
		t.Errorf("no such name: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, Target{Host: "user"}, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestARefusedChannelIsNotALostConnection(t *testing.T) {
	s := startServer(t, transporttest.Options{Faults: transporttest.Faults{RefuseChannels: true}})
	c := borrowed(t, s, "user", Options{})
	if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no channel for you") {
		t.Errorf("exec: %v", err)
	}
	if _, err := c.Files(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("files: %v", err)
	}
}

// relay is a TCP relay that can fall silent or be cut.
type relay struct {
	l     net.Listener
	stop  chan struct{}
	conns chan net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, stop: make(chan struct{}), conns: make(chan net.Conn, 64)}
	t.Cleanup(func() { l.Close(); r.cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			r.conns <- in
			r.conns <- out
			go r.copy(in, out)
			go r.copy(out, in)
		}
	}()
	return r
}

// options has ssh's configuration go through the relay.
func (r *relay) options(t *testing.T) []string {
	return []string{
		fmt.Sprintf("Port=%d", r.l.Addr().(*net.TCPAddr).Port), "StrictHostKeyChecking=accept-new",
		"UserKnownHostsFile=" + tempDir(t) + "/new",
	}
}

func (r *relay) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-r.stop:
			return // the bytes are swallowed and both ends stay open
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

func (r *relay) freeze() { close(r.stop) }

func (r *relay) cut() {
	for {
		select {
		case c := <-r.conns:
			c.Close()
		default:
			return
		}
	}
}
