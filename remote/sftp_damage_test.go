package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
)

// sftpDamages are the ways in which a copy of releaseFiles can be spoiled. sends is how much of the
// content has to be sent again: nothing, or that of one file, or everything.
var sftpDamages = []struct {
	name  string
	sends string
	spoil func(dir string) error // dir is the digest's
}{
	{"content edited", "one", func(dir string) error { return edit(filepath.Join(dir, "release/scripts/run.sh"), "evil") }},
	{"content edited, same size", "one", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "release/references/deep/a.md"), []byte("# DEEP\n"), 0o600)
	}},
	{"file missing", "one", func(dir string) error { return os.Remove(filepath.Join(dir, "release/references/deep/a.md")) }},
	{"file emptied", "one", func(dir string) error { return os.Truncate(filepath.Join(dir, "release/SKILL.md"), 0) }},
	{"exec bit lost", "one", func(dir string) error { return os.Chmod(filepath.Join(dir, "release/scripts/run.sh"), 0o600) }},
	{"exec bit gained", "one", func(dir string) error { return os.Chmod(filepath.Join(dir, "release/SKILL.md"), 0o700) }},
	{"file readable by others", "one", func(dir string) error { return os.Chmod(filepath.Join(dir, "release/SKILL.md"), 0o644) }},
	{"file unreadable", "one", func(dir string) error { return os.Chmod(filepath.Join(dir, "release/SKILL.md"), 0) }},
	{"setuid", "one", func(dir string) error {
		return os.Chmod(filepath.Join(dir, "release/scripts/run.sh"), 0o700|os.ModeSetuid)
	}},
	{"directory open to others", "nothing", func(dir string) error { return os.Chmod(filepath.Join(dir, "release/references"), 0o755) }},
	{"digest's directory open to others", "nothing", func(dir string) error { return os.Chmod(dir, 0o755) }},
	{"extra file", "nothing", func(dir string) error { return os.WriteFile(filepath.Join(dir, "release/extra"), []byte("x"), 0o600) }},
	{"extra file beside the skill", "nothing", func(dir string) error { return os.WriteFile(filepath.Join(dir, "extra"), []byte("x"), 0o600) }},
	{"extra link", "nothing", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "release/extra")) }},
	{"left by a script", "nothing", func(dir string) error {
		if err := os.MkdirAll(filepath.Join(dir, "release/scripts/__pycache__/more/levels"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "release/scripts/__pycache__/a.pyc"), []byte("x"), 0o644)
	}},
	{"many extra files", "nothing", func(dir string) error {
		for _, c := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			if err := os.WriteFile(filepath.Join(dir, "release/scripts", c), []byte("x"), 0o644); err != nil {
				return err
			}
		}
		return nil
	}},
	{"empty directory missing", "nothing", func(dir string) error { return os.Remove(filepath.Join(dir, "release/empty")) }},
	{"link in place of a file", "one", func(dir string) error {
		return replace(filepath.Join(dir, "release/SKILL.md"), func(p string) error { return os.Symlink("zero", p) })
	}},
	{"link to the same content in place of a directory", "some", func(dir string) error {
		p := filepath.Join(dir, "release/references")
		if err := os.Rename(p, dir+"-elsewhere"); err != nil {
			return err
		}
		return os.Symlink(dir+"-elsewhere", p)
	}},
	{"file in place of a directory", "some", func(dir string) error {
		return replace(filepath.Join(dir, "release/references"), func(p string) error { return os.WriteFile(p, nil, 0o600) })
	}},
	{"directory in place of a file", "one", func(dir string) error {
		return replace(filepath.Join(dir, "release/SKILL.md"), func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) })
	}},
	{"skill directory renamed", "all", func(dir string) error {
		return os.Rename(filepath.Join(dir, "release"), filepath.Join(dir, "Release"))
	}},
	{"emptied", "all", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "release")) }},
	{"the digest is a file", "all", func(dir string) error {
		return replace(dir, func(p string) error { return os.WriteFile(p, []byte("x"), 0o600) })
	}},
	{"the digest is a link to a copy", "all", func(dir string) error {
		if err := os.Rename(dir, dir+"-elsewhere"); err != nil {
			return err
		}
		return os.Symlink(dir+"-elsewhere", dir)
	}},
	{"the digest is a link to nothing", "all", func(dir string) error {
		return replace(dir, func(p string) error { return os.Symlink("nowhere", p) })
	}},
	{"read-only throughout", "all", func(dir string) error {
		for _, p := range []string{"release/scripts", "release/references/deep", "release/references", "release/empty", "release", ""} {
			if err := os.Chmod(filepath.Join(dir, p), 0o500); err != nil {
				return err
			}
		}
		return nil
	}},
}

func edit(file, more string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(more)
	return err
}

func replace(p string, by func(p string) error) error {
	if err := os.RemoveAll(p); err != nil {
		return err
	}
	return by(p)
}

func TestSFTPEveryDamageIsSeenAndRepaired(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		d := b.Manifest.Digest()
		for _, c := range sftpDamages {
			t.Run(c.name, func(t *testing.T) {
				if err := os.RemoveAll(s.cache()); err != nil {
					t.Fatal(err)
				}
				w := s.way()
				whole := mustPublish(t, w, b)
				if err := c.spoil(s.copyOf(d)); err != nil {
					t.Fatal(err)
				}
				for name, w := range map[string]way{"knowing": w, "fresh": s.way()} {
					if k := checkOne(t, w, d); k.State != Damaged {
						t.Errorf("%s check: %v", name, k.State)
					}
				}
				if got := states(t, s.way())[d.String()]; got != Damaged {
					t.Errorf("list: %v", got)
				}
				r := mustPublish(t, w, b)
				if r.Outcome != Repaired {
					t.Errorf("outcome %v", r.Outcome)
				}
				sentEnough(t, c.sends, r.Sent, whole.Sent)
				sameAsBundle(t, s, b)
				nothingBeside(t, s, d.String(), d.String()+"-elsewhere")
				if r := mustPublish(t, s.way(), b); r.Outcome != Present {
					t.Errorf("afterwards: %v", r.Outcome)
				}
			})
		}
	})
}

func sentEnough(t *testing.T, what string, sent, whole int64) {
	t.Helper()
	switch {
	case what == "nothing" && sent != 0,
		what == "one" && (sent == 0 || sent > 100),
		what == "all" && sent > whole:
		t.Errorf("%d bytes were sent again of %d, want %s", sent, whole, what)
	}
}

func TestSFTPTimeAloneIsNoDamageAndIsPutRight(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		mustPublish(t, s.way(), b)
		for _, p := range []string{"release/SKILL.md", "release/references/large.bin", "release/zero"} {
			file := filepath.Join(s.copyOf(b.Manifest.Digest()), p)
			if err := os.Chtimes(file, bundle.PackedTime(), bundle.PackedTime().AddDate(40, 0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if k := checkOne(t, s.way(), b.Manifest.Digest()); k.State != Whole {
			t.Errorf("check: %v", k.State)
		}
		if r := mustPublish(t, s.way(), b); r.Outcome != Present || r.Sent != 0 {
			t.Errorf("publish: %v, %d bytes", r.Outcome, r.Sent)
		}
		sameAsBundle(t, s, b)
	})
}

// A use by SFTP compares times instead of reading, so that an edit which puts size and time back is
// found only where everything is read.
func TestSFTPEditThatPutsTheTimeBackIsFoundByList(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		d := b.Manifest.Digest()
		mustPublish(t, s.way(), b)
		file := filepath.Join(s.copyOf(d), "release/references/deep/a.md")
		if err := os.WriteFile(file, []byte("# DEEP\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, bundle.PackedTime(), bundle.PackedTime()); err != nil {
			t.Fatal(err)
		}
		if got := states(t, s.way())[d.String()]; got != Damaged {
			t.Errorf("list: %v", got)
		}
		if k := checkOne(t, s.way(), d); k.State != Damaged {
			t.Errorf("check without the manifest: %v", k.State)
		}
	})
}

func TestSFTPForeignEntriesStayThroughEverything(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		mustPublish(t, s.way(), b)
		foreign := filepath.Join(s.cache(), "notours", "x")
		mkdirAll(t, foreign)
		if err := os.RemoveAll(filepath.Join(s.copyOf(b.Manifest.Digest()), "release", "scripts")); err != nil {
			t.Fatal(err)
		}
		mustPublish(t, s.way(), b)
		if _, err := s.way().prune(t.Context(), PruneOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(foreign); err != nil {
			t.Error(err)
		}
	})
}
