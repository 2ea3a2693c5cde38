//go:build unix

package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/display"
)

// system are options that reach d by the system's ssh.
func (d *sshd) system(t testing.TB, options ...string) Options {
	t.Helper()
	findTool(t, "ssh")
	o := d.options()
	o.Way, o.Options = WaySystem, options
	return o
}

// socketDirs lists the directories of masters that are there, in a place of the test's own.
func socketDirs(t testing.TB, parent string) []string {
	t.Helper()
	dirs, err := filepath.Glob(parent + "/punnet-*")
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// runtimeDir gives the test a short place of its own for sockets.
func runtimeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.(*testing.T).Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func TestWhatTheSystemsSSHFailsAtIsTyped(t *testing.T) {
	noLeaks(t)
	runtime := runtimeDir(t)
	d := startSSHD(t)
	dir := tempDir(t)
	keygen(t, dir+"/wrong")
	keygen(t, dir+"/other")
	other, err := os.ReadFile(dir + "/other.pub")
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(d.dir + "/known_hosts")
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(string(known), " ")
	write(t, dir+"/changed", name+" "+string(other))
	key, _ := os.ReadFile(d.dir + "/host_ed25519.pub")
	write(t, dir+"/revoked", "@revoked "+name+" "+string(key))
	write(t, dir+"/empty", "")
	for what, c := range map[string]struct {
		options []string
		kind    error
		says    string
	}{
		"a wrong key":             {[]string{"IdentityFile=" + dir + "/wrong", "IdentityFile=none"}, ErrAuth, "Permission denied"},
		"a changed host key":      {[]string{"UserKnownHostsFile=" + dir + "/changed"}, ErrHostKey, dir + "/changed:1"},
		"a changed key, no check": {[]string{"UserKnownHostsFile=" + dir + "/changed", "StrictHostKeyChecking=no"}, ErrHostKey, "not the one on record"},
		"a revoked host key":      {[]string{"UserKnownHostsFile=" + dir + "/revoked"}, ErrHostKey, "revoked"},
		"an unknown host key":     {[]string{"UserKnownHostsFile=" + dir + "/empty"}, ErrHostKey, "No ED25519 host key is known"},
		"asking and nobody there": {[]string{"UserKnownHostsFile=" + dir + "/empty", "StrictHostKeyChecking=ask"}, ErrHostKey, "verification failed"},
		"nobody listens":          {[]string{fmt.Sprint("Port=", freePort(t))}, ErrUnreachable, "refused"},
		"no such name":            {[]string{"HostName=nosuchhost.invalid"}, ErrUnreachable, "nosuchhost.invalid"},
	} {
		t.Run(what, func(t *testing.T) {
			o := d.system(t, c.options...)
			if what == "a wrong key" {
				conf, _ := os.ReadFile(d.config)
				write(t, dir+"/config", strings.Replace(string(conf), d.dir+"/id", dir+"/wrong", 1))
				o.ConfigFile, o.Options = dir+"/config", nil
			}
			_, err := Dial(t.Context(), Target{Host: d.alias}, o)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || Hint(err) == "" || strings.Contains(err.Error(), "@@@") {
				t.Errorf("%v; hint %q", err, Hint(err))
			}
			var e *Error
			if !errors.As(err, &e) || e.Target.Host != d.alias {
				t.Errorf("%#v", err)
			}
			var hk *HostKeyError
			if strings.HasPrefix(what, "a changed") && (!errors.As(err, &hk) || hk.Host != name || !strings.HasPrefix(hk.Fingerprint, "SHA256:") || !strings.Contains(hk.Record, dir+"/changed")) {
				t.Errorf("%+v", hk)
			}
		})
	}
	if dirs := socketDirs(t, runtime); len(dirs) != 0 {
		t.Errorf("left behind: %q", dirs)
	}
}

// systemPID is the process that holds the connection of WaySystem.
func systemPID(t testing.TB, c Conn) int {
	t.Helper()
	path := filepath.Join(systemDir(c), "s")
	out, err := exec.Command("ssh", "-S", path, "-O", "check", "x").CombinedOutput()
	_, pid, ok := bytes.Cut(out, []byte("pid="))
	n, convErr := strconv.Atoi(string(bytes.Trim(pid, ")\r\n")))
	if err != nil || !ok || convErr != nil {
		t.Fatalf("no pid in %q: %v", out, err)
	}
	return n
}

// systemDir is where its socket is. ssh binds it by another name, beside the one it gets.
func systemDir(c Conn) string { return filepath.Dir(c.(*sshConn).client.RemoteAddr().String()) }

// waitEnded waits for the end of a process.
func waitEnded(t testing.TB, pid int) {
	t.Helper()
	for range 250 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d lives on", pid)
}

// zombie reports whether a process has ended and nobody has asked for its status.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && strings.HasPrefix(rest, "Z")
}

// fakeSSH puts a program named ssh first on the PATH, which answers -G as the real one does.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	real := findTool(t, "ssh")
	dir := tempDir(t)
	write(t, dir+"/ssh", "#!/bin/sh\ncase \" $* \" in *\" -G \"*) exec "+real+" \"$@\";; esac\n"+script+"\n")
	if err := os.Chmod(dir+"/ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestASystemsSSHThatHangsIsEndedWithWhatItStarted(t *testing.T) {
	noLeaks(t)
	runtime := runtimeDir(t)
	d := startSSHD(t)
	o := d.system(t)
	pids := tempDir(t) + "/pids"
	fakeSSH(t, "trap '' TERM; sleep 300 & echo $$ $! >"+pids+"; wait; sleep 300")
	o.DialTimeout, o.HandshakeTimeout = 200*time.Millisecond, 800*time.Millisecond
	within(t, 15*time.Second, func() {
		if _, err := Dial(t.Context(), Target{Host: d.alias}, o); !errors.Is(err, ErrTimeout) || Hint(err) == "" {
			t.Errorf("by its limit: %v", err)
		}
	})
	ended(t, pids)
	o = d.system(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	within(t, 15*time.Second, func() {
		if _, err := Dial(ctx, Target{Host: d.alias}, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("by its context: %v", err)
		}
	})
	ended(t, pids)
	if dirs := socketDirs(t, runtime); len(dirs) != 0 {
		t.Errorf("left behind: %q", dirs)
	}
}

// ended waits for the end of the processes that a file lists.
func ended(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		waitEnded(t, pid)
	}
}

func TestAnSSHThatSaysNothingOrLiesIsNoConnection(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	o := d.system(t)
	fakeSSH(t, "exit 0")
	if _, err := Dial(t.Context(), Target{Host: d.alias}, o); err == nil || !strings.Contains(err.Error(), "said nothing") {
		t.Errorf("got %v", err)
	}
	fakeSSH(t, "printf 'weird \\033[31m words\\n' >&2; exit 3")
	if _, err := Dial(t.Context(), Target{Host: d.alias}, o); err == nil || !strings.Contains(err.Error(), "weird") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
}

func TestTheSystemsSSHAsksForAPassphrase(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	d := newSSHD(t, dir)
	defer d.stop()
	if out, err := exec.Command(findTool(t, "ssh-keygen"), "-q", "-p", "-P", "", "-N", "secret words", "-f", d.dir+"/id").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, dir+"/ask", "#!/bin/sh\necho secret words\n")
	if err := os.Chmod(dir+"/ask", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_ASKPASS", dir+"/ask")
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	o := d.system(t)
	if _, err := Dial(t.Context(), Target{Host: d.alias}, o); !errors.Is(err, ErrAuth) {
		t.Errorf("nobody to ask: %v", err)
	}
	o.Ask = func(context.Context, Prompt) (string, error) { return "", errors.New("ssh asks by itself") }
	wantWay(t, dial(t, d.alias, o), WaySystem)
}

func TestTheSystemsSSHGoesThroughAMachine(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	behind := newSSHD(t, tempDir(t))
	defer behind.stop()
	dir := tempDir(t)
	near, _ := os.ReadFile(d.config)
	far, _ := os.ReadFile(behind.config)
	write(t, dir+"/config", string(near)+strings.Replace(string(far), "Host real\n", "Host behind\n  ProxyJump real\n", 1))
	o := behind.system(t)
	o.ConfigFile = dir + "/config"
	c := wantWay(t, dial(t, "behind", o), WaySystem)
	if out, _, err := run(t.Context(), c, "cat", "through"); err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
	write(t, dir+"/config", strings.Replace(string(near), d.dir+"/id", dir+"/none", 1)+strings.Replace(string(far), "Host real\n", "Host behind\n  ProxyJump real\n", 1))
	if _, err := Dial(t.Context(), Target{Host: "behind"}, o); !errors.Is(err, ErrAuth) {
		t.Errorf("a machine on the way that does not let us in: %v", err)
	}
}

func TestNothingInTheConfigurationDisturbsTheSystemsSSH(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	dir := tempDir(t)
	conf, _ := os.ReadFile(d.config)
	write(t, dir+"/config", string(conf)+strings.Join([]string{
		"  RemoteCommand touch " + dir + "/remote", "  RequestTTY force", "  ForkAfterAuthentication yes", "  StdinNull yes",
		"  SessionType default", "  PermitLocalCommand yes", "  LocalCommand touch " + dir + "/local", "  ForwardAgent yes",
		"  ForwardX11 yes", "  LocalForward " + dir + "/forward 127.0.0.1:1", "  ControlMaster auto", "  ControlPath " + dir + "/cm",
		"  ControlPersist yes", "  LogLevel QUIET", "  Tunnel yes", "  ExitOnForwardFailure yes", "",
	}, "\n"))
	o := d.system(t, "ControlMaster=no", "LogLevel=DEBUG")
	o.ConfigFile = dir + "/config"
	c := wantWay(t, dial(t, d.alias, o), WaySystem)
	pid := systemPID(t, c)
	if out, _, err := run(t.Context(), c, "cat", "in"); err != nil || out != "in" {
		t.Errorf("%q, %v", out, err)
	}
	for _, name := range []string{"remote", "local", "forward", "cm"} {
		if _, err := os.Lstat(dir + "/" + name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	c.Close()
	waitEnded(t, pid)
}

// The test below runs itself as another process, which connects and is killed.
func TestTheSystemsSSHDoesNotOutliveAKilledProcess(t *testing.T) {
	if config := os.Getenv("PUNNET_TEST_KILLED"); config != "" {
		c := dial(t, "real", Options{ConfigFile: config, Way: WaySystem})
		fmt.Println("pid", systemPID(t, c), systemDir(c))
		time.Sleep(time.Minute)
		return
	}
	d := startSSHD(t)
	findTool(t, "ssh")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "PUNNET_TEST_KILLED="+d.config)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d %s", &pid, &dir)
	}
	if pid == 0 {
		t.Error("the other process did not connect")
	} else if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("its ssh: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pid != 0 {
		waitEnded(t, pid)
		waitGone(t, dir)
	}
}

func TestSocketsHaveShortPrivateNames(t *testing.T) {
	long := filepath.Join(tempDir(t), strings.Repeat("x", 90))
	percent := filepath.Join(tempDir(t), "50%h")
	for _, parent := range []string{long, percent} {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("XDG_RUNTIME_DIR", parent)
		dir, err := socketDir()
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(dir)
		if len(dir) > maxSocketDir || strings.HasPrefix(dir, parent) {
			t.Errorf("got %s", dir)
		}
		if left, _ := os.ReadDir(parent); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestSSHsWordsAreSorted(t *testing.T) {
	for text, want := range map[string]error{
		"me@h: Permission denied (publickey).\r\nConnection closed by UNKNOWN port 65535":       ErrAuth,
		"Received disconnect from 1.2.3.4 port 22:2: Too many authentication failures":          ErrAuth,
		"Host key verification failed.\r\nConnection closed by UNKNOWN port 65535":              ErrHostKey,
		"ssh: Could not resolve hostname x: Name or service not known":                          ErrUnreachable,
		"ssh: connect to host x port 22: Connexion refusée":                                     ErrUnreachable,
		"Connection timed out during banner exchange":                                           ErrTimeout,
		"config: line 3: Bad configuration option: nosuch\nconfig: terminating, 1 bad":          ErrConfig,
		"Bad owner or permissions on /home/me/.ssh/config":                                      ErrConfig,
		"Unable to negotiate with 1.2.3.4 port 22: no matching cipher found. Their offer: 3des": ErrProtocol,
		"kex_exchange_identification: Connection closed by remote host":                         ErrLost,
		"Protocol major versions differ: 2 vs. 1":                                               ErrProtocol,
		"kex_exchange_identification: No SSH version received in first 1024 lines from server":  ErrProtocol,
		"something new": nil,
	} {
		hint, kind := classify(text)
		if kind != want {
			t.Errorf("%s: %v", display.Quote(text), kind)
		}
		if strings.HasPrefix(text, "kex_") && hint == "" {
			t.Errorf("%s: no hint", display.Quote(text))
		}
	}
}

func FuzzChangedKey(f *testing.F) {
	f.Add("@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nThe fingerprint for the ED25519 key sent by the remote host is\nSHA256:abc.\nOffending ED25519 key in /a b:3\nHost key for [h]:22 has changed")
	f.Add("REVOKED HOST KEY\nOffending  key in :\nHost key for ")
	f.Fuzz(func(t *testing.T, text string) {
		if e := changedKey(text); e != nil {
			if !errors.Is(e, ErrHostKey) || strings.ContainsAny(e.Error()+e.Hint(), "\x1b\n") {
				t.Errorf("%q gives %q, %q", text, e.Error(), e.Hint())
			}
		}
	})
}
