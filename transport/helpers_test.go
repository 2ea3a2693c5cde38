package transport

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// startServer starts an in-process server that ends with the test.
func startServer(t testing.TB, o transporttest.Options) *transporttest.Server {
	t.Helper()
	s, err := transporttest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the test server: %v", err)
		}
	})
	return s
}

// needSSH returns options that reach the server through its own ssh_config.
func needSSH(t testing.TB, s *transporttest.Server) Options {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	return Options{ConfigFile: s.ConfigFile()}
}

// dial connects and closes with the test.
func dial(t testing.TB, host string, o Options) Conn {
	t.Helper()
	c, err := Dial(t.Context(), Target{Host: host}, o)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// tempDir is a directory without links in its path, under a name that sshd's accounts can reach.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sshd is OpenSSH's server on the loopback interface, run by and for the current user.
type sshd struct {
	dir, config, alias string
	log                *logBuffer
	stop               func()
}

func findTool(t testing.TB, name string, more ...string) string {
	t.Helper()
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, p := range more {
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
			return p
		}
	}
	testenv.Missing(t, name)
	return ""
}

func sftpServer(t testing.TB) string {
	t.Helper()
	return findTool(t, "sftp-server", "/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server",
		"/usr/lib/ssh/sftp-server", "/usr/libexec/openssh/sftp-server")
}

// shared is the sshd that most tests use; TestMain ends it.
var shared struct {
	once sync.Once
	d    *sshd
}

func TestMain(m *testing.M) {
	code := m.Run()
	if d := shared.d; d != nil {
		d.stop()
		os.RemoveAll(d.dir)
	}
	os.Exit(code)
}

// startSSHD returns the shared sshd, started on the first call.
func startSSHD(t testing.TB) *sshd {
	t.Helper()
	findTool(t, "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "sshd")
		if err != nil {
			t.Fatal(err)
		}
		shared.d = newSSHD(t, dir)
	})
	if shared.d == nil {
		t.Fatal("sshd did not start for an earlier test")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("sshd: %s", shared.d.log)
		}
	})
	return shared.d
}

// newSSHD starts an sshd of its own in dir, with more lines of sshd_config.
func newSSHD(t testing.TB, dir string, lines ...string) *sshd {
	t.Helper()
	bin := findTool(t, "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
	if os.Geteuid() == 0 {
		// sshd insists on it when it starts as root.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			testenv.Missing(t, "/run/sshd")
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &sshd{dir: dir, alias: "real", log: &logBuffer{}}
	for _, k := range []string{"host_ed25519", "id"} {
		keygen(t, filepath.Join(d.dir, k))
	}
	port := freePort(t)
	conf := fmt.Sprintf("ListenAddress 127.0.0.1\nPort %d\nHostKey %s/host_ed25519\nPidFile none\nUsePAM no\nStrictModes no\n"+
		"AuthorizedKeysFile %s/id.pub\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"+
		"Subsystem sftp %s\n%s\n", port, d.dir, d.dir, sftpServer(t), strings.Join(lines, "\n"))
	write(t, filepath.Join(d.dir, "sshd_config"), conf)
	host, err := os.ReadFile(filepath.Join(d.dir, "host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.dir, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s", port, host))
	d.config = filepath.Join(d.dir, "ssh_config")
	write(t, d.config, fmt.Sprintf("Host %s\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  IdentityFile %s/id\n  IdentitiesOnly yes\n"+
		"  IdentityAgent none\n  UserKnownHostsFile %s/known_hosts\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
		d.alias, port, me.Username, d.dir, d.dir))
	cmd := exec.Command(bin, "-D", "-e", "-f", filepath.Join(d.dir, "sshd_config"))
	cmd.Stderr, cmd.WaitDelay = d.log, time.Second // its children outlive it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 100 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return d
		}
		time.Sleep(50 * time.Millisecond)
	}
	d.stop()
	t.Fatalf("sshd did not start: %s", d.log)
	return nil
}

func (d *sshd) options() Options { return Options{ConfigFile: d.config} }

func keygen(t testing.TB, file string, args ...string) {
	t.Helper()
	bin := findTool(t, "ssh-keygen")
	args = append([]string{"-q", "-t", "ed25519", "-N", "", "-C", filepath.Base(file), "-f", file}, args...)
	if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logBuffer is a buffer for many goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// run runs a line and returns what it wrote.
func run(ctx context.Context, c Conn, line, in string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	err = c.Exec(ctx, Cmd{Line: line, Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs})
	return out.String(), errs.String(), err
}

// noLeaks fails the test when goroutines of this package outlive it. To be called first.
func noLeaks(t *testing.T) {
	t.Helper()
	before := ours()
	t.Cleanup(func() {
		for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			now := ours()
			if len(now) <= len(before) {
				return
			}
			if time.Now().After(end) {
				t.Errorf("%d goroutines before, %d after:\n%s", len(before), len(now), strings.Join(now, "\n\n"))
				return
			}
		}
	})
}

// ours returns the stacks of goroutines that this package or what it uses started.
func ours() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var list []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if (strings.Contains(g, "punnet/transport.") || strings.Contains(g, "punnet/internal/sftp.")) && !strings.Contains(g, "testing.tRunner(") && !strings.Contains(g, "testing.(*T).Run") ||
			strings.Contains(g, "crypto/ssh.") {
			list = append(list, g)
		}
	}
	return list
}

// serve has f deal with each connection to l, until l is closed, and closes it then.
func serve(l net.Listener, f func(c net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			f(c)
		}()
	}
}
