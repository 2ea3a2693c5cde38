package transport

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// countSSH puts a program before ssh that notes each run, and returns how many there were.
func countSSH(t *testing.T) func() int {
	t.Helper()
	real, err := exec.LookPath("ssh")
	if err != nil {
		testenv.Missing(t, "ssh")
	}
	dir := tempDir(t)
	write(t, dir+"/ssh", "#!/bin/sh\necho >> "+dir+"/runs\nexec "+real+" \"$@\"\n")
	if err := os.Chmod(dir+"/ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() int {
		runs, _ := os.ReadFile(dir + "/runs")
		return strings.Count(string(runs), "\n")
	}
}

func TestADialerAsksSSHOnceForAllItsConnections(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	runs := countSSH(t)
	d := Dialer{Options: Options{ConfigFile: s.ConfigFile()}}
	for range 3 {
		c, err := d.Dial(t.Context(), Target{Host: "user"})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if n := runs(); n != 1 {
		t.Errorf("ssh was asked %d times", n)
	}
	d.Port = s.Port() // another question
	c, err := d.Dial(t.Context(), Target{Host: "user"})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if n := runs(); n != 2 {
		t.Errorf("ssh was asked %d times, once of them with a port", n)
	}
}

func TestTheHopsOfOneConnectionShareWhatTheyAsked(t *testing.T) {
	runs := countSSH(t)
	config := filepath.Join(tempDir(t), "config")
	write(t, config, "Host loop\n  ProxyJump loop2\nHost loop2\n  ProxyJump loop\n")
	if _, err := Dial(t.Context(), Target{Host: "loop"}, Options{ConfigFile: config}); err == nil {
		t.Fatal("the way has no end")
	}
	if n := runs(); n != 2 {
		t.Errorf("ssh was asked %d times about 2 machines", n)
	}
}

func TestWithoutAnSSHProgramTheConfigurationIsHonoured(t *testing.T) {
	noLeaks(t)
	sshd := startSSHD(t)
	s := startServer(t, transporttest.Options{})
	real, err := os.ReadFile(sshd.config)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(tempDir(t), "config")
	write(t, config, string(real)+strings.ReplaceAll(s.Config(), "Host user\n", "Match exec \"false\"\n  Port 1\nHost user\n  ProxyJump real\n"))
	t.Setenv("PATH", tempDir(t))
	c := dial(t, "user", Options{ConfigFile: config})
	if out, _, err := run(t.Context(), c, "cat", "through"); err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestAnSSHProgramThatIsBrokenSaysWhatMendsIt(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/ssh", "#!/bin/sh\necho 'libcrypto.so.3: cannot open' >&2\nexit 127\n")
	if err := os.Chmod(dir+"/ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	_, err := Dial(t.Context(), Target{Host: "dev"}, Options{})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "libcrypto") || !strings.Contains(Hint(err), "install OpenSSH") {
		t.Errorf("%v; hint: %s", err, Hint(err))
	}
}
