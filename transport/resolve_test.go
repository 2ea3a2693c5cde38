package transport

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// resolveConfig resolves host with an ssh_config of these lines.
func resolveConfig(t *testing.T, host string, o Options, lines ...string) (*settings, error) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	o.ConfigFile = filepath.Join(tempDir(t), "config")
	write(t, o.ConfigFile, strings.Join(lines, "\n")+"\n")
	return resolve(t.Context(), Target{Host: host}, o)
}

func TestTheConfigurationIsReadAsSSHReadsIt(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/included", "Host dev\n  Port 2201\n")
	for name, c := range map[string]struct {
		lines []string
		o     Options
		want  func(s *settings) bool
	}{
		"alias, Include": {
			lines: []string{"Include " + dir + "/included", "Host dev", "  HostName dev.example", "  User me"},
			want: func(s *settings) bool {
				return s.Host == "dev.example" && s.User == "me" && s.Port == 2201 && s.Alias == "dev"
			},
		},
		"quoted Host": {
			lines: []string{`Host "dev"`, "  HostName quoted.example"},
			want:  func(s *settings) bool { return s.Host == "quoted.example" },
		},
		"Match exec, Match final": {
			lines: []string{`Match originalhost dev exec "true"`, "  HostName matched.example", "Match final all", "  Port 99"},
			want:  func(s *settings) bool { return s.Host == "matched.example" && s.Port == 99 },
		},
		"options win": {
			lines: []string{"Host dev", "  Port 1", "  User other"},
			o:     Options{Port: 7, User: "me", Options: []string{"HostName=o.example", "BatchMode=yes"}},
			want:  func(s *settings) bool { return s.Port == 7 && s.User == "me" && s.Host == "o.example" && s.BatchMode },
		},
		"identity files in order, -i first": {
			lines: []string{"Host dev", "  IdentityFile /a/%r@%h", "  IdentityFile \"/b/with space\"", "  IdentitiesOnly yes", "  User me"},
			o:     Options{IdentityFiles: []string{"/first"}},
			want: func(s *settings) bool {
				return slices.Equal(s.IdentityFiles, []string{"/first", "/a/me@dev", "/b/with space"}) && s.IdentitiesOnly && s.Unasked == nil
			},
		},
		"IdentityAgent none": {
			lines: []string{"IdentityAgent none"},
			want:  func(s *settings) bool { return s.IdentityAgent == "" },
		},
		"a file of -i that is not there": {
			o: Options{IdentityFiles: []string{"/first", "/second"}},
			want: func(s *settings) bool {
				return slices.Equal(s.IdentityFiles[:2], []string{"/first", "/second"}) && !slices.Contains(s.Unasked, "/first")
			},
		},
		"known hosts": {
			lines: []string{"UserKnownHostsFile " + dir + "/a ~/b", "GlobalKnownHostsFile none", "HostKeyAlias alias", "HashKnownHosts yes", "StrictHostKeyChecking no"},
			want: func(s *settings) bool {
				home, _ := Options{}.homeDir()
				return slices.Equal(s.UserKnownHosts, []string{dir + "/a", home + "/b"}) && s.GlobalKnownHosts == nil &&
					s.HostKeyAlias == "alias" && s.HashKnownHosts && s.StrictHostKey == "accept-new"
			},
		},
		"the rest": {
			lines: []string{"ConnectTimeout 3", "AddressFamily inet", "BindAddress 127.0.0.1", "Ciphers aes128-ctr", "ProxyCommand nc %h %p", "PubkeyAuthentication no"},
			want: func(s *settings) bool {
				return s.ConnectTimeout == 3*time.Second && s.AddressFamily == "inet" && s.BindAddress == "127.0.0.1" &&
					slices.Equal(s.Ciphers, []string{"aes128-ctr"}) && s.ProxyCommand == "nc %h %p" && !s.PubkeyAuth
			},
		},
		"nothing configured": {
			want: func(s *settings) bool {
				return s.Host == "dev" && s.Port == 22 && s.User != "" && len(s.Unasked) >= 3 && slices.Equal(s.IdentityFiles, s.Unasked) && s.StrictHostKey == "ask"
			},
		},
	} {
		s, err := resolveConfig(t, "dev", c.o, c.lines...)
		if err != nil || !c.want(s) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestABadConfigurationIsQuotedAndNotGuessedAt(t *testing.T) {
	_, err := resolveConfig(t, "dev", Options{}, "Host dev", "  NoSuchOption \x1b[31m yes")
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "nosuchoption") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
	if _, err := resolveConfig(t, "dev", Options{}, "IdentityFile /x/${NO_SUCH_VARIABLE}"); err == nil || !strings.Contains(err.Error(), "NO_SUCH_VARIABLE") {
		t.Errorf("got %v", err)
	}
	_, err = Dial(t.Context(), Target{Host: "dev"}, Options{Options: []string{"NoSuchOption=1"}})
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
	args := sshArgs(Target{Host: "host"}, Options{})
	if n := len(args); n < 2 || args[n-2] != "--" {
		t.Errorf("the host does not stand behind --: %q", args)
	}
}

func TestTokensAreExpandedOnce(t *testing.T) {
	x := &expander{
		home:   "/home/me",
		tokens: map[byte]string{'%': "%", 'h': "host%p", 'p': "22", 'd': "/home/me"},
		getenv: func(k string) (string, bool) {
			v, ok := map[string]string{"A": "%h ${B}", "B": "b", "EMPTY": "", "SSH_AUTH_SOCK": "/sock"}[k]
			return v, ok
		},
	}
	for in, want := range map[string]string{
		"/plain": "/plain", "~": "/home/me", "~/.ssh/id": "/home/me/.ssh/id", "/a/~": "/a/~",
		"/%h": "/host%p", "/%%h": "/%h", "/${A}": "/%h ${B}", "/${EMPTY}x${B}": "/xb", "/$B": "/$B", "%d/x": "/home/me/x", "": "",
	} {
		if got, err := x.path(in); err != nil || got != want {
			t.Errorf("path(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"%", "/a%", "%q", "${", "${}", "${A", "${NONE}", "~nosuchuser-at-all/x"} {
		if got, err := x.path(in); err == nil {
			t.Errorf("path(%q) = %q, and no error", in, got)
		}
	}
	if got, err := x.expand("nc %h ${A}", false); err != nil || got != "nc host%p ${A}" {
		t.Errorf("a command's variables are the shell's: %q, %v", got, err)
	}
	for in, want := range map[string]string{"": "/sock", "SSH_AUTH_SOCK": "/sock", "none": "", "$B": "b", "$NONE": "", "~/a": "/home/me/a", "${B}/s": "b/s"} {
		if got, err := x.agent(in); err != nil || got != want {
			t.Errorf("agent(%q) = %q, %v; want %q", in, got, err, want)
		}
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

func FuzzParseSettings(f *testing.F) {
	f.Add("hostname h\nport 22\nuser u\nidentityfile ~/.ssh/id\nidentityfile /x/%h/${HOME}\n")
	f.Add("hostname h\r\nport 22\r\nidentityagent $SOCK\r\nuserknownhostsfile /a /b\n")
	f.Add("hostname\nport\n\n \nhostname x\nport 99999\n")
	f.Add("HostName x\nport 022\nproxyjump a,b\nstricthostkeychecking ask\nidentityfile none")
	f.Fuzz(func(t *testing.T, out string) {
		raw, err := parseSettings(out)
		if err != nil {
			return
		}
		s, err := expandSettings(Target{Host: "alias"}, raw, Options{})
		if err != nil {
			return
		}
		if s.Host == "" || s.Port < 1 || s.Port > 65535 || !slices.Contains([]string{"yes", "ask", "accept-new"}, s.StrictHostKey) {
			t.Fatalf("%q gives %+v", out, s)
		}
		for _, f := range append(s.IdentityFiles, s.IdentityAgent) {
			if strings.HasPrefix(f, "~/") && runtime.GOOS != "windows" {
				t.Fatalf("%q leaves %q unexpanded", out, f)
			}
		}
	})
}
