package remote

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

const sftpDir = "berry/skills"

// sftpTarget is a machine to publish to, whose files the test sees.
type sftpTarget struct {
	conn transport.Conn
	home string
}

func (s *sftpTarget) way() *sftpWay                 { return newSFTPWay(s.conn, Options{Dir: sftpDir}) }
func (s *sftpTarget) cache() string                 { return filepath.Join(s.home, ".cache", sftpDir) }
func (s *sftpTarget) copyOf(d bundle.Digest) string { return filepath.Join(s.cache(), d.String()) }

// reset empties the start directory and makes it what it was.
func (s *sftpTarget) reset(t *testing.T) {
	t.Helper()
	must(t, os.Chmod(s.home, 0o755))
	entries, err := os.ReadDir(s.home)
	must(t, err)
	for _, e := range entries {
		must(t, os.RemoveAll(filepath.Join(s.home, e.Name())))
	}
}

// onSFTPTargets runs a test on this machine's files, on the in-process server, and on OpenSSH's.
func onSFTPTargets(t *testing.T, test func(t *testing.T, s *sftpTarget)) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "modes and links as Unix has them")
	}
	t.Run("local", func(t *testing.T) { test(t, localTarget(t)) })
	t.Run("in-process", func(t *testing.T) { test(t, inProcessTarget(t, transporttest.Faults{})) })
	t.Run("openssh", func(t *testing.T) { test(t, opensshTarget(t)) })
}

func localTarget(t *testing.T) *sftpTarget {
	home := sftpTemp(t)
	t.Setenv("HOME", home)
	c := transport.Local()
	t.Cleanup(func() { c.Close() })
	return &sftpTarget{c, home}
}

func inProcessTarget(t *testing.T, f transporttest.Faults) *sftpTarget {
	t.Helper()
	s, err := transporttest.Start(transporttest.Options{Dir: sftpTemp(t), Faults: f})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Home("user"), 0o755); err != nil {
		t.Fatal(err)
	}
	client, err := s.Client(context.WithoutCancel(t.Context()), "user")
	if err != nil {
		t.Fatal(err)
	}
	c := transport.NewConn(client, transport.Options{})
	t.Cleanup(func() {
		c.Close()
		client.Close()
		s.Close()
	})
	return &sftpTarget{c, s.Home("user")}
}

// opensshTarget is sshd and its sftp-server, for the current user, in a directory of the test's.
// Lines of sshd_config win over the usual ones.
func opensshTarget(t *testing.T, lines ...string) *sftpTarget {
	t.Helper()
	return newOpenSSH(t, sftpTemp(t), nil, lines...).target(t)
}

// openSSH is a running sshd.
type openSSH struct {
	home   string
	config string // the client's
	keys   string // the server's authorized_keys, with one key
}

// newOpenSSH starts sshd, by way of another program's words if there are any.
func newOpenSSH(t *testing.T, home string, by []string, lines ...string) *openSSH {
	t.Helper()
	sshd := sftpTool(t, "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
	if os.Geteuid() == 0 && os.MkdirAll("/run/sshd", 0o755) != nil {
		testenv.Missing(t, "/run/sshd")
	}
	dir := sftpTemp(t)
	addr := freeAddr(t)
	config := opensshFiles(t, dir, home, addr.Port, lines)
	serveAt(t, addr, append(slices.Clone(by), sshd, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))...)
	return &openSSH{home, config, filepath.Join(dir, "id.pub")}
}

// target connects.
func (o *openSSH) target(t *testing.T) *sftpTarget {
	t.Helper()
	c, err := transport.Dial(t.Context(), transport.Target{Host: "real"}, transport.Options{ConfigFile: o.config})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return &sftpTarget{c, o.home}
}

func freeAddr(t *testing.T) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}

// serveAt runs a server until the test ends, and waits until it listens.
func serveAt(t *testing.T, addr *net.TCPAddr, words ...string) {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	var said bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &said, time.Second // its children outlive it
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", words[0], said.String())
		}
	})
	for range 200 {
		if nc, err := net.Dial("tcp", addr.String()); err == nil {
			nc.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s does not listen", words[0])
}

// opensshFiles writes keys and both sides' configurations, and returns the client's.
func opensshFiles(t *testing.T, dir, home string, port int, lines []string) string {
	t.Helper()
	server := sftpTool(t, "sftp-server", "/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
		"/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server")
	keygen := sftpTool(t, "ssh-keygen")
	me, err := user.Current()
	must(t, err)
	for _, k := range []string{"host", "id"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, k)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	put := func(name, format string, args ...any) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, fmt.Appendf(nil, format, args...), 0o600))
		return file
	}
	start := ""
	if !strings.ContainsAny(home, " $") { // else the login shell, which gets the line, starts at home
		start = " -d " + home
	}
	put("sshd_config", "%s\nSetEnv \"HOME=%[5]s\"\nListenAddress 127.0.0.1\nPort %[2]d\nHostKey %[3]s/host\nPidFile none\nUsePAM no\nStrictModes no\n"+
		"AuthorizedKeysFile %[3]s/id.pub\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"+
		"MaxStartups 100\nSubsystem sftp %[4]s%[6]s\n", strings.Join(lines, "\n"), port, dir, server, home, start)
	hostKey, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	must(t, err)
	known := put("known_hosts", "[127.0.0.1]:%d %s", port, hostKey)
	return put("ssh_config", "Host real\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s/id\n IdentitiesOnly yes\n"+
		" IdentityAgent none\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n", port, me.Username, dir, known)
}

func sftpTool(t *testing.T, name string, more ...string) string {
	t.Helper()
	for _, p := range append([]string{name}, more...) {
		if found, err := exec.LookPath(p); err == nil {
			return found
		}
	}
	testenv.Missing(t, name)
	return ""
}

// sftpTemp is a directory without links in its path, and with the mode of a home.
func sftpTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// sftpSkill pins a skill of the given files, those of scripts/ executable, and a SKILL.md.
func sftpSkill(t *testing.T, name string, files map[string]string) *bundle.Bundle {
	t.Helper()
	src, store := filepath.Join(sftpTemp(t), name), filepath.Join(sftpTemp(t), "store")
	all := map[string]string{"SKILL.md": "---\nname: " + name + "\ndescription: For tests.\n---\n\nRead it.\n"}
	maps.Copy(all, files)
	for p, text := range all {
		file := filepath.Join(src, filepath.FromSlash(p))
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(p, "scripts/") {
			mode = 0o755
		}
		if strings.HasSuffix(p, "/") {
			mkdirAll(t, file)
			continue
		}
		mkdirAll(t, filepath.Dir(file))
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	s, err := bundle.OpenStore(store, bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	from, err := bundle.OpenSource(src)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	p, _, err := s.Pin(t.Context(), from, bundle.Rules{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Open(p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// releaseFiles are a small skill with all that a bundle can hold.
func releaseFiles() map[string]string {
	return map[string]string{
		"scripts/run.sh":           "#!/bin/sh\necho ran\n",
		"references/deep/a.md":     "# deep\n",
		"references/odd $(x)'q.md": "odd\n",
		"references/large.bin":     strings.Repeat("0123456789abcdef", 9000),
		"empty/":                   "",
		"zero":                     "",
	}
}

func mkdirAll(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

// mustPublish publishes one bundle and returns what became of it.
func mustPublish(t *testing.T, w way, b *bundle.Bundle) Result {
	t.Helper()
	r, err := w.publish(t.Context(), []*bundle.Bundle{b})
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	if len(r) != 1 || r[0].Err != nil {
		t.Fatalf("publish: %+v", r)
	}
	return r[0]
}

// sameAsBundle fails unless the copy on disk is exactly the bundle, private, and with its times.
func sameAsBundle(t *testing.T, s *sftpTarget, b *bundle.Bundle) {
	t.Helper()
	dir := s.copyOf(b.Manifest.Digest())
	want := map[string]string{".": "d"}
	for _, e := range b.Manifest.Entries() {
		want[e.Path] = string(e.Kind)
	}
	var entries []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		kind := bundle.Kind(0)
		switch {
		case d.IsDir():
			kind = bundle.Dir
		case info.Mode() == 0o600:
			kind = bundle.File
		case info.Mode() == 0o700:
			kind = bundle.Exec
		}
		if want[rel] != string(kind) || kind == bundle.Dir && info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s is there with mode %v, want kind %q", rel, info.Mode(), want[rel])
		}
		delete(want, rel)
		if kind != bundle.Dir && !info.ModTime().Equal(bundle.PackedTime()) {
			t.Errorf("%s has the time %v", rel, info.ModTime())
		}
		entries = append(entries, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(want) > 0 {
		t.Errorf("missing in the copy: %v", slices.Sorted(maps.Keys(want)))
	}
	for _, e := range b.Manifest.Entries() {
		if e.Kind == bundle.Dir {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		var orig strings.Builder
		if err := b.CopyFile(&orig, e); err != nil {
			t.Fatal(err)
		}
		if string(data) != orig.String() {
			t.Errorf("%s has other content", e.Path)
		}
	}
}

// nothingBeside fails when the cache holds names other than those given.
func nothingBeside(t *testing.T, s *sftpTarget, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(s.cache())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			t.Errorf("the cache holds %s", e.Name())
		}
	}
}

// states lists the cache and returns each name's state.
func states(t *testing.T, w way) map[string]State {
	t.Helper()
	_, copies, err := w.list(t.Context())
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	out := make(map[string]State)
	for _, k := range copies {
		name := k.Name
		if k.State != Foreign {
			name = k.Digest.String()
		}
		out[name] = k.State
	}
	return out
}

func checkOne(t *testing.T, w way, d bundle.Digest) Copy {
	t.Helper()
	copies, err := w.check(context.WithoutCancel(t.Context()), []bundle.Digest{d})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return copies[0]
}
