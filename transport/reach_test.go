package transport

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

func TestABadConfigurationIsAConfigurationError(t *testing.T) {
	_, err := Dial(t.Context(), Target{Host: "dev"}, Options{Options: []string{"NoSuchOption=1"}})
	if !errors.Is(err, ErrConfig) || Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestAConfigurationThatHangsIsGivenUp(t *testing.T) {
	noLeaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	config := filepath.Join(tempDir(t), "config")
	write(t, config, "Match exec \"sleep 20\"\n")
	within(t, 5*time.Second, func() {
		if _, err := Dial(ctx, Target{Host: "dev"}, Options{ConfigFile: config}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestATargetMadeByHandCannotBecomeAnOption(t *testing.T) {
	pwned := filepath.Join(tempDir(t), "pwned")
	for _, tg := range []Target{{Host: "-oProxyCommand=touch " + pwned}, {Host: "x", User: "-oProxyCommand=touch " + pwned}, {User: "me"}} {
		if _, err := Dial(t.Context(), tg, Options{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", tg, err)
		}
	}
	if _, err := os.Stat(pwned); err == nil {
		t.Error("the option was carried out")
	}
}

func TestAProxyCommandCarriesTheConnection(t *testing.T) {
	noLeaks(t)
	if _, err := exec.LookPath("nc"); err != nil {
		testenv.Missing(t, "nc")
	}
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	o.Options = []string{"ProxyCommand=nc %h %p"}
	c := dial(t, "user", o)
	if out, _, err := run(t.Context(), c, "cat", "through"); err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
	o.Options = []string{"ProxyCommand=echo no route today >&2; exit 1"}
	_, err := Dial(t.Context(), Target{Host: "user"}, o)
	if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no route today") {
		t.Errorf("a command that fails: %v", err)
	}
	o.Options = []string{"ProxyCommand=sleep 30"}
	within(t, 8*time.Second, func() {
		if _, err := Dial(t.Context(), Target{Host: "user"}, short(o)); !errors.Is(err, ErrTimeout) {
			t.Errorf("a command that hangs: %v", err)
		}
	})
}

// TestWhatAProxyCommandSaidIsToldByWhoeverMeetsItsEnd has a command that is gone before anything is
// written to it.
func TestWhatAProxyCommandSaidIsToldByWhoeverMeetsItsEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "/bin/sh")
	}
	noLeaks(t)
	p, err := proxyShell("echo no route today >&2; exec <&-; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startProxy(p, "host:22")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for end := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(end); {
		_, err = c.Write([]byte("SSH-2.0-x\r\n"))
	}
	if err == nil || !strings.Contains(err.Error(), "no route today") || !dropped(err) {
		t.Errorf("got %v", err)
	}
}

func TestAProxyJumpIsOneConnectionInAnother(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	s := startServer(t, transporttest.Options{})
	both := filepath.Join(tempDir(t), "config")
	real, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, both, string(real)+strings.ReplaceAll(s.Config(), "Host user\n", "Host user\n  ProxyJump real\n"))
	o := needSSH(t, s)
	o.ConfigFile = both
	// What is said for the target is not meant for the machine in between.
	o.Port, o.User, o.Options = s.Port(), "user", []string{"HostKeyAlgorithms=ssh-ed25519", "UserKnownHostsFile=" + s.KnownHostsFile()}
	c := dial(t, "user", o)
	if out, _, err := run(t.Context(), c, "cat", "through"); err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
	if !strings.Contains(d.log.String(), "Accepted publickey") {
		t.Error("the connection did not go through the machine in between")
	}
	o.Options = []string{"ProxyJump=user"}
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); err == nil {
		t.Error("a machine in between that is not known was gone through")
	}
	write(t, both, "Host loop\n  ProxyJump loop2\nHost loop2\n  ProxyJump loop\n")
	within(t, 30*time.Second, func() {
		if _, err := Dial(t.Context(), Target{Host: "loop"}, Options{ConfigFile: both}); !errors.Is(err, ErrConfig) {
			t.Errorf("a loop: %v", err)
		}
	})
}

func TestEveryMachineOnTheWayIsChecked(t *testing.T) {
	d := startSSHD(t)
	s := startServer(t, transporttest.Options{})
	real, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tempDir(t), "config")
	write(t, file, strings.Replace(string(real), "UserKnownHostsFile ", "UserKnownHostsFile /nonexistent", 1)+
		strings.ReplaceAll(s.Config(), "Host user\n", "Host user\n  ProxyJump real\n"))
	_, err = Dial(t.Context(), Target{Host: "user"}, Options{ConfigFile: file})
	var hk *HostKeyError
	if !errors.As(err, &hk) || s.Connections() != 0 {
		t.Errorf("%v; %d connections", err, s.Connections())
	}
}

func TestUnknownAlgorithmsAreLeftOut(t *testing.T) {
	got := choose([]string{"sntrup761x25519-sha512", "curve25519-sha256", "x"}, []string{"curve25519-sha256"})
	if !reflect.DeepEqual(got, []string{"curve25519-sha256"}) || choose([]string{"x"}, nil) != nil {
		t.Errorf("got %q", got)
	}
}
