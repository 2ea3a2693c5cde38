package sshconfig

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

// resolveConfig resolves host with an ssh_config of these lines.
func resolveConfig(t *testing.T, host string, q Query, lines ...string) (*Settings, error) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	q.ConfigFile = filepath.Join(t.TempDir(), "config")
	write(t, q.ConfigFile, strings.Join(lines, "\n")+"\n")
	q.Host, q.Log = host, slog.New(slog.DiscardHandler)
	return Resolve(t.Context(), q)
}

func TestTheConfigurationIsReadAsSSHReadsIt(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/included", "Host dev\n  Port 2201\n")
	for name, c := range map[string]struct {
		lines []string
		q     Query
		want  func(s *Settings) bool
	}{
		"alias, Include": {
			lines: []string{"Include " + dir + "/included", "Host dev", "  HostName dev.example", "  User me"},
			want: func(s *Settings) bool {
				return s.Host == "dev.example" && s.User == "me" && s.Port == 2201 && s.Alias == "dev"
			},
		},
		"quoted Host": {
			lines: []string{`Host "dev"`, "  HostName quoted.example"},
			want:  func(s *Settings) bool { return s.Host == "quoted.example" },
		},
		"Match exec, Match final": {
			lines: []string{`Match originalhost dev exec "true"`, "  HostName matched.example", "Match final all", "  Port 99"},
			want:  func(s *Settings) bool { return s.Host == "matched.example" && s.Port == 99 },
		},
		"options win": {
			lines: []string{"Host dev", "  Port 1", "  User other"},
			q:     Query{Port: 7, User: "me", Options: []string{"HostName=o.example", "BatchMode=yes"}},
			want:  func(s *Settings) bool { return s.Port == 7 && s.User == "me" && s.Host == "o.example" && s.BatchMode },
		},
		"identity files in order, -i first": {
			lines: []string{"Host dev", "  IdentityFile /a/%r@%h", "  IdentityFile \"/b/with space\"", "  IdentitiesOnly yes", "  User me"},
			q:     Query{IdentityFiles: []string{"/first"}},
			want: func(s *Settings) bool {
				return slices.Equal(s.IdentityFiles, []string{"/first", "/a/me@dev", "/b/with space"}) && s.IdentitiesOnly && s.Unasked == nil
			},
		},
		"IdentityAgent none": {
			lines: []string{"IdentityAgent none"},
			want:  func(s *Settings) bool { return s.IdentityAgent == "" },
		},
		"a file of -i that is not there": {
			q: Query{IdentityFiles: []string{"/first", "/second"}},
			want: func(s *Settings) bool {
				return slices.Equal(s.IdentityFiles[:2], []string{"/first", "/second"}) && !slices.Contains(s.Unasked, "/first")
			},
		},
		"known hosts": {
			lines: []string{"UserKnownHostsFile " + dir + "/a ~/b", "GlobalKnownHostsFile none", "HostKeyAlias alias", "HashKnownHosts yes", "StrictHostKeyChecking no"},
			want: func(s *Settings) bool {
				home, _ := Query{}.home()
				return slices.Equal(s.UserKnownHosts, []string{dir + "/a", home + "/b"}) && s.GlobalKnownHosts == nil &&
					s.HostKeyAlias == "alias" && s.HashKnownHosts && s.StrictHostKey == "accept-new"
			},
		},
		"the rest": {
			lines: []string{"ConnectTimeout 3", "AddressFamily inet", "BindAddress 127.0.0.1", "Ciphers aes128-ctr", "ProxyCommand nc %h %p", "PubkeyAuthentication no"},
			want: func(s *Settings) bool {
				return s.ConnectTimeout == 3*time.Second && s.AddressFamily == "inet" && s.BindAddress == "127.0.0.1" &&
					slices.Equal(s.Ciphers, []string{"aes128-ctr"}) && s.ProxyCommand == "nc dev 22" && !s.PubkeyAuth
			},
		},
		"nothing configured": {
			want: func(s *Settings) bool {
				return s.Host == "dev" && s.Port == 22 && s.User != "" && len(s.Unasked) >= 3 && slices.Equal(s.IdentityFiles, s.Unasked) && s.StrictHostKey == "ask"
			},
		},
	} {
		s, err := resolveConfig(t, "dev", c.q, c.lines...)
		if err != nil || !c.want(s) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestABadConfigurationIsQuotedAndNotGuessedAt(t *testing.T) {
	_, err := resolveConfig(t, "dev", Query{}, "Host dev", "  NoSuchOption \x1b[31m yes")
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "nosuchoption") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v", err)
	}
	if _, err := resolveConfig(t, "dev", Query{}, "IdentityFile /x/${NO_SUCH_VARIABLE}"); err == nil || !strings.Contains(err.Error(), "NO_SUCH_VARIABLE") {
		t.Errorf("got %v", err)
	}
}

func TestTheHostStandsBehindTheOptions(t *testing.T) {
	args := Query{Host: "host"}.Args()
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

func FuzzParseAnswer(f *testing.F) {
	f.Add("hostname h\nport 22\nuser u\nidentityfile ~/.ssh/id\nidentityfile /x/%h/${HOME}\n")
	f.Add("hostname h\r\nport 22\r\nidentityagent $SOCK\r\nuserknownhostsfile /a /b\n")
	f.Add("hostname\nport\n\n \nhostname x\nport 99999\n")
	f.Add("HostName x\nport 022\nproxyjump a,b\nstricthostkeychecking ask\nidentityfile none")
	f.Fuzz(func(t *testing.T, out string) {
		raw, err := parseAnswer(out)
		if err != nil {
			return
		}
		s, err := expandSettings(raw, Query{Host: "alias"})
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

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// writeDeep writes a file and the directories above it.
func writeDeep(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, text)
}
