package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/sshconfig"
	"github.com/punnet/punnet/transport/transporttest"
)

func addrs(list ...string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, a := range list {
		all = append(all, netip.MustParseAddrPort(a))
	}
	return all
}

func TestEveryAddressOfAMachineIsTried(t *testing.T) {
	noLeaks(t)
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		dead []string // they never answer
		live string
		took time.Duration // more than it may take
	}{
		"the first is refused": {nil, "192.0.2.2:22", nextAddress},
		"the first is dead":    {[]string{"192.0.2.1:22"}, "192.0.2.2:22", 10 * time.Second},
		"the first answers":    {[]string{"192.0.2.2:22", "192.0.2.3:22"}, "192.0.2.1:22", nextAddress},
		"all but the last":     {[]string{"192.0.2.1:22", "192.0.2.2:22"}, "192.0.2.3:22", 10 * time.Second},
	} {
		var mu sync.Mutex
		var tried []string
		start := time.Now()
		conn, err := dialAny(t.Context(), addrs("192.0.2.1:22", "192.0.2.2:22", "192.0.2.3:22"), func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			mu.Lock()
			tried = append(tried, to.String())
			mu.Unlock()
			switch {
			case to.String() == c.live:
				a, _ := net.Pipe()
				return a, nil
			case slices.Contains(c.dead, to.String()):
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, refused
		})
		if err != nil || tried[len(tried)-1] != c.live || time.Since(start) > c.took {
			t.Errorf("%s: %v, tried %q, took %v", name, err, tried, time.Since(start))
		}
		if conn != nil {
			conn.Close()
		}
	}
}

func TestTheSecondWhoAnswersIsHungUpOn(t *testing.T) {
	noLeaks(t)
	a, b := net.Pipe()
	late := make(chan struct{})
	conn, err := dialAny(t.Context(), addrs("192.0.2.1:22", "192.0.2.2:22"), func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
		if to == addrs("192.0.2.1:22")[0] {
			<-late
			return a, nil
		}
		defer close(late)
		c, _ := net.Pipe()
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	b.SetReadDeadline(time.Now().Add(5 * time.Second))
	// One of the two was returned and closed here; the other must be closed as well.
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other connection is open: %v", err)
	}
}

func TestTheErrorSaysWhatBecameOfEachAddress(t *testing.T) {
	a := &attempt{t: Target{Host: "dev"}, s: &sshconfig.Settings{Host: "dev.example", Port: 22, ConnectTimeout: time.Second}, addr: "dev.example:22"}
	timeout := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	err := a.unreachable(t.Context(), &triedError{addrs("192.0.2.1:22", "[2001:db8::1]:22", "192.0.2.3:22"),
		[]error{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, timeout, &net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}}})
	for _, word := range []string{"192.0.2.1:22: connection refused", "[2001:db8::1]:22: no answer", "192.0.2.3:22: no route to host", "unreachable"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
	}
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, syscall.ECONNREFUSED) || Hint(err) == "" {
		t.Errorf("got %v", err)
	}
	one := a.unreachable(t.Context(), &triedError{addrs("192.0.2.1:22"), []error{timeout}})
	if !errors.Is(one, ErrTimeout) || !strings.Contains(one.Error(), "no answer within 1s") {
		t.Errorf("got %v", one)
	}
}

func TestANameWithADeadAddressIsReached(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	// It has ::1 too on most machines, where nobody listens.
	o.Options = []string{"HostName=localhost", "HostKeyAlias=127.0.0.1", "UserKnownHostsFile=" + known127(t, s)}
	dial(t, "user", o)
	o.Options = append(o.Options, "AddressFamily=inet6")
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a family in which nobody listens: %v", err)
	}
}

func known127(t *testing.T, s *transporttest.Server) string {
	t.Helper()
	file := tempDir(t) + "/known"
	write(t, file, knownLine("127.0.0.1", s.HostKey()))
	return file
}

func TestBindAddressAndBindInterfaceChooseWhereFrom(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var lo string
	ifis, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range ifis {
		if i.Flags&net.FlagLoopback != 0 {
			lo = i.Name
		}
	}
	port := l.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		s    sshconfig.Settings
		from string
		kind error
	}{
		{sshconfig.Settings{BindAddress: "127.0.0.1"}, "127.0.0.1", nil},
		{sshconfig.Settings{BindAddress: "localhost"}, "127.0.0.1", nil},
		{sshconfig.Settings{BindInterface: lo}, "127.0.0.1", nil},
		{sshconfig.Settings{BindAddress: "nosuch.invalid"}, "", ErrConfig},
		{sshconfig.Settings{BindInterface: "nosuch0"}, "", ErrConfig},
		{sshconfig.Settings{BindAddress: "::1"}, "", ErrUnreachable},
	} {
		c.s.Host, c.s.Port = "127.0.0.1", port
		a := &attempt{t: Target{Host: "dev"}, s: &c.s}
		conn, err := a.direct(t.Context())
		if !errors.Is(err, c.kind) {
			t.Errorf("%q %q: %v", c.s.BindAddress, c.s.BindInterface, err)
		}
		if conn == nil {
			continue
		}
		if from := conn.LocalAddr().(*net.TCPAddr).IP.String(); from != c.from {
			t.Errorf("%q %q: from %s", c.s.BindAddress, c.s.BindInterface, from)
		}
		conn.Close()
	}
}

func TestConnectionAttemptsAreMade(t *testing.T) {
	// A port that opens only after the first attempt.
	port := freePort(t)
	s := &sshconfig.Settings{Host: "127.0.0.1", Port: port, ConnectAttempts: 1}
	a := &attempt{t: Target{Host: "dev"}, s: s}
	if _, err := a.direct(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v", err)
	}
	s.ConnectAttempts = 20
	opened := make(chan net.Listener, 1)
	time.AfterFunc(200*time.Millisecond, func() {
		l, _ := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		opened <- l
	})
	conn, err := a.direct(t.Context())
	if l := <-opened; l != nil {
		defer l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.direct(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
