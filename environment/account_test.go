package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// Accounts that are confined to directories of one template have the same home, "/", the same owner of it
// and perhaps the same machine id, and are not the same.
func TestConfinedAccountsAreNotTakenForOne(t *testing.T) {
	l := newLab(t, "berry")
	server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{
		{Name: "one", NoExec: true, Chroot: "/"}, {Name: "two", NoExec: true, Chroot: "/"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	o := l.o
	o.Dial = dialer(server)
	seen := make(map[string]string)
	for _, account := range []string{"one", "two"} {
		etc := filepath.Join(server.Home(account), "etc")
		if err := os.Mkdir(etc, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(etc, "machine-id"), []byte("3d1219c7c4c5404aaa1f6d2a48adfda4\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		id := l.identify(account, o)
		if other := seen[id]; other != "" || strings.HasPrefix(id, "machine:") {
			t.Errorf("%s is %s, as is %q", account, id, other)
		}
		seen[id] = account
	}
}

// silent is a machine that answers no command.
type silent struct {
	transport.Conn
	asked chan struct{}
}

func (c silent) Exec(ctx context.Context, _ transport.Cmd) error {
	close(c.asked)
	<-ctx.Done()
	return ctx.Err()
}

func TestWhoGivesUpIsNotKeptWaitingByWhoAskedBefore(t *testing.T) {
	l := newLab(t, "berry")
	conn := silent{transport.Local(), make(chan struct{})}
	e, err := New(conn, session.Target{Host: "dev"}, l.o)
	if err != nil {
		t.Fatal(err)
	}
	first, giveUp := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, _, err := e.Identify(first)
		done <- err
	}()
	<-conn.asked
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := e.Identify(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A journal has targets in the words of a command line, which must lead to where they did.
func TestATargetOfAConversationIsWrittenAsTheCommandTakesIt(t *testing.T) {
	for _, target := range []session.Target{
		{}, {Host: "dev"}, {Host: "dev", User: "u"}, {Host: "dev", Port: 22}, {Host: "::1"}, {Host: "::1", Port: 2222, User: "u"}, {Host: "10.0.0.1", Port: 1, User: "a@b"}, {Host: "fe80::1%eth0", User: "u"},
	} {
		if got, want := target.String(), transport.Target(target).String(); got != want {
			t.Errorf("%+v is written %s; want %s", target, got, want)
		}
		if back, err := transport.ParseTarget(target.String()); err != nil || session.Target(back) != target {
			t.Errorf("%s is read as %+v, %v", target, back, err)
		}
	}
}
