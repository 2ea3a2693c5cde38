package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/punnet/punnet/internal/testenv"
)

// loginServer is a server that lets people in, or not, and carries connections on to others.
type loginServer struct {
	port  int
	known string // a known_hosts file

	mu    sync.Mutex
	conns []net.Conn
	tries []string // methods, in the order in which they were tried
}

// startLogin starts a server with this configuration. It ends with the test.
func startLogin(t testing.TB, cfg *ssh.ServerConfig) *loginServer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &loginServer{port: l.Addr().(*net.TCPAddr).Port, known: filepath.Join(tempDir(t), "known_hosts")}
	write(t, s.known, knownhosts.Line([]string{l.Addr().String()}, host.PublicKey())+"\n")
	cfg.AuthLogCallback = func(_ ssh.ConnMetadata, method string, _ error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tries = append(s.tries, method)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				defer context.AfterFunc(ctx, func() { c.Close() })()
				s.serve(c, cfg)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		wg.Wait()
	})
	return s
}

func (s *loginServer) serve(c net.Conn, cfg *ssh.ServerConfig) {
	sc, chans, reqs, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	defer sc.Close()
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		var on struct {
			Host       string
			Port       uint32
			OriginHost string
			OriginPort uint32
		}
		if nc.ChannelType() != "direct-tcpip" || ssh.Unmarshal(nc.ExtraData(), &on) != nil {
			_ = nc.Reject(ssh.Prohibited, "only logins here")
			continue
		}
		next, err := net.Dial("tcp", net.JoinHostPort(on.Host, strconv.Itoa(int(on.Port))))
		if err != nil {
			_ = nc.Reject(ssh.ConnectionFailed, "no")
			continue
		}
		ch, reqs, err := nc.Accept()
		if err != nil {
			next.Close()
			continue
		}
		go ssh.DiscardRequests(reqs)
		go func() {
			_, _ = io.Copy(next, ch)
			next.Close()
		}()
		go func() {
			_, _ = io.Copy(ch, next)
			ch.Close()
		}()
	}
}

// methods returns what was tried since the last call.
func (s *loginServer) methods() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tries := strings.Join(s.tries, " ")
	s.tries = nil
	return tries
}

func (s *loginServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// drop ends every connection.
func (s *loginServer) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
}

// host is a Host block for the server, with these lines about logins.
func (s *loginServer) host(alias string, lines ...string) string {
	return fmt.Sprintf("Host %s\n  HostName 127.0.0.1\n  User user\n  Port %d\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n"+
		"  StrictHostKeyChecking yes\n  %s\n", alias, s.port, s.known, strings.Join(lines, "\n  "))
}

// options reaches the server as "host", without keys and agents but those in lines.
func (s *loginServer) options(t testing.TB, lines ...string) Options {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	file := filepath.Join(tempDir(t), "config")
	write(t, file, s.host("host", lines...))
	return Options{ConfigFile: file, home: tempDir(t)}
}

// person answers questions.
type person struct {
	mu      sync.Mutex
	asked   []Prompt
	answers []string // one after another; the last one again and again
}

func (p *person) ask(_ context.Context, q Prompt) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	return p.answers[min(len(p.asked), len(p.answers))-1], nil
}

// refusedLogin dials and wants to be refused.
func refusedLogin(t testing.TB, o Options) *AuthError {
	t.Helper()
	c, err := Dial(t.Context(), Target{Host: "host"}, o)
	if err == nil {
		c.Close()
		t.Fatal("was let in")
	}
	auth, ok := err.(*Error).Err.(*AuthError)
	if !ok {
		t.Fatalf("got %v", err)
	}
	return auth
}

// currentUser is the name of the account that the tests run in.
func currentUser(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}
