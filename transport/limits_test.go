package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/transport/transporttest"
)

// heldSSHD is a real sshd that lets one connection at a time log in, and a connection that does not.
func heldSSHD(t *testing.T) (*sshd, net.Conn) {
	t.Helper()
	d := newSSHD(t, tempDir(t), "MaxStartups 1:100:1")
	t.Cleanup(d.stop)
	s := strings.Fields(strings.SplitAfter(readFile(t, d.config), "Port ")[1])[0]
	for range 50 { // the first are dropped while sshd still has the one that saw it start
		nc, err := net.Dial("tcp", "127.0.0.1:"+s)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(nc).ReadString('\n')
		if strings.HasPrefix(line, "SSH-") {
			t.Cleanup(func() { nc.Close() })
			return d, nc
		}
		nc.Close()
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("sshd takes nobody: %s", d.log)
	return nil, nil
}

// whenLogged is a log that does something at a message.
type whenLogged struct {
	slog.Handler
	text string
	do   func()
}

func (w *whenLogged) Enabled(context.Context, slog.Level) bool { return true }

func (w *whenLogged) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.text) {
		w.do()
	}
	return nil
}

func (w *whenLogged) WithAttrs([]slog.Attr) slog.Handler { return w }

// TestReport23Compose10117: several connections at once were too many for a server's MaxStartups,
// which dropped them, and the tool failed. A dropped connection is tried again, a few times, and
// what then fails says what the server said and what to do.
func TestReport23Compose10117(t *testing.T) {
	noLeaks(t)
	d, held := heldSSHD(t)
	tries := 0
	o := d.options()
	o.Log = slog.New(&whenLogged{text: "trying again", do: func() { tries++ }})
	_, err := Dial(t.Context(), Target{Host: d.alias}, o)
	if !errors.Is(err, ErrLost) || tries != dialAttempts-1 || !strings.Contains(Hint(err), "MaxStartups") {
		t.Errorf("%v after %d attempts; hint %q", err, tries+1, Hint(err))
	}
	o.Log = slog.New(&whenLogged{text: "trying again", do: func() { held.Close() }})
	c := dial(t, d.alias, o)
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Error(err)
	}
}

func TestWhatAServerSaysBeforeItDropsIsSaid(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	for name, c := range map[string]struct {
		words, want, hint string
		connections       int
		kind              error
	}{
		"too many":            {"Exceeded MaxStartups\r\n", "said: Exceeded MaxStartups", "MaxStartups", dialAttempts, ErrLost},
		"several lines":       {"Go away\r\nwe are closed\x1b[2J\r\n", "said: Go away", "is an SSH server", dialAttempts, ErrLost},
		"an address shut out": {"Not allowed at this time\r\n", "said: Not allowed", "PerSourcePenalties", 1, ErrLost},
		"nothing":             {"", "before the handshake", "", dialAttempts, ErrLost},
		"very much":           {strings.Repeat("no ", 10000), "said: no no", "is an SSH server", 1, ErrProtocol},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			before := s.Connections()
			s.SetFaults(transporttest.Faults{Drop: 100, DropWords: c.words})
			_, err := Dial(t.Context(), Target{Host: "user"}, o)
			n := s.Connections() - before
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(Hint(err), c.hint) || n != c.connections {
				t.Errorf("%v after %d connections; hint %q", err, n, Hint(err))
			}
			if len(err.Error()) > 1500 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%d bytes: %q", len(err.Error()), err)
			}
		})
	}
}

// TestReport25Btrbk605: each of many commands logged in anew, some with a wrong key first, until the
// server shut the address out (PerSourcePenalties). Here a failed login is never repeated, nor is one
// that the server shut out, and everything that follows a login shares it.
func TestReport25Btrbk605(t *testing.T) {
	s := startServer(t, transporttest.Options{Accounts: []transporttest.Account{{Name: "user"}, {Name: "locked", OnlyKeys: true}}})
	o := needSSH(t, s)
	if _, err := Dial(t.Context(), Target{Host: "locked"}, o); !errors.Is(err, ErrAuth) || s.Connections() != 1 || s.Logins() != 1 {
		t.Errorf("%v after %d connections with %d logins", err, s.Connections(), s.Logins())
	}
	s.SetFaults(transporttest.Faults{Drop: 10, DropWords: "Not allowed at this time\r\n"})
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrLost) || s.Connections() != 2 {
		t.Errorf("%v after %d connections", err, s.Connections()-1)
	}
	s.SetFaults(transporttest.Faults{})
	c := dial(t, "user", o)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			if _, _, err := run(t.Context(), c, "true", ""); err != nil {
				t.Error(err)
			}
			if _, err := c.Files(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.Connections() != 3 {
		t.Errorf("%d connections for one target", s.Connections()-2)
	}
}

// TestReport24Goph13: the eleventh session of a connection was refused ("administratively
// prohibited"), as sshd opens ten. However many calls there are, four channels do for them, and a
// server that opens fewer is asked for fewer.
func TestReport24Goph13(t *testing.T) {
	t.Run("sshd", func(t *testing.T) {
		noLeaks(t)
		d := startSSHD(t)
		manyCalls(t, dial(t, d.alias, d.options()), 25, "")
	})
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			noLeaks(t)
			s := startServer(t, transporttest.Options{MaxSessions: n})
			manyCalls(t, borrowed(t, s, "user", Options{}), 6, "sleep 0.3; ") // longer than asking again takes
			if s.MostSessions() != n {
				t.Errorf("%d channels at a time", s.MostSessions())
			}
		})
	}
	s := startServer(t, transporttest.Options{MaxSessions: 1})
	c := borrowed(t, s, "user", Options{})
	view(t, c)
	_, _, err := run(t.Context(), c, "true", "")
	if !errors.Is(err, ErrRefused) || !strings.Contains(Hint(err), "MaxSessions") {
		t.Errorf("with the only channel taken: %v; hint %q", err, Hint(err))
	}
}

func manyCalls(t *testing.T, c Conn, calls int, line string) {
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			if out, _, err := run(t.Context(), c, fmt.Sprintf("%secho %d", line, i), ""); err != nil || out != fmt.Sprintln(i) {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

// TestAChannelThatOthersTakeIsAskedForAgain has a session of the lender's own in the way.
func TestAChannelThatOthersTakeIsAskedForAgain(t *testing.T) {
	s := startServer(t, transporttest.Options{MaxSessions: 1})
	client, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	other, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(client, Options{Log: slog.New(slog.DiscardHandler)})
	defer c.Close()
	time.AfterFunc(60*time.Millisecond, func() { other.Close() }) // within openAttempts
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Error(err)
	}
}

// TestReport7Go15113: a peer that accepts a connection and then says nothing held up a client for
// ever, whatever its timeout for connecting was.
func TestReport7Go15113(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := startServer(t, transporttest.Options{})
	o := short(needSSH(t, s))
	o.Port = l.Addr().(*net.TCPAddr).Port
	within(t, 10*time.Second, func() {
		_, err := Dial(t.Context(), Target{Host: "user"}, o)
		if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrTimeout) || e.Op != "handshake" || e.Advice == "" {
			t.Errorf("%v", err)
		}
	})
}

// TestAFullSharedConnectionLeavesRoomForItsOwner has megabytes go out over a client while a session
// of its owner's asks and is answered.
func TestAFullSharedConnectionLeavesRoomForItsOwner(t *testing.T) {
	s := startServer(t, transporttest.Options{Faults: transporttest.Faults{Delay: 5 * time.Millisecond}})
	client, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answers := echoes(t, client)
	c := NewConn(client, Options{})
	defer c.Close()
	fsys := view(t, c)
	var wg sync.WaitGroup
	for i := range 3 * MaxChannels {
		wg.Go(func() {
			if i%4 == 0 {
				put(t, fsys, fmt.Sprintf("%s/%d", s.Home("user"), i), strings.Repeat("x", 4<<20), 0o600)
				return
			}
			if out, _, err := run(t.Context(), c, "wc -c", strings.Repeat("x", 4<<20)); err != nil || strings.TrimSpace(out) != fmt.Sprint(4<<20) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	wg.Wait()
	if n := answers(); n < 3 {
		t.Errorf("%d answers while the megabytes went out", n)
	}
	if n := s.MostSessions(); n > MaxChannels+1 {
		t.Errorf("%d channels at a time beside the owner's", n-1)
	}
}

// echoes asks over a session of its own, one question after another, until the function that it
// returns is called, which says how many answers came.
func echoes(t *testing.T, client *ssh.Client) func() int {
	t.Helper()
	own, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	in, err := own.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := own.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Start("cat"); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		lines := bufio.NewReader(out)
		n := 0
		for {
			select {
			case <-stop:
				own.Close()
				done <- n
				return
			default:
			}
			fmt.Fprintln(in, "are you there?")
			if _, err := lines.ReadString('\n'); err != nil {
				t.Errorf("the owner's session: %v", err)
				<-stop
				done <- n
				return
			}
			n++
		}
	}()
	return func() int { close(stop); return <-done }
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
