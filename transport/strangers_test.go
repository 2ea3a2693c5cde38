package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// startStranger starts a server that says something once it is spoken to and then is silent, or closes.
func startStranger(t testing.TB, says string, closes bool) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, says)
		if !closes {
			_, _ = io.Copy(io.Discard, c)
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

func TestAServerThatIsNoneOfSSHIsTold(t *testing.T) {
	noLeaks(t)
	o := needSSH(t, startServer(t, transporttest.Options{}))
	o.HandshakeTimeout = time.Second
	const check = "is an SSH server"
	for name, c := range map[string]struct {
		says   string
		closes bool
		kind   error
		want   string
		hint   string
	}{
		"mail, and waits":       {"220 mail ESMTP\r\n", false, ErrTimeout, "said: 220 mail ESMTP", "an SSH server listens"},
		"HTTP, and closes":      {"HTTP/1.1 400 Bad Request\r\n\r\n", true, ErrLost, "said: HTTP/1.1 400", check},
		"the first SSH":         {"SSH-1.5-old\r\n", false, ErrProtocol, "SSH 1 alone", "too old"},
		"the first SSH, words":  {"hello\r\nSSH-1.5-old\r\n", true, ErrProtocol, "SSH 1 alone", "too old"},
		"one that knows both":   {"SSH-1.99-both\r\n", false, ErrTimeout, "not done within", "an SSH server listens"},
		"noise after a version": {"SSH-2.0-x\r\n" + strings.Repeat("\xff", 9000), false, ErrProtocol, "packet", check},
	} {
		o.Options = []string{fmt.Sprintf("Port=%d", startStranger(t, c.says, c.closes))}
		_, err := Dial(t.Context(), Target{Host: "user"}, o)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(Hint(err), c.hint) {
			t.Errorf("%s: %v; hint %q", name, err, Hint(err))
		}
		if strings.Contains(err.Error(), "->127.0.0.1") || strings.Contains(err.Error(), "EOF") {
			t.Errorf("%s: the library's words are shown: %v", name, err)
		}
	}
}

// TestAProxyCommandThatFailsIsToldAndNotRunAgain has a command that fails as ssh -W does when a machine
// on the way refuses the login: each other run would be another failed login.
func TestAProxyCommandThatFailsIsToldAndNotRunAgain(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "/bin/sh")
	}
	noLeaks(t)
	o := needSSH(t, startServer(t, transporttest.Options{}))
	runs := tempDir(t) + "/runs"
	o.Options = []string{"ProxyCommand=sh -c 'echo run >>" + runs + "; echo Permission denied >&2; exit 255'"}
	_, err := Dial(t.Context(), Target{Host: "user"}, o)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "ProxyCommand ended with exit status 255 and said: Permission denied") ||
		!strings.Contains(Hint(err), "ssh -v") || strings.Contains(err.Error(), "the server closed") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
	if data, err := readBounded(runs, 100); err != nil || string(data) != "run\n" {
		t.Errorf("it was run: %q, %v", data, err)
	}
}

func TestAnEndlessProxyJumpIsToldOnce(t *testing.T) {
	file := tempDir(t) + "/config"
	write(t, file, "Host loop\n  HostName a.invalid\n  ProxyJump loop2\nHost loop2\n  HostName b.invalid\n  ProxyJump loop\n")
	_, err := Dial(t.Context(), Target{Host: "loop"}, Options{ConfigFile: file})
	if !errors.Is(err, ErrConfig) || strings.Count(err.Error(), "loop") > 1 || !strings.Contains(Hint(err), "ssh -G -F "+file) {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}
