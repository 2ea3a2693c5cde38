//go:build linux

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// account has a server that is started by the words it returns find root with this home and login
// shell, and the programs to hide empty, in a mount namespace of its own.
func account(t *testing.T, home, shell string, hide ...string) []string {
	t.Helper()
	needRoot(t)
	passwd, err := os.ReadFile("/etc/passwd")
	must(t, err)
	mine := filepath.Join(t.TempDir(), "passwd")
	line := "root:x:0:0:root:" + strings.ReplaceAll(home, "$", "$$") + ":" + shell
	must(t, os.WriteFile(mine, regexp.MustCompile(`(?m)^root:.*$`).ReplaceAll(passwd, []byte(line)), 0o644))
	script := `mount --bind "$0" /etc/passwd && `
	for _, program := range hide {
		script += "mount --bind /dev/null " + quoted(program) + " && "
	}
	by := []string{"unshare", "-m", "/bin/sh", "-c", script + `exec "$@"`, mine}
	if out, err := exec.Command(by[0], append(by[1:], "true")...).CombinedOutput(); err != nil {
		testenv.Missing(t, "the right to mount: "+string(out))
	}
	return by
}

// dropbear starts dropbear for an account with this home and login shell.
func dropbear(t *testing.T, home, shell string, hide ...string) *sftpTarget {
	t.Helper()
	bin := sftpTool(t, "dropbear", "/usr/sbin/dropbear")
	by := account(t, home, shell, hide...)
	addr := freeAddr(t)
	dir := sftpTemp(t)
	config := opensshFiles(t, dir, home, addr.Port, nil)
	key, err := os.ReadFile(filepath.Join(dir, "id.pub"))
	must(t, err)
	must(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	must(t, os.WriteFile(filepath.Join(home, ".ssh", "authorized_keys"), key, 0o600))
	host := filepath.Join(dir, "dropbear_host")
	if out, err := exec.Command(sftpTool(t, "dropbearkey"), "-t", "ed25519", "-f", host).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	serveAt(t, addr, append(by, bin, "-F", "-E", "-s", "-m", "-r", host, "-p", addr.String(), "-P", filepath.Join(dir, "pid"))...)
	c, err := transport.Dial(t.Context(), transport.Target{Host: "real"}, transport.Options{ConfigFile: config,
		Options: []string{"UserKnownHostsFile=" + filepath.Join(dir, "new"), "StrictHostKeyChecking=accept-new"}})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return &sftpTarget{c, home}
}

// pays a visit to a target: publishes, finds, damages, repairs, lists, by the way it should allow.
func (s *sftpTarget) visit(t *testing.T, o Options, class string) {
	t.Helper()
	o.Dir = sftpDir
	c, err := Open(s.conn, o)
	must(t, err)
	b := plainSkill().pin(t, "release")
	w := &wayTest{t: t, c: c, home: s.home, root: s.cache()}
	w.result(b, Published)
	w.holds(b)
	must(t, os.WriteFile(filepath.Join(s.copyOf(b.Manifest.Digest()), "release", "extra"), nil, 0o600))
	w.result(b, Repaired)
	w.result(b, Present)
	w.holds(b)
	copies, err := c.Check(t.Context(), b.Manifest.Digest())
	must(t, err)
	if copies[0].State != Whole || copies[0].Path != filepath.Join(s.copyOf(b.Manifest.Digest()), "release") {
		t.Errorf("check says %+v", copies)
	}
	if c.Class() != class {
		t.Errorf("class %q, want %q", c.Class(), class)
	}
	must(t, os.RemoveAll(filepath.Join(s.home, ".cache")))
}

// TestWhatALoginShellLeftRunningIsNotWaitedFor: it holds the command's output, and the answer is there.
func TestWhatALoginShellLeftRunningIsNotWaitedFor(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	s := opensshTarget(t, `ForceCommand sleep 100 & echo $! >>`+pids+`; eval "$SSH_ORIGINAL_COMMAND"`)
	t.Cleanup(func() {
		text, err := os.ReadFile(pids)
		must(t, err)
		for pid := range strings.FieldsSeq(string(text)) {
			exec.Command("kill", pid).Run()
		}
	})
	skillTree{t, s.home}.put(".agents/skills/s/SKILL.md", plainFront)
	began := time.Now()
	l := listCollections(t, s.conn, Options{}, discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 9}}})
	if len(l.Collections) != 1 || len(l.Collections[0].Entries) != 1 {
		t.Errorf("%+v", l)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}
