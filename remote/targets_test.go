//go:build linux

package remote

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// forced has the server's one key run a command whatever is asked for.
func (o *openSSH) forced(t *testing.T, command string) *sftpTarget {
	t.Helper()
	key, err := os.ReadFile(o.keys)
	must(t, err)
	key = []byte(string(key[strings.Index(string(key), "ssh-"):]))
	must(t, os.WriteFile(o.keys, append([]byte(`command="`+strings.ReplaceAll(command, `"`, `\"`)+`" `), key...), 0o600))
	return o.target(t)
}

// TestReport29Borgui970: a key with a forced command was reported as one that could not log in, as the
// command that was to prove the login did something else. A login is one here, and what the account
// then allows is found out.
func TestReport29Borgui970(t *testing.T) {
	home := sftpTemp(t)
	o := newOpenSSH(t, home, account(t, home, "/bin/bash"))
	for command, class := range map[string]string{
		"internal-sftp": "sftp",
		sftpTool(t, "/usr/lib/openssh/sftp-server"): "sftp",
		"echo checking in; exec internal":           "",
		"borg serve --restrict-to-path /backups":    "",
		"cat":                                       "", // waits for the end of its input, and repeats it
		"exec sleep 0.1":                            "",
		`echo "run as asked" >&2; eval "$SSH_ORIGINAL_COMMAND"`: "exec",
	} {
		t.Run(strings.Fields(command)[0], func(t *testing.T) {
			s := o.forced(t, command)
			if class != "" {
				s.visit(t, Options{}, class)
				return
			}
			c, err := Open(s.conn, Options{Dir: sftpDir})
			must(t, err)
			_, err = c.Publish(t.Context(), plainSkill().pin(t, "release"))
			if !errors.Is(err, ErrNoAccess) && !errors.Is(err, ErrReply) || errors.Is(err, transport.ErrAuth) {
				t.Errorf("%v", err)
			}
			if command == "echo checking in; exec internal" && !strings.Contains(err.Error(), "checking in") {
				t.Errorf("the account's words are missing: %v", err)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		s := o.forced(t, "exec sleep 60")
		files := newSFTPWay(s.conn, Options{Dir: sftpDir}) // commands have minutes, see idle
		conn, err := transport.Dial(t.Context(), transport.Target{Host: "real"}, transport.Options{ConfigFile: o.config, Idle: 500 * time.Millisecond})
		must(t, err)
		defer conn.Close()
		files.conn = conn
		if _, _, err = files.list(t.Context()); !errors.Is(err, transport.ErrTimeout) || !strings.Contains(transport.Hint(err), "forced command") {
			t.Errorf("%v; hint %q", err, transport.Hint(err))
		}
	})
}

func TestAnAccountThatIsOnlyLetInIsToldSo(t *testing.T) {
	nologin := sftpTool(t, "nologin", "/usr/sbin/nologin")
	home := sftpTemp(t)
	s := newOpenSSH(t, home, account(t, home, nologin)).target(t)
	c, err := Open(s.conn, Options{Dir: sftpDir})
	must(t, err)
	_, err = c.Publish(t.Context(), plainSkill().pin(t, "release"))
	if !errors.Is(err, ErrNoAccess) || !strings.Contains(err.Error(), "not available") || transport.Hint(err) == "" {
		t.Errorf("%v; hint %q", err, transport.Hint(err))
	}
}

func TestNologinWithSFTPInsideTheServerIsUsedBySFTP(t *testing.T) {
	nologin := sftpTool(t, "nologin", "/usr/sbin/nologin")
	home := sftpTemp(t)
	s := newOpenSSH(t, home, account(t, home, nologin), "ForceCommand internal-sftp").target(t)
	s.visit(t, Options{}, "sftp")
}

func TestAConfinedAccountOfSSHDIsUsedBySFTP(t *testing.T) {
	needRoot(t)
	root, err := os.MkdirTemp("/var/lib", "punnet-chroot-") // sshd wants root's all the way
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	must(t, os.Chmod(root, 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "home", "me"), 0o755))
	s := newOpenSSH(t, sftpTemp(t), nil, "ForceCommand internal-sftp -d /home/me", "ChrootDirectory "+root).target(t)
	b := plainSkill().pin(t, "release")
	c, err := Open(s.conn, Options{Dir: sftpDir})
	must(t, err)
	r := publishOne(t, c, b)
	want := "/home/me/.cache/" + sftpDir + "/" + b.Manifest.Digest().String() + "/release"
	if r.Outcome != Published || r.Path != want || c.Class() != "sftp" {
		t.Errorf("%+v by %s, want it at %s", r, c.Class(), want)
	}
	if d := recomputed(t, filepath.Join(root, filepath.Dir(want))); d != b.Manifest.Digest().String() {
		t.Errorf("the copy's digest is %s", d)
	}
}

func TestDropbearWithoutAnSFTPServerIsUsedByCommands(t *testing.T) {
	home := sftpTemp(t)
	s := dropbear(t, home, "/bin/sh", sftpTool(t, "sftp-server", "/usr/lib/openssh/sftp-server"))
	if _, err := s.conn.Files(t.Context()); !errors.Is(err, transport.ErrNoFiles) {
		t.Fatalf("SFTP: %v", err)
	}
	s.visit(t, Options{}, "exec")
	// Commands as long as they get, which dropbear bounds, and more than one, which it does not take at
	// the same time.
	c, err := Open(s.conn, Options{Dir: sftpDir})
	must(t, err)
	all := someDigests(400)
	for range 3 {
		copies, err := c.Check(t.Context(), all...)
		if err != nil || len(copies) != len(all) || copies[0].State != Absent {
			t.Fatalf("%d copies, %v", len(copies), err)
		}
	}
}

func TestADropbearAccountMayHaveAnyShell(t *testing.T) {
	for _, shell := range []string{"fish", "tcsh"} {
		dropbear(t, sftpTemp(t), shellNamed(t, shell, false)).visit(t, Options{}, "exec")
	}
}

// TestWindowsIsKnownByItsVersionAndServedBySFTPAlone has the in-process server play OpenSSH on
// Windows: its version, its paths, and a shell that must not be asked.
func TestWindowsIsKnownByItsVersionAndServedBySFTPAlone(t *testing.T) {
	asked := 0
	s := servedBy(t, transporttest.Options{Version: "SSH-2.0-OpenSSH_for_Windows_9.5", Accounts: []transporttest.Account{{
		Name: "user", Chroot: "/C:/Users/x",
		Shell: func(string) ([]string, string) { asked++; return nil, "'exec' is not recognized\r\n" },
	}}})
	b := plainSkill().pin(t, "release")
	c, err := Open(s.conn, Options{Dir: sftpDir})
	must(t, err)
	w := &wayTest{t: t, c: c, home: s.home, root: s.cache()}
	for _, want := range []Outcome{Published, Present, Repaired} {
		if want == Repaired {
			must(t, os.Remove(filepath.Join(s.copyOf(b.Manifest.Digest()), "release", "SKILL.md")))
		}
		r := publishOne(t, c, b)
		if r.Outcome != want || r.Path != "/C:/Users/x/.cache/"+sftpDir+"/"+b.Manifest.Digest().String()+"/release" {
			t.Errorf("%+v, want %s", r, want)
		}
		w.holds(b)
	}
	if asked != 0 || c.Class() != "sftp" {
		t.Errorf("the shell was asked %d times; class %q", asked, c.Class())
	}
}
