//go:build unix

package bundle

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/testenv"
)

// hostileCase is a directory somebody made to break the walk.
type hostileCase struct {
	name   string
	make   func(t *testing.T, dir string)
	reason Reason // "" where it is to be accepted
	path   string
}

func file(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { writeTree(t, dir, "f = x"); put(t, dir, name, text) }
}

func tree(spec string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { writeTree(t, dir, spec) }
}

func two(a, b string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { file(a, "1")(t, dir); put(t, dir, b, "2") }
}

// hops makes a chain of n links that ends at a file.
func hops(n int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		writeTree(t, dir, "l0 = x")
		for i := range n {
			if err := os.Symlink(fmt.Sprintf("l%d", i), filepath.Join(dir, fmt.Sprintf("l%d", i+1))); err != nil {
				t.Fatal(err)
			}
		}
		// Only the last of the chain needs all n hops; the others need fewer.
	}
}

func special(mk func(path string) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		writeTree(t, dir, "f = x")
		if err := mk(filepath.Join(dir, "odd")); err != nil {
			if os.Geteuid() != 0 {
				testenv.Missing(t, "root, to make a device")
			}
			t.Fatal(err)
		}
	}
}

func hostileCases() []hostileCase {
	return []hostileCase{
		{"absolute link", tree("bad -> /etc/passwd"), LinkEscapes, "bad"},
		{"link that escapes", tree("bad -> ../../etc/passwd"), LinkEscapes, "bad"},
		{"link that leaves and comes back", tree("f = x\nbad -> ../release/f"), LinkEscapes, "bad"},
		{"absolute link to inside", func(t *testing.T, dir string) {
			writeTree(t, dir, "f = x")
			os.Symlink(filepath.Join(dir, "f"), filepath.Join(dir, "bad"))
		}, LinkEscapes, "bad"},
		{"link inside", tree("d/f = x\nl -> d/f"), "", ""},
		{"link to a directory inside", tree("d/f = x\ne/l -> ../d"), "", ""},
		{"link through a linked directory", tree("d/f = x\nl -> d\nm -> l/f"), "", ""},
		{"link over a link's parent", tree("d/e/f = x\nl -> d/e\nm -> l/../g\nd/g = y"), "", ""},
		{"escape by a link's parent", tree("d/f = x\nl -> d\nbad -> l/../../f"), LinkEscapes, "bad"},
		{"links to each other", tree("a -> b\nb -> a"), LinkCycles, "a"},
		{"link to itself", tree("a -> a"), LinkCycles, "a"},
		{"link to an ancestor", tree("d/e/up -> ../.."), LinkCycles, "d/e/up"},
		{"link to its directory", tree("d/up -> ."), LinkCycles, "d/up"},
		{"directories linked crosswise", tree("a/l -> ../b\nb/m -> ../a"), LinkCycles, "a/l/m"},
		{"8 hops", hops(8), "", ""},
		{"9 hops", hops(9), LinkTooLong, "l9"},
		{"dangling link", tree("bad -> nowhere"), LinkDangles, "bad"},
		{"link through a file", tree("f = x\nbad -> f/g"), LinkDangles, "bad"},
		{"link to a file as a directory", tree("f = x\nbad -> f/"), LinkDangles, "bad"},
		{"FIFO", special(func(p string) error { return syscall.Mkfifo(p, 0o644) }), SpecialFile, "odd"},
		{"socket", special(func(p string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				l.Close()
			}
			return err
		}), SpecialFile, "odd"},
		{"device", special(func(p string) error { return mknod(p) }), SpecialFile, "odd"},
		{"hard link", func(t *testing.T, dir string) {
			writeTree(t, dir, "f = x")
			os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g"))
		}, "", ""},
		{"setuid", func(t *testing.T, dir string) {
			writeTree(t, dir, "f *= x")
			os.Chmod(filepath.Join(dir, "f"), 0o755|os.ModeSetuid|os.ModeSetgid)
		}, "", ""},
		{"names that differ in case", two("A", "a"), NamesCollide, "a"},
		{"names that differ in normalisation", two("caf\u00e9", "cafe\u0301"), NamesCollide, "caf\u00e9"},
		{"names that fold together", two("stra\u00dfe", "STRASSE"), NamesCollide, "stra\u00dfe"},
		{"newline in a name", file("a\nb", "x"), BadName, "a\nb"},
		{"escape in a name", file("a\x1b[2Jb", "x"), BadName, "a\x1b[2Jb"},
		{"bidi in a name", file("a\u202egnp.exe", "x"), BadName, "a\u202egnp.exe"},
		{"tag in a name", file("a\U000e0041", "x"), BadName, "a\U000e0041"},
		{"backslash in a name", file(`a\b`, "x"), BadName, `a\b`},
		{"a name like a flag", file("-rf", "x"), "", ""},
		{"spaces, quotes and dollars", file("a b'\"$(x)`y`;&*?", "x"), "", ""},
		{"a name that is not UTF-8", file("a\xff", "x"), BadName, "a\xff"},
		{"empty directory", tree("d/"), "", ""},
		{"sparse terabyte", func(t *testing.T, dir string) {
			writeTree(t, dir, "odd = x")
			if err := os.Truncate(filepath.Join(dir, "odd"), 1<<40); err != nil {
				t.Fatal(err)
			}
		}, FileTooLarge, "odd"},
		{"SKILL.md is a FIFO", func(t *testing.T, dir string) {
			os.MkdirAll(dir, 0o755)
			if err := syscall.Mkfifo(filepath.Join(dir, SkillFile), 0o644); err != nil {
				t.Fatal(err)
			}
		}, SpecialFile, SkillFile},
		{"SKILL.md is a directory", tree("SKILL.md/f = x"), SpecialFile, SkillFile},
		{"SKILL.md leaves the skill", tree("SKILL.md -> ../other/SKILL.md"), LinkEscapes, SkillFile},
		{"no SKILL.md", func(t *testing.T, dir string) {
			writeTree(t, dir, "f = x")
			os.Remove(filepath.Join(dir, SkillFile))
		}, NoSkillFile, SkillFile},
	}
}

// The numbered cases of a skill directory made to do harm, each with its one right outcome. An
// accepted one is pinned, verified, and free of links, set-id bits and foreign modes.
func TestHostileDirectories(t *testing.T) {
	for _, c := range hostileCases() {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "release")
			c.make(t, dir)
			src := open(t, dir)
			s := newStore(t)
			p, report, err := s.Pin(context.Background(), src, Rules{}, nil)
			if c.reason == "" {
				if err != nil {
					t.Fatalf("rejected: %v", err)
				}
				checkPrivate(t, s.Dir())
				if err := s.Verify(context.Background(), p.Digest); err != nil {
					t.Error(err)
				}
				return
			}
			reason, path := rejected(t, err)
			if reason != c.reason || path != c.path {
				t.Errorf("rejected %q for %s, want %q for %s (%v)", path, reason, c.path, c.reason, err)
			}
			if len(report.Rejected()) == 0 {
				t.Error("the report does not have the rejection")
			}
			if n := names(t, s); len(n) != 0 {
				t.Errorf("the store has %q after a rejected pin", n)
			}
			if shown := err.Error(); display.Quote(shown) != shown {
				t.Errorf("the error %q shows what it should quote", err)
			}
		})
	}
}

func TestUnreadableFileIsNamed(t *testing.T) {
	testenv.AsOther(t, func(t *testing.T) {
		src := newSkill(t, "secret = x")
		if err := os.Chmod(filepath.Join(src.Path, "secret"), 0); err != nil {
			t.Fatal(err)
		}
		_, _, err := src.Scan(context.Background(), Rules{})
		if reason, path := rejected(t, err); reason != Unreadable || path != "secret" {
			t.Errorf("rejected %s for %s, want secret for %s", path, reason, Unreadable)
		}
		dir := newSkill(t, "d/f = x")
		os.Chmod(filepath.Join(dir.Path, "d"), 0)
		defer os.Chmod(filepath.Join(dir.Path, "d"), 0o700) // or it cannot be cleaned up
		_, _, err = dir.Scan(context.Background(), Rules{})
		if reason, path := rejected(t, err); reason != Unreadable || path != "d" {
			t.Errorf("rejected %s for %s, want d for %s", path, reason, Unreadable)
		}
	})
}
