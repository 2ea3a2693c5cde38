package bundle

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
)

// A tree is written as lines of a path and what is there:
//
//	a/b/           a directory
//	a/f = text     a file
//	a/s *= text    an executable file
//	a/l -> target  a link
//
// Parents are made as needed, and SKILL.md is added where the tree has none.
func writeTree(t testing.TB, dir, tree string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	for line := range strings.Lines(tree) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		put := func(name string) string {
			p := filepath.Join(dir, filepath.FromSlash(name))
			must(os.MkdirAll(filepath.Dir(p), 0o755))
			return p
		}
		if name, target, ok := strings.Cut(line, " -> "); ok {
			must(os.Symlink(target, put(name)))
		} else if name, text, ok := strings.Cut(line, " *= "); ok {
			must(os.WriteFile(put(name), []byte(text), 0o755))
			must(os.Chmod(put(name), 0o755))
		} else if name, text, ok := strings.Cut(line, " = "); ok {
			must(os.WriteFile(put(name), []byte(text), 0o644))
		} else {
			must(os.MkdirAll(put(strings.TrimSuffix(line, "/")), 0o755))
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, SkillFile)); err != nil {
		must(os.WriteFile(filepath.Join(dir, SkillFile), []byte("---\nname: x\ndescription: y\n---\n"), 0o644))
	}
}

// newSkill writes a tree as a skill directory called release and opens it.
func newSkill(t testing.TB, tree string) *Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "release")
	writeTree(t, dir, tree)
	return open(t, dir)
}

func open(t testing.TB, dir string) *Source {
	t.Helper()
	src, err := OpenSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "data", "bundles"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pin(t testing.TB, s *Store, src *Source) Pinned {
	t.Helper()
	p, _, err := s.Pin(context.Background(), src, Rules{}, nil)
	if err != nil {
		t.Fatalf("pin: %v", err)
	}
	return p
}

// rejected returns the reason and path of the only rejection in err.
func rejected(t testing.TB, err error) (Reason, string) {
	t.Helper()
	r, ok := errors.AsType[*RejectedError](err)
	if !ok {
		t.Fatalf("error %v, want a *RejectedError", err)
	}
	if !errors.Is(err, r.Findings[0].Reason) {
		t.Errorf("errors.Is does not find %s in %v", r.Findings[0].Reason, err)
	}
	return r.Findings[0].Reason, r.Findings[0].Path
}

// digestByTools computes the digest of the skill directory dir the way anyone can: with find,
// sha256sum and sort.
func digestByTools(t testing.TB, dir string) string {
	t.Helper()
	if out, err := exec.Command("find", "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU")) {
		testenv.Missing(t, "GNU find and sha256sum")
	}
	const script = `cd "$1" && export LC_ALL=C && {
		find -L "./$2" -type d -exec printf 'd %s\n' {} \;
		find -L "./$2" -type f ! -perm /111 -exec sha256sum {} \; | sed 's/^\\*/f /'
		find -L "./$2" -type f -perm /111 -exec sha256sum {} \; | sed 's/^\\*/x /'
	} | sort | sha256sum | cut -d" " -f1`
	out, err := exec.Command("sh", "-c", script, "sh", filepath.Dir(dir), filepath.Base(dir)).Output()
	if err != nil {
		t.Fatalf("find, sha256sum, sort: %v", err)
	}
	return string(bytes.TrimSpace(out))
}

// treeOf lists what is below dir: path, type and permission bits, content. It tells two states of a
// directory apart.
func treeOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if isLock(filepath.Base(rel)) {
			return nil
		}
		b.WriteString(rel + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(data))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkPrivate finds anything but directories of mode 0700 and files of mode 0600 and 0700.
func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	if !hasExecBits {
		return // this system has no such modes
	}
	filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		mode := info.Mode()
		if mode.IsDir() && mode != os.ModeDir|0o700 || !mode.IsDir() && mode != 0o600 && mode != 0o700 {
			t.Errorf("%s has mode %v", p, mode)
		}
		return nil
	})
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func isLock(name string) bool { return name == lockName || name == replaceLockName }

// names returns the names in a store's directory, without the locks.
func names(t testing.TB, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if !isLock(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out
}
