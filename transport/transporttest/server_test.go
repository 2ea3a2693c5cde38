package transporttest

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/testenv"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestAnAccountHasAHomeAndAnEnvironmentOfItsOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a POSIX shell")
	}
	t.Setenv("SECRET_OF_THE_HOST", "secret")
	s := start(t, Options{Accounts: []Account{{Name: "one", Noise: "hello\n"}, {Name: "two"}}})
	c, err := s.Client(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	out, err := session.CombinedOutput("pwd; env")
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	if !strings.HasPrefix(text, "hello\n"+s.Home("one")+"\n") || !strings.Contains(text, "HOME="+s.Home("one")+"\n") || strings.Contains(text, "SECRET") {
		t.Errorf("got %q", text)
	}
}

func TestOnlyTheRightKeyAndAccountGetIn(t *testing.T) {
	s := start(t, Options{Accounts: []Account{{Name: "user"}, {Name: "shut", OnlyKeys: true}}})
	for _, name := range []string{"shut", "nobody", ""} {
		if c, err := s.Client(t.Context(), name); err == nil {
			c.Close()
			t.Errorf("%q got in", name)
		}
	}
	if n := s.Logins(); n != 3 {
		t.Errorf("%d logins were counted", n)
	}
}

func TestCloseEndsCommandsConnectionsAndTheDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a POSIX shell")
	}
	s := start(t, Options{})
	c, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	session, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Start("trap '' HUP INT TERM; while :; do sleep 1; done"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Close did not end a command that ignores signals")
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	if _, err := s.Client(context.Background(), "user"); err == nil {
		t.Error("somebody got in after Close")
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := start(t, Options{})
	c, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range maxSessions + 1 {
		_, err := c.NewSession()
		var no *ssh.OpenChannelError
		if full := i == maxSessions; full != errors.As(err, &no) {
			t.Errorf("session %d: %v", i+1, err)
		}
	}
}

func TestADelayIsARoundTripOfTwice(t *testing.T) {
	const delay = 30 * time.Millisecond
	s := start(t, Options{Faults: Faults{Delay: delay}})
	c, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begin := time.Now()
	if _, _, err := c.SendRequest("ping", true, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 2*delay {
		t.Errorf("a round trip took %v", took)
	}
}
