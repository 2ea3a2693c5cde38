//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// The tests here are named for public reports of what users of other tools met, by their numbers in
// a list of thirty; the others are in the packages where they belong.

// loginShell publishes to an account of sshd whose login shell this is, by commands and by SFTP,
// whose server the shell starts too. rc is the shell's start file below the home, and what it holds.
func loginShell(t *testing.T, shell, rc, text string) {
	t.Helper()
	home := sftpTemp(t)
	if rc != "" {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, rc)), 0o755))
		must(t, os.WriteFile(filepath.Join(home, rc), []byte(text), 0o644))
	}
	o := newOpenSSH(t, home, account(t, home, shellNamed(t, shell, false)))
	if rc != "" {
		var out strings.Builder
		must(t, o.target(t).conn.Exec(t.Context(), transport.Cmd{Line: "true", Stdout: &out}))
		if strings.Contains(text, "echo") && out.Len() == 0 {
			t.Errorf("%s did not read %s", shell, rc)
		}
	}
	o.target(t).visit(t, Options{}, "exec")
	o.target(t).visit(t, Options{NoExec: true}, "sftp")
}

// TestReport12Mutagen26: commands joined by && failed where the login shell is fish, which had no
// such thing. What is sent holds one command for the login shell.
func TestReport12Mutagen26(t *testing.T) { loginShell(t, "fish", "", "") }

// TestReport13Mutagen366: tcsh's exit status for a program that it does not find was taken for that
// of a POSIX shell. Here no status means anything: an answer between nonces does, or its absence.
func TestReport13Mutagen366(t *testing.T) {
	loginShell(t, "tcsh", "", "")
	for _, status := range []int{0, 1, 126, 127, 255} {
		s := served(t, transporttest.Account{Name: "user", Shell: func(string) ([]string, string) {
			return []string{"/bin/sh", "-c", fmt.Sprint("exit ", status)}, ""
		}})
		s.visit(t, Options{}, "sftp")
	}
}

// TestReport14Mutagen393: a .bashrc that prints broke the protocol of whoever spoke over the shell's
// output. Here what comes before the answer is skipped, of commands and of SFTP.
func TestReport14Mutagen393(t *testing.T) {
	loginShell(t, "bash", ".bashrc", "echo Welcome to the machine; printf 'no line end'; echo oops >&2\n")
}

// TestReport15Mutagen251: where the default shell is PowerShell, or cmd.exe, commands meant for a
// POSIX shell failed and nothing else was tried. Here such an account is used by SFTP.
func TestReport15Mutagen251(t *testing.T) {
	for name, words := range map[string]string{
		"PowerShell": "exec : The term 'exec' is not recognized as the name of a cmdlet, function, script file, or operable\r\nprogram.\r\n" +
			"    + FullyQualifiedErrorId : CommandNotFoundException\r\n",
		"cmd.exe": "'exec' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := served(t, transporttest.Account{Name: "user", Shell: func(string) ([]string, string) { asked++; return nil, words }})
			s.visit(t, Options{}, "sftp")
			if asked != 1 {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
}

// TestReport16VSCode404 is also vscode-remote-release#2509: start-up scripts written for a POSIX shell
// failed under fish and tcsh, the more so when their start files print.
func TestReport16VSCode404(t *testing.T) {
	loginShell(t, "fish", ".config/fish/config.fish", "echo Welcome to fish\n")
	loginShell(t, "tcsh", ".cshrc", "echo Welcome to tcsh\n")
}

// TestReport17Zed41469: a change in quoting broke nushell, which has no escapes between single
// quotes, no backslashes outside, and meanings of its own for what POSIX leaves alone.
func TestReport17Zed41469(t *testing.T) {
	s := served(t, transporttest.Account{Name: "user", Shell: nushell})
	s.visit(t, Options{}, "exec")
}

// TestReport17Zed49647: the same for fish, for which \' and \\ between single quotes are escapes.
func TestReport17Zed49647(t *testing.T) {
	home := sftpTemp(t)
	o := newOpenSSH(t, home, account(t, home, shellNamed(t, "fish", false)))
	for range 3 { // nonces and digests differ
		o.target(t).visit(t, Options{}, "exec")
	}
}

// nushell takes a line apart by nushell's rules, as far as they matter: words between single quotes
// stand for themselves, bare words too as long as nothing in them means something.
func nushell(line string) ([]string, string) {
	var words []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimLeft(rest, " ") {
		if raw, quoted := strings.CutPrefix(rest, "'"); quoted {
			word, after, ok := strings.Cut(raw, "'")
			if !ok || after != "" && after[0] != ' ' {
				return nil, "Error: nu::parser::unexpected_eof\n"
			}
			words, rest = append(words, word), after
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		if strings.ContainsAny(word, "'\"`$(){}[];|&<>#*?~\\\n") {
			return nil, "Error: nu::parser::parse_mismatch\n"
		}
		words, rest = append(words, word), after
	}
	if len(words) < 2 || words[0] != "exec" {
		return nil, "Error: nu::shell::external_command\n"
	}
	return words[1:], ""
}

// TestReport19Rclone6552: fish was taken for another shell, and files with a $ in their names went
// astray. Here names never pass through a login shell, and the home's only by the environment.
func TestReport19Rclone6552(t *testing.T) {
	home := filepath.Join(sftpTemp(t), "the $HOME of $USER")
	must(t, os.Mkdir(home, 0o755))
	o := newOpenSSH(t, home, account(t, home, shellNamed(t, "fish", false)))
	b := plainSkill().with("$PATH", "a").with("costs/$5 (or %COMSPEC%)", "b").pin(t, "release")
	for _, noExec := range []bool{false, true} {
		s := o.target(t)
		c, err := Open(s.conn, Options{Dir: sftpDir, NoExec: noExec})
		must(t, err)
		w := &wayTest{t: t, c: c, home: s.home, root: s.cache()}
		w.result(b, Published)
		w.holds(b)
		must(t, os.RemoveAll(filepath.Join(s.home, ".cache")))
	}
}

// served is an account of the in-process server.
func served(t *testing.T, a transporttest.Account) *sftpTarget {
	t.Helper()
	return servedBy(t, transporttest.Options{Accounts: []transporttest.Account{a}})
}

func servedBy(t *testing.T, o transporttest.Options) *sftpTarget {
	t.Helper()
	o.Dir = sftpTemp(t)
	s, err := transporttest.Start(o)
	must(t, err)
	client, err := s.Client(t.Context(), "user")
	must(t, err)
	c := transport.NewConn(client, transport.Options{})
	t.Cleanup(func() {
		c.Close()
		client.Close()
		s.Close()
	})
	return &sftpTarget{c, s.Home("user")}
}

// TestReport20Rclone1541: after the client's address changed, what it sent went nowhere and nothing
// came back, and the copy stalled for ever.
func TestReport20Rclone1541(t *testing.T) {
	for _, noExec := range []bool{false, true} {
		t.Run(fmt.Sprintf("SFTP alone %v", noExec), func(t *testing.T) {
			s, err := transporttest.Start(transporttest.Options{Dir: sftpTemp(t)})
			must(t, err)
			defer s.Close()
			s.SetFaults(transporttest.Faults{StallReceived: 300 << 10})
			conn, err := transport.Dial(t.Context(), transport.Target{Host: "user"}, transport.Options{
				ConfigFile: s.ConfigFile(), Idle: 500 * time.Millisecond, Keepalive: 300 * time.Millisecond})
			must(t, err)
			defer conn.Close()
			c, err := Open(conn, Options{Dir: sftpDir, NoExec: noExec})
			must(t, err)
			start := time.Now()
			_, err = c.Publish(t.Context(), noiseSkill(8<<20).pin(t, "release"))
			if !errors.Is(err, transport.ErrTimeout) && !errors.Is(err, transport.ErrLost) || time.Since(start) > 30*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	}
}

// TestReport22Backendai11772: dropbear starts SFTP through the login shell, whose start file printed
// into the protocol, and the client took the text for the length of a message ("message too long").
func TestReport22Backendai11772(t *testing.T) {
	home := sftpTemp(t)
	must(t, os.WriteFile(filepath.Join(home, ".bashrc"), []byte("echo Welcome to the container\n"), 0o644))
	dropbear(t, home, "/bin/bash").visit(t, Options{}, "exec")
	must(t, os.RemoveAll(filepath.Join(home, ".ssh")))
	dropbear(t, home, "/bin/bash").visit(t, Options{NoExec: true}, "sftp")
}

// TestReport26Coder16568: a file copied to a relative place was not where a command looked for it, for
// the two started in different directories. Both ways here find one cache.
func TestReport26Coder16568(t *testing.T) {
	s := served(t, transporttest.Account{Name: "user", Start: "project"})
	oneCache(t, s)
	home := sftpTemp(t)
	must(t, os.WriteFile(filepath.Join(home, ".bashrc"), []byte("mkdir -p ~/project; cd ~/project\n"), 0o644))
	oneCache(t, newOpenSSH(t, home, account(t, home, "/bin/bash")).target(t))
}

// oneCache publishes by commands and looks by SFTP.
func oneCache(t *testing.T, s *sftpTarget) {
	t.Helper()
	b := plainSkill().pin(t, "release")
	c, err := Open(s.conn, Options{Dir: sftpDir})
	must(t, err)
	r := publishOne(t, c, b)
	files, err := Open(s.conn, Options{Dir: sftpDir, NoExec: true})
	must(t, err)
	copies, err := files.Check(t.Context(), b.Manifest.Digest())
	must(t, err)
	if c.Class() != "exec" || copies[0].State != Whole || copies[0].Path != r.Path {
		t.Errorf("by %s at %s, by SFTP %+v", c.Class(), r.Path, copies[0])
	}
}

// TestReport27Restic3524 is also rclone#1316: a transfer that was cut off left part of a file under its
// final name, where it passed for the whole. Here the name is absent or whole at every cut.
func TestReport27Restic3524(t *testing.T) {
	b := noiseSkill(200<<10).pin(t, "release")
	for _, noExec := range []bool{false, true} {
		for _, at := range []int64{20 << 10, 60 << 10, 120 << 10, 180 << 10, 210 << 10} {
			t.Run(fmt.Sprintf("SFTP alone %v, %d", noExec, at), func(t *testing.T) {
				s := servedBy(t, transporttest.Options{Faults: transporttest.Faults{CutReceived: at}})
				c, err := Open(s.conn, Options{Dir: sftpDir, NoExec: noExec})
				must(t, err)
				_, err = c.Publish(t.Context(), b)
				if at < 200<<10 && err == nil {
					t.Error("the cut was not noticed")
				}
				copied := s.copyOf(b.Manifest.Digest())
				if _, serr := os.Lstat(copied); serr == nil {
					if d := recomputed(t, copied); d != b.Manifest.Digest().String() {
						t.Errorf("%d bytes: part of the bundle has its name", at)
					}
				} else if err == nil {
					t.Error("published, and not there")
				}
			})
		}
	}
}
