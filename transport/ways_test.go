//go:build unix

package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// userMaster is an OpenSSH master as a user starts one, ended with the test.
type userMaster struct {
	socket, config string
	cmd            *exec.Cmd
}

// startUserMaster starts a master for the alias of d, and writes a configuration that names its
// socket.
func startUserMaster(t testing.TB, d *sshd, args ...string) *userMaster {
	t.Helper()
	dir, err := os.MkdirTemp("", "cm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &userMaster{socket: dir + "/s", config: dir + "/config"}
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m.config, string(conf)+"  ControlPath "+m.socket+"\n")
	m.cmd = exec.Command(findTool(t, "ssh"), append(append([]string{"-MN", "-F", m.config}, args...), d.alias)...)
	m.cmd.Stderr = &logBuffer{}
	m.cmd.WaitDelay = time.Second
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.kill)
	for range 200 {
		if _, err := os.Lstat(m.socket); err == nil {
			return m
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the master did not start: %s", m.cmd.Stderr)
	return nil
}

func (m *userMaster) kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

func (m *userMaster) check(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("ssh", "-F", m.config, "-S", m.socket, "-O", "check", "x").CombinedOutput(); err != nil {
		t.Errorf("the user's master is gone: %v: %s: %s", err, out, m.cmd.Stderr)
	}
}

// dialControlled connects over a user's master, which has to be there afterwards.
func dialControlled(t testing.TB) Conn {
	t.Helper()
	d := startSSHD(t)
	m := startUserMaster(t, d)
	t.Cleanup(func() { m.check(t) })
	return wantWay(t, dial(t, d.alias, Options{ConfigFile: m.config}), WayControl)
}

// dialSystem connects by the system's ssh.
func dialSystem(t testing.TB) Conn {
	t.Helper()
	d := startSSHD(t)
	findTool(t, "ssh")
	o := d.options()
	o.Way = WaySystem
	return wantWay(t, dial(t, d.alias, o), WaySystem)
}

func wantWay(t testing.TB, c Conn, want Way) Conn {
	t.Helper()
	if c.Way() != want {
		t.Fatalf("connected by %q", c.Way())
	}
	return c
}

func TestAUsersMasterIsSharedAndLeftAlive(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t))
	defer d.stop()
	m := startUserMaster(t, d)
	logins := strings.Count(d.log.String(), "Accepted")
	var steps []Step
	// Keepalives every few milliseconds would end a master.
	o := Options{ConfigFile: m.config, Keepalive: time.Millisecond, Trace: func(s Step) { steps = append(steps, s) }}
	c := wantWay(t, dial(t, d.alias, o), WayControl)
	if out, _, err := run(t.Context(), c, "cat; sleep 0.2", "in"); err != nil || out != "in" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := view(t, c).RealPath("."); err != nil {
		t.Error(err)
	}
	if c.Server() != "" {
		t.Errorf("a master does not tell the version, but here it is: %q", c.Server())
	}
	c.Close()
	m.check(t)
	if n := strings.Count(d.log.String(), "Accepted"); n != logins {
		t.Errorf("%d logins of its own", n-logins)
	}
	if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if len(steps) != 3 || steps[1].Name != StepSocket || !strings.Contains(steps[1].Value, m.socket+": live") || !strings.HasPrefix(steps[2].Value, "control: ") {
		t.Errorf("steps %+v", steps)
	}
}

func TestNothingIsLeftOpenOnAUsersMaster(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t), "MaxSessions 4")
	defer d.stop()
	m := startUserMaster(t, d)
	// More connections than the server allows sessions: each has to give back what it opened.
	for i := range 4 {
		c := dial(t, d.alias, Options{ConfigFile: m.config})
		if c.Way() != WayControl {
			t.Fatalf("connection %d: by %q", i, c.Way())
		}
		switch i {
		case 1:
			view(t, c)
		case 2:
			started := &signalWriter{c: make(chan struct{})}
			go c.Exec(t.Context(), Cmd{Line: "echo; sleep 20", Stdout: started})
			<-started.c
		}
		c.Close()
		time.Sleep(300 * time.Millisecond) // the server closes its side
	}
	m.check(t)
}

func TestASocketThatCannotBeUsedIsPassedBy(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	dir := tempDir(t)
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	listen := func(name string) net.Listener {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	silent := listen(dir + "/silent")
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			defer c.Close() // says nothing
		}
	}()
	garbage := listen(dir + "/garbage")
	go func() {
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "\x00\x00\x00\x08\xff\xff\xff\xff\x00\x00\x00\x04")
			c.Close()
		}
	}()
	refused := listen(dir + "/refused").(*net.UnixListener)
	refused.SetUnlinkOnClose(false)
	refused.Close()
	write(t, dir+"/file", "")
	if err := os.Symlink(dir+"/silent", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{
		"missing": "not used", "silent": "no answer within", "garbage": "not used", "refused": "refused",
		"file": "not a socket", "link": "not a socket",
	}
	if os.Geteuid() == 0 {
		listen(dir + "/other")
		if err := os.Chown(dir+"/other", 65534, 65534); err != nil {
			t.Fatal(err)
		}
		names["other"] = "another user"
	}
	for name, want := range names {
		t.Run(name, func(t *testing.T) {
			write(t, dir+"/config", string(conf)+"  ControlPath "+dir+"/"+name+"\n")
			var found string
			o := Options{ConfigFile: dir + "/config", Trace: func(s Step) {
				if s.Name == StepSocket {
					found = s.Value
				}
			}}
			within(t, 20*time.Second, func() { wantWay(t, dial(t, d.alias, o), WayNative) })
			if !strings.Contains(found, want) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// Reports 23 (docker/compose#11677) and 24 (goph#13): the user's sessions use up MaxSessions.
func TestReport23AMasterWithoutChannelsLeftIsPassedBy(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t), "MaxSessions 2")
	defer d.stop()
	m := startUserMaster(t, d)
	session := exec.Command("ssh", "-F", m.config, d.alias, "echo; sleep 60")
	started := &signalWriter{c: make(chan struct{})}
	session.Stdout, session.WaitDelay = started, time.Second
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Process.Kill(); _ = session.Wait() }()
	<-started.c
	log := &logBuffer{}
	o := Options{ConfigFile: m.config, Log: log.logger()}
	c := wantWay(t, dial(t, d.alias, o), WayNative)
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "MaxSessions") {
		t.Errorf("the log does not say why: %s", log)
	}
	m.check(t)
	// What keeps it alive ends with it.
	_, pid, _ := strings.Cut(log.String(), "pid=")
	holder, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(pid, "\n", 2)[0]))
	if err != nil {
		t.Fatalf("nothing holds the socket: %s", log)
	}
	if err := syscall.Kill(holder, 0); err != nil {
		t.Error(err)
	}
	m.kill()
	waitEnded(t, holder)
}

func TestReport24ARefusedChannelNamesTheSharedConnection(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t), "MaxSessions 3")
	defer d.stop()
	m := startUserMaster(t, d)
	c := wantWay(t, dial(t, d.alias, Options{ConfigFile: m.config}), WayControl)
	view(t, c)
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Fatal(err)
	}
	// Others on the same connection take what is free again, once the server has cleared it away.
	others := dial(t, d.alias, Options{ConfigFile: m.config})
	for tries := 0; others.Way() != WayControl && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond)
		others = dial(t, d.alias, Options{ConfigFile: m.config})
	}
	wantWay(t, others, WayControl)
	if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "shared with the user's own") || !strings.Contains(Hint(err), "MaxSessions") {
		t.Errorf("got %v; hint %q", err, Hint(err))
	}
	c.Close()
	m.check(t)
}

func TestAMachineThatAMasterCannotReachDoesNotEndIt(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	m := startUserMaster(t, d)
	conf, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m.config, string(conf)+fmt.Sprintf("Host behind\n  HostName 127.0.0.1\n  Port %d\n  ProxyJump %s\n", freePort(t), d.alias))
	if _, err := Dial(t.Context(), Target{Host: "behind"}, Options{ConfigFile: m.config}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	time.Sleep(100 * time.Millisecond)
	m.check(t)
}

func TestAMasterThatDiesIsALostConnection(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	m := startUserMaster(t, d)
	control := wantWay(t, dial(t, d.alias, Options{ConfigFile: m.config}), WayControl)
	system := dialSystem(t)
	for name, c := range map[string]Conn{"control": control, "system": system} {
		kill := m.kill
		if name == "system" {
			kill = func() { _ = syscall.Kill(systemPID(t, c), syscall.SIGKILL) }
		}
		fsys := view(t, c)
		moving := &signalWriter{c: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- c.Exec(t.Context(), Cmd{Line: "yes", Stdout: moving}) }()
		<-moving.c
		kill()
		within(t, 10*time.Second, func() {
			if err := <-done; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "ended") {
				t.Errorf("%s: exec: %v", name, err)
			}
		})
		if _, err := fsys.RealPath("."); !errors.Is(err, ErrLost) {
			t.Errorf("%s: files: %v", name, err)
		}
		if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrLost) {
			t.Errorf("%s: exec afterwards: %v", name, err)
		}
		within(t, 10*time.Second, func() { c.Close() })
	}
}

func TestASilentCommandOverAMasterIsGivenUpAndTheMasterIsNot(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	m := startUserMaster(t, d)
	c := wantWay(t, dial(t, d.alias, Options{ConfigFile: m.config, Idle: 300 * time.Millisecond}), WayControl)
	within(t, 10*time.Second, func() {
		if _, _, err := run(t.Context(), c, "sleep 20", ""); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
	})
	c.Close()
	m.check(t)
}

func TestAFrozenMasterHoldsNothingUp(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	m := startUserMaster(t, d)
	o := Options{ConfigFile: m.config, Idle: 300 * time.Millisecond}
	c := wantWay(t, dial(t, d.alias, o), WayControl)
	if err := m.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	within(t, 20*time.Second, func() {
		if _, _, err := run(t.Context(), c, "true", strings.Repeat("x", 8<<20)); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
		c.Close()
		wantWay(t, dial(t, d.alias, o), WayNative)
	})
}

func TestTheSystemsSSHEndsWithTheConnection(t *testing.T) {
	noLeaks(t)
	c := dialSystem(t)
	pid := systemPID(t, c)
	dir := systemDir(c)
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	c.Close()
	waitEnded(t, pid)
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's directory is still there: %v", err)
	}
}
