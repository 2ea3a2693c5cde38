package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// TestAProbeReadsWhatIsThere also holds the parser to refusing what is not, each by one line too many
// or one that is out of its bounds.
func TestAProbeReadsWhatIsThere(t *testing.T) {
	const has = "has " + without + " " + needed + " sha256sum\n"
	const tail = "root /c\nwritable\nEND\n"
	for name, c := range map[string]struct {
		words string
		class string
		check func(p *Probe) bool
	}{
		"everything": {"BEGIN\nnow 5\nsystem Linux x86_64\nuser me\nhomedir /home/me\nshell /bin/fish\nsh dash\n" + has +
			"version tar tar 1.0\nfree 7\ninodes 9\n" + tail, "exec", func(p *Probe) bool {
			return p.System == "Linux x86_64" && p.User == "me" && p.Home == "/home/me" && p.Shell == "/bin/fish" && p.Sh == "dash" &&
				p.Versions["tar"] == "tar 1.0" && p.Free == 7<<10 && p.Inodes == 9 && p.Cache == "/c" && p.SHA256 == "sha256sum" &&
				len(p.Missing) == 0 && p.Skewed && p.Skew < -time.Hour && p.ReadOnly == "" && p.Unusable == nil
		}},
		"as little as can be": {"BEGIN\n" + has + "root /c\nEND\n", "exec", func(p *Probe) bool {
			return p.Free == -1 && p.Inodes == -1 && !p.Skewed && p.Unusable == nil
		}},
		"read-only":        {"BEGIN\n" + has + "root /c\nreadonly /x\nEND\n", "exec", func(p *Probe) bool { return p.ReadOnly == "/x" }},
		"no counts":        {"BEGIN\n" + has + "free -\ninodes -\n" + tail, "exec", func(p *Probe) bool { return p.Free == -1 && p.Inodes == -1 }},
		"unsafe":           {"BEGIN\n" + has + "unsafe mode /c\nEND\n", "exec", func(p *Probe) bool { return errors.Is(p.Unusable, ErrUnsafe) && p.SHA256 != "" }},
		"no home":          {"BEGIN\n" + has + "home\nEND\n", "exec", func(p *Probe) bool { return p.Unusable != nil }},
		"not a directory":  {"BEGIN\n" + has + "fail /c\nsaid no\nEND\n", "exec", func(p *Probe) bool { return p.Unusable != nil }},
		"a program lacks":  {"BEGIN\nhas sort\nsystem X\ntool find\nEND\n", "", func(p *Probe) bool { return p.System == "X" && len(p.Missing) > 3 && errors.Is(p.Exec, ErrTools) }},
		"no tar":           {"BEGIN\n" + strings.Replace(has, " tar", "", 1) + tail, "", func(p *Probe) bool { return errors.Is(p.Exec, ErrTools) && len(p.Missing) == 1 }},
		"no touch":         {"BEGIN\n" + strings.Replace(has, " touch", "", 1) + tail, "exec", func(p *Probe) bool { return len(p.Missing) == 1 }},
		"no answer":        {"This account is not available.\n", "", func(p *Probe) bool { return errors.Is(p.Unusable, ErrNoAccess) }},
		"not complete":     {"BEGIN\nroot /c\nwritable\nEND\n", "", isBadReply},
		"twice":            {"BEGIN\n" + has + has + tail, "", isBadReply},
		"unknown program":  {"BEGIN\nhas evil\n" + tail, "", isBadReply},
		"unknown version":  {"BEGIN\n" + has + "version rm 1\n" + tail, "", isBadReply},
		"version twice":    {"BEGIN\n" + has + "version tar 1\nversion tar 2\n" + tail, "", isBadReply},
		"a clock of words": {"BEGIN\nnow soon\n" + has + tail, "", isBadReply},
		"both":             {"BEGIN\n" + has + "root /c\nwritable\nreadonly /x\nEND\n", "", isBadReply},
		"relative":         {"BEGIN\n" + has + "root /c\nreadonly x\nEND\n", "", isBadReply},
		"other words":      {"BEGIN\n" + has + "is x\n" + tail, "", isBadReply},
		"an empty line of": {"BEGIN\nsystem\n" + has + tail, "", isBadReply},
		"too long":         {"BEGIN\nsystem " + strings.Repeat("x", maxReplyLine) + "\n" + has + tail, "", isBadReply},
	} {
		s := &sayer{words: c.words}
		p, err := openCache(t, s, Options{}).Probe(t.Context())
		if err != nil || p.Class != c.class || !c.check(p) {
			t.Errorf("%s: %v, %+v", name, err, p)
		}
	}
}

func isBadReply(p *Probe) bool { return errors.Is(p.Unusable, ErrReply) && p.Exec != nil }

// TestAProbeAsksBySFTPToo compares with the machine that the server stands for.
func TestAProbeAsksBySFTPToo(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		c := openCache(t, s.conn, Options{NoExec: true})
		before := snapshot(t, s.home)
		p, err := c.Probe(t.Context())
		must(t, err)
		if p.Class != "sftp" || p.Exec == nil || p.Files != nil || p.Cache != s.cache() || p.Unusable != nil || p.ReadOnly != "" || p.Latency <= 0 {
			t.Errorf("got %+v", p)
		}
		if overSFTP := s.conn.Server() != ""; overSFTP != (len(p.Extensions) > 0) {
			t.Errorf("extensions %q", p.Extensions)
		}
		if after := snapshot(t, s.home); after != before {
			t.Errorf("the home was changed from\n%sto\n%s", before, after)
		}
		must(t, os.MkdirAll(s.cache(), 0o700))
		must(t, os.Chmod(filepath.Dir(s.cache()), 0o777))
		p, err = c.Probe(t.Context())
		if err != nil || !errors.Is(p.Unusable, ErrUnsafe) || transport.Hint(p.Unusable) == "" {
			t.Errorf("a cache for all: %v, %+v", err, p)
		}
	})
}

func TestOneQuestionWithoutAnAnswerHidesNoOther(t *testing.T) {
	s, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{
		{Name: "both"}, {Name: "files", NoExec: true}, {Name: "commands", NoFiles: true}, {Name: "noisy", NoFiles: true, Noise: "hello\n"},
		{Name: "neither", NoExec: true, NoFiles: true}, {Name: "refuses", RefuseExec: true},
	}, Faults: transporttest.Faults{Delay: 10 * time.Millisecond}})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	for name, want := range map[string]string{"both": "exec", "files": "sftp", "commands": "exec", "noisy": "exec", "neither": "", "refuses": "sftp"} {
		if runtime.GOOS == "windows" && want == "exec" {
			continue
		}
		client, err := s.Client(t.Context(), name)
		must(t, err)
		conn := transport.NewConn(client, transport.Options{})
		p, err := openCache(t, conn, Options{}).Probe(t.Context())
		conn.Close()
		client.Close()
		if err != nil || p.Class != want {
			t.Errorf("%s: %v, %+v", name, err, p)
			continue
		}
		// One delay each way, and no more than one way and back.
		if want != "" && (p.Latency < 20*time.Millisecond || p.Latency > 10*time.Second) {
			t.Errorf("%s: a round trip of %v", name, p.Latency)
		}
		if want == "" && (!errors.Is(p.Unusable, ErrNoAccess) || transport.Hint(p.Unusable) == "") {
			t.Errorf("%s: %v", name, p.Unusable)
		}
	}
}

func TestAConnectionThatEndsIsNoFinding(t *testing.T) {
	s := &sayer{err: &transport.Error{Op: "exec", Kind: transport.ErrLost}}
	if p, err := openCache(t, s, Options{}).Probe(t.Context()); !errors.Is(err, transport.ErrLost) {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestAProbeOfTheExecWayChangesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "/bin/sh")
	}
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{})
	for _, made := range []bool{false, true} {
		if made {
			publishOne(t, c, plainSkill().pin(t, "release"))
		}
		before := dated(t, home)
		_, err := c.Probe(t.Context())
		must(t, err)
		if after := dated(t, home); after != before {
			t.Errorf("the home was changed from\n%sto\n%s", before, after)
		}
	}
}

// dated is a snapshot with the times of everything.
func dated(t *testing.T, dir string) string {
	t.Helper()
	text := snapshot(t, dir)
	must(t, filepath.Walk(dir, func(p string, fi os.FileInfo, err error) error {
		text += fmt.Sprintln(p, fi.ModTime().UnixNano())
		return err
	}))
	return text
}
