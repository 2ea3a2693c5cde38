package sshconfig

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

// eachWay resolves q with an ssh_config of lines in both ways, and calls check with each answer and
// what was logged.
func eachWay(t *testing.T, q Query, lines string, check func(t *testing.T, s *Settings, err error, log string)) {
	t.Helper()
	q.ConfigFile = filepath.Join(t.TempDir(), "config")
	write(t, q.ConfigFile, lines)
	q.Host = firstOf(q.Host, "dev")
	t.Run("with ssh", func(t *testing.T) {
		if _, err := exec.LookPath("ssh"); err != nil {
			testenv.Missing(t, "ssh")
		}
		var log bytes.Buffer
		q.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Resolve(t.Context(), q)
		check(t, s, err, log.String())
	})
	t.Run("without ssh", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		var log bytes.Buffer
		q.Log = slog.New(slog.NewTextHandler(&log, nil))
		s, err := Resolve(t.Context(), q)
		check(t, s, err, log.String())
	})
}

func TestReport1K0sctl1140AnUnrelatedMatchExecStopsNoOtherHost(t *testing.T) {
	lines := `Match host unrelated.example exec "exit 3"
  Port 1
Match exec "false"
  ProxyCommand /nonexistent
Host dev
  HostName dev.example
  Port 2222
`
	eachWay(t, Query{}, lines, func(t *testing.T, s *Settings, err error, log string) {
		if err != nil || s.Host != "dev.example" || s.Port != 2222 || s.ProxyCommand != "" {
			t.Fatalf("%+v, %v", s, err)
		}
		if skipped := strings.Contains(log, "config:3"); skipped != strings.HasSuffix(t.Name(), "without_ssh") || strings.Contains(log, "config:1 ") {
			t.Errorf("logged %s", log)
		}
	})
}

func TestReport2Boring20FedorasMatchFinalAllIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/50-redhat.conf", `# The options here are in the "Match final block" to be applied as the last
Match final all
	# Follow system-wide Crypto Policy, if defined:
	Include `+dir+`/openssh.config
	GSSAPIAuthentication yes
	ForwardX11Trusted yes
	SendEnv LANG LC_CTYPE
	SendEnv XMODIFIERS
`)
	write(t, dir+"/openssh.config", "Ciphers aes256-ctr\n")
	eachWay(t, Query{}, "Include "+dir+"/50-redhat.conf\nHost dev\n  User me\n", func(t *testing.T, s *Settings, err error, log string) {
		if err != nil || s.User != "me" || !s.GSSAPIAuth || !slices.Equal(s.SendEnv, []string{"LANG", "LC_CTYPE", "XMODIFIERS"}) || !slices.Equal(s.Ciphers, []string{"aes256-ctr"}) {
			t.Errorf("%+v, %v", s, err)
		}
		if strings.Contains(log, "skipped") {
			t.Errorf("logged %s", log)
		}
	})
}

func TestReport10Earthly3179IdentityAgentIsHonoured(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "/run/default")
	t.Setenv("OTHER", "/run/other")
	home, err := Query{}.home()
	if err != nil {
		t.Fatal(err)
	}
	for written, want := range map[string]string{
		`"~/Library/Group Containers/agent.sock"`: home + "/Library/Group Containers/agent.sock",
		"$OTHER": "/run/other", "${OTHER}.sock": "/run/other.sock", "$UNSET_ONE": "", "none": "", "SSH_AUTH_SOCK": "/run/default",
		"/run/%r@%h": "/run/me@dev.example",
	} {
		eachWay(t, Query{User: "me"}, "HostName dev.example\nIdentityAgent "+written+"\n", func(t *testing.T, s *Settings, err error, _ string) {
			if err != nil || s.IdentityAgent != want {
				t.Errorf("%s: %+v, %v", written, s, err)
			}
		})
	}
	eachWay(t, Query{}, "", func(t *testing.T, s *Settings, err error, _ string) {
		if err != nil || s.IdentityAgent != "/run/default" {
			t.Errorf("not configured: %+v, %v", s, err)
		}
	})
}

func TestEveryDirectiveArrivesInTheSettings(t *testing.T) {
	dir := t.TempDir()
	home, err := Query{}.home()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lines string
		want  func(s *Settings) bool
	}{
		"Match user, originalhost, final": {
			"Host dev\n HostName h.example\n User me\nMatch user me originalhost dev\n Port 7\nMatch final host h.example\n Compression yes\n",
			func(s *Settings) bool { return s.Port == 7 && s.Compression && s.Host == "h.example" },
		},
		"identities": {
			"IdentityFile ~/.ssh/a\nIdentityFile \"" + dir + "/b c\"\nIdentityFile /%n/%r\nIdentitiesOnly yes\nUser me\n",
			func(s *Settings) bool {
				return s.IdentitiesOnly && s.Unasked == nil && slices.Equal(s.IdentityFiles, []string{home + "/.ssh/a", dir + "/b c", "/dev/me"})
			},
		},
		"one default identity that was asked for": {
			"IdentityFile ~/.ssh/id_ed25519\n",
			func(s *Settings) bool { return len(s.IdentityFiles) == 1 && s.Unasked == nil },
		},
		"certificates": {
			"HostName h.example\nUser me\nCertificateFile ~/%h-%r-cert.pub\nCertificateFile /%%\n",
			func(s *Settings) bool {
				return slices.Equal(s.Certificates, []string{home + "/h.example-me-cert.pub", "/%"})
			},
		},
		"jumps": {
			"ProxyJump a@b:22,c\n",
			func(s *Settings) bool {
				return slices.Equal(s.ProxyJump, []string{"a@b:22", "c"}) && s.ProxyCommand == ""
			},
		},
		"no jumps": {"ProxyJump none\n", func(s *Settings) bool { return s.ProxyJump == nil && s.ProxyCommand == "" }},
		"a proxy": {
			"HostName h.example\nUser me\nPort 7\nProxyCommand run %h '%n' \"%r\" %p 100%% \\\" # ${HOME}\n",
			func(s *Settings) bool { return s.ProxyCommand == `run h.example 'dev' "me" 7 100% \" # ${HOME}` },
		},
		"known hosts": {
			"HostKeyAlias k\nUserKnownHostsFile \"" + dir + "/a b\" ~/c " + dir + "/%h\nGlobalKnownHostsFile \"" + dir + "/d e/f\" /g\nHashKnownHosts yes\nStrictHostKeyChecking yes\nRevokedHostKeys ~/r\nKnownHostsCommand /x %H\n",
			func(s *Settings) bool {
				return s.HostKeyAlias == "k" && s.HashKnownHosts && s.StrictHostKey == "yes" && s.RevokedHostKeys == home+"/r" && s.KnownHostsCommand == "/x %H" &&
					slices.Equal(s.UserKnownHosts, []string{dir + "/a b", home + "/c", dir + "/dev"}) && slices.Equal(s.GlobalKnownHosts, []string{dir + "/d e/f", "/g"})
			},
		},
		"algorithms": {
			"KexAlgorithms curve25519-sha256\nCiphers aes128-ctr,aes256-ctr\nMACs hmac-sha1\nHostKeyAlgorithms ssh-ed25519\nPubkeyAcceptedAlgorithms rsa-sha2-512\nCASignatureAlgorithms ssh-ed25519\nRequiredRSASize 3072\n",
			func(s *Settings) bool {
				return slices.Equal(s.Kex, []string{"curve25519-sha256"}) && slices.Equal(s.Ciphers, []string{"aes128-ctr", "aes256-ctr"}) && slices.Equal(s.MACs, []string{"hmac-sha1"}) &&
					slices.Equal(s.HostKeyAlgorithms, []string{"ssh-ed25519"}) && slices.Equal(s.PubkeyAlgorithms, []string{"rsa-sha2-512"}) && s.RequiredRSASize == 3072
			},
		},
		"algorithms more": {
			"KexAlgorithms +diffie-hellman-group1-sha1\nHostKeyAlgorithms +ssh-rsa\nPubkeyAcceptedAlgorithms +ssh-rsa\n",
			func(s *Settings) bool {
				n := len(s.Kex)
				return n > 3 && s.Kex[n-1] == "diffie-hellman-group1-sha1" && slices.Contains(s.HostKeyAlgorithms, "ssh-rsa") &&
					slices.Contains(s.HostKeyAlgorithms, "ssh-ed25519") && slices.Contains(s.PubkeyAlgorithms, "ssh-rsa")
			},
		},
		"algorithms less and first": {
			"KexAlgorithms -diffie-hellman-*,ecdh-*\nCiphers ^aes256-ctr\nMACs -*-etm@openssh.com\n",
			func(s *Settings) bool {
				has := func(names []string, part string) bool {
					return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, part) })
				}
				return len(s.Kex) > 0 && !has(s.Kex, "diffie") && !has(s.Kex, "ecdh-") && has(s.Kex, "curve25519") && s.Ciphers[0] == "aes256-ctr" && len(s.Ciphers) > 3 &&
					len(s.MACs) > 0 && !has(s.MACs, "-etm@")
			},
		},
		"environment": {
			"SendEnv LANG LC_*\nSetEnv A=\"x  y\" B= \"C='q' d\"\n",
			func(s *Settings) bool {
				return slices.Equal(s.SendEnv, []string{"LANG", "LC_*"}) && slices.Equal(s.SetEnv, []string{"A=x  y", "B=", "C='q' d"})
			},
		},
		"liveness": {
			"ServerAliveInterval 1m\nServerAliveCountMax 2\nConnectTimeout 5\nConnectionAttempts 3\n",
			func(s *Settings) bool {
				return s.AliveInterval == time.Minute && s.AliveCountMax == 2 && s.ConnectTimeout == 5*time.Second && s.ConnectAttempts == 3
			},
		},
		"authentication": {
			"PreferredAuthentications publickey,keyboard-interactive\nBatchMode yes\nPasswordAuthentication no\nNumberOfPasswordPrompts 1\nAddKeysToAgent yes\nPKCS11Provider /p11\nGSSAPIAuthentication yes\n",
			func(s *Settings) bool {
				return slices.Equal(s.PreferredAuth, []string{"publickey", "keyboard-interactive"}) && s.BatchMode && !s.PasswordAuth && s.InteractiveAuth &&
					s.PasswordPrompts == 1 && s.AddKeysToAgent == "yes" && s.PKCS11Provider == "/p11" && s.GSSAPIAuth && s.PubkeyAuth
			},
		},
		"addresses": {
			"AddressFamily inet\nBindAddress 127.0.0.1\nBindInterface lo\n",
			func(s *Settings) bool {
				return s.AddressFamily == "inet" && s.BindAddress == "127.0.0.1" && s.BindInterface == "lo"
			},
		},
		"a shared connection": {
			"User me\nPort 7\nControlPath ~/.ssh/%r@%h:%p\n",
			func(s *Settings) bool { return s.ControlPath == home+"/.ssh/me@dev:7" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, Query{}, c.lines, func(t *testing.T, s *Settings, err error, log string) {
				if err != nil || !c.want(s) || strings.Contains(log, "skipped") {
					t.Errorf("%+v, %v\n%s", s, err, log)
				}
			})
		})
	}
}

func TestTheCommandLineWins(t *testing.T) {
	eachWay(t, Query{User: "me", Port: 7, Options: []string{"Compression=yes"}}, "User x\nPort 1\nCompression no\n", func(t *testing.T, s *Settings, err error, _ string) {
		if err != nil || s.User != "me" || s.Port != 7 || !s.Compression {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestMatchExecIsAskedOfSSHAndSkippedWithoutIt(t *testing.T) {
	eachWay(t, Query{}, "Match host dev exec \"test %n = dev\"\n  Port 7\nMatch host other exec true\n Port 8\n", func(t *testing.T, s *Settings, err error, log string) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(t.Name(), "with_ssh") {
			if s.Port != 7 || strings.Contains(log, "WARN") {
				t.Errorf("%+v\n%s", s, log)
			}
			return
		}
		if s.Port != 22 || strings.Count(log, "WARN") != 1 || !strings.Contains(log, "config:1") || !strings.Contains(log, "exec") || !strings.Contains(log, "Match host dev exec") {
			t.Errorf("%+v\n%s", s, log)
		}
	})
}

func TestCriteriaThatNobodyCanTellSkipTheirBlockAlone(t *testing.T) {
	lines := "Match localnetwork 10.0.0.0/8\n Port 1\nMatch tagged x host other\n Port 2\nMatch host dev tagged x\n Port 3\nMatch somethingnew\n Port 4\nMatch final\n User me\n"
	var log bytes.Buffer
	q := Query{Host: "dev", Log: slog.New(slog.NewTextHandler(&log, nil)), ConfigFile: filepath.Join(t.TempDir(), "config")}
	write(t, q.ConfigFile, lines)
	s, err := readHere(t, q)
	if err != nil || s.Port != 22 || s.User != "me" || strings.Count(log.String(), "WARN") != 3 {
		t.Errorf("%+v, %v\n%s", s, err, &log)
	}
}

func TestAnUnknownKeywordIsToldAndSkipped(t *testing.T) {
	var log bytes.Buffer
	q := Query{Host: "dev", Log: slog.New(slog.NewTextHandler(&log, nil)), ConfigFile: filepath.Join(t.TempDir(), "config")}
	write(t, q.ConfigFile, "IgnoreUnknown Quiet*\nQuietOne 1\nNoSuch\x1b[31m yes\nPort 5\nHost other\n  Port abc\n")
	s, err := readHere(t, q)
	if err != nil || s.Port != 5 || strings.Count(log.String(), "WARN") != 2 || !strings.Contains(log.String(), "config:3") || !strings.Contains(log.String(), "config:6") ||
		strings.Contains(strings.ToLower(log.String()), "quiet") || strings.Contains(log.String(), "\x1b") {
		t.Errorf("%+v, %v\n%s", s, err, &log)
	}
}

func TestANameThatAShellWouldReadIsRefusedBeforeAnythingRuns(t *testing.T) {
	pwned := filepath.Join(t.TempDir(), "pwned")
	lines := "ProxyCommand sh -c 'echo %h %n %r'\nMatch exec \"echo %n %h %r\"\n  Port 7\n"
	for _, name := range []string{
		"$(touch " + pwned + ")", "`touch " + pwned + "`", "x;touch${IFS}" + pwned, "x'y", `x"y`, "x&y", "x|y", "x>y", "x<y", "x(y", "x{y", "x$y", `xy\`, "-x", "x\ny", "x y",
	} {
		for _, q := range []Query{{Host: name}, {Host: "dev", User: name}} {
			eachWay(t, q, lines, func(t *testing.T, s *Settings, err error, _ string) {
				if err == nil || !strings.Contains(err.Error(), "shell") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q: %+v, %v", name, s, err)
				}
			})
		}
	}
	if exists(pwned) {
		t.Error("it was run")
	}
	eachWay(t, Query{Host: "fe80::1%eth0", User: `DOMAIN\me@corp.example`}, "", func(t *testing.T, s *Settings, err error, _ string) {
		if err != nil || s.Host != "fe80::1%eth0" || s.User != `DOMAIN\me@corp.example` {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestSourcesSayWhichFileAndLineDecided(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/inc", "Host other\n Port 1\nHost d*\n Port 2\n")
	eachWay(t, Query{}, "Include "+dir+"/inc\nHost dev\n User me\nMatch user me host dev\n Compression yes\nMatch user you\n Port 9\n", func(t *testing.T, s *Settings, err error, _ string) {
		if err != nil {
			t.Fatal(err)
		}
		config := strings.TrimSuffix(s.Sources[0], ":")
		want := []string{config, dir + "/inc", dir + "/inc:3: Host d*", config + ":2: Host dev", config + ":4: Match user me host dev"}
		if !slices.Equal(s.Sources, want) {
			t.Errorf("got %q\nwant %q", s.Sources, want)
		}
	})
}

func TestValuesThatMayBeSecretsAreNotTold(t *testing.T) {
	q := Query{Options: []string{"SetEnv=TOKEN=hunter2", "Compression yes"}}
	eachWay(t, q, "Host other\n  SetEnv \"TOKEN=hunter2\nHost dev\n", func(t *testing.T, s *Settings, err error, log string) {
		told := log
		if err != nil {
			told += err.Error() // ssh does not read on
		} else {
			told += strings.Join(s.Sources, "\n")
			if !slices.Equal(s.SetEnv, []string{"TOKEN=hunter2"}) || !slices.Equal(s.Sources[:2], []string{"command line: setenv", "command line: compression"}) {
				t.Errorf("%+v", s)
			}
		}
		if strings.Contains(told, "hunter2") {
			t.Errorf("told: %s", told)
		}
	})
	for _, option := range []string{"SetEnv hunter2", "SetEnv=\"A=hunter2"} {
		bad := quiet("dev")
		bad.ConfigFile, bad.Options = os.DevNull, []string{option}
		if _, err := readHere(t, bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}
