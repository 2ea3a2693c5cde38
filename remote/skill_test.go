package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
)

// testSkill is what the tests publish: files by their path below the skill directory. A name that
// ends in a slash is an empty directory, and content that starts with #! is executable.
type testSkill map[string]string

// plainSkill has a script, nested directories, an empty one, and names that a shell would read
// wrongly if it read them at all.
func plainSkill() testSkill {
	return testSkill{
		"SKILL.md":                      "---\nname: release\ndescription: d\n---\n\nRead references/deep/a.md.\n",
		"scripts/run.sh":                "#!/bin/sh\necho ran\n",
		"references/deep/a.md":          "# deep\n",
		"references/odd name $(x)'q.md": "odd\n",
		"references/-rf":                "dash\n",
		"references/@at":                "at\n",
		"references/*?[a]":              "glob\n",
		"references/ trailing ":         "space\n",
		"references/\"; exit 1; #":      "quote\n",
		"references/技能.md":              "name\n",
		".hidden":                       "dot\n",
		"..two":                         "dots\n",
		"empty":                         "",
		"assets/":                       "",
	}
}

// with returns a copy of s with a file added or replaced.
func (s testSkill) with(name, content string) testSkill {
	c := testSkill{name: content}
	for k, v := range s {
		if k != name {
			c[k] = v
		}
	}
	return c
}

// write makes the skill a directory.
func (s testSkill) write(t testing.TB, dir string) {
	t.Helper()
	for name, content := range s {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(p, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		must(t, os.WriteFile(p, []byte(content), mode))
		must(t, os.Chmod(p, mode))
	}
}

// pin puts the skill into a store of its own and opens the bundle.
func (s testSkill) pin(t testing.TB, name string) *bundle.Bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	s.write(t, dir)
	src, err := bundle.OpenSource(dir)
	must(t, err)
	defer src.Close()
	store, err := bundle.OpenStore(filepath.Join(t.TempDir(), "store"), bundle.Limits{})
	must(t, err)
	pinned, _, err := store.Pin(t.Context(), src, bundle.Rules{}, nil)
	must(t, err)
	b, err := store.Open(pinned.Digest)
	must(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recomputed returns a copy's digest as plain tools find it, the way the bundle format promises:
// with find, sha256sum and sort.
func recomputed(t testing.TB, copyDir string) string {
	t.Helper()
	const recipe = `cd "$1" && h=$(command -v sha256sum || echo shasum -a 256) && {
		find . -mindepth 1 -type d -perm 0700 | sed 's/^/d /'
		find . -type f -perm 0600 -exec $h {} + | sed 's/^/f /'
		find . -type f -perm 0700 -exec $h {} + | sed 's/^/x /'
		find . -mindepth 1 ! -type d ! -type f
		find . -type d ! -perm 0700 -o -type f ! -perm 0600 ! -perm 0700
	} | LC_ALL=C sort | $h | cut -c1-64`
	out, err := exec.Command("/bin/bash", "-c", recipe, "recipe", copyDir).Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// snapshot describes everything below dir: names, types, modes, contents and link targets, but no
// times, so that two states of a tree can be compared.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		l := fmt.Sprintf("%q %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			l += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			l += " -> " + to
		}
		lines = append(lines, l)
		return nil
	})
	if os.IsNotExist(err) {
		return "nothing\n"
	}
	must(t, err)
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// names returns the names in a directory, sorted; none where it does not exist.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// publishOne publishes one bundle and returns its result, which must not be a failure.
func publishOne(t testing.TB, c *Cache, b *bundle.Bundle) Result {
	t.Helper()
	results, err := c.Publish(context.Background(), b)
	must(t, err)
	if len(results) != 1 || results[0].Err != nil {
		t.Fatalf("publish: %+v", results)
	}
	return results[0]
}

// noiseSkill has a file that does not become smaller when it is packed.
func noiseSkill(size int) testSkill {
	noise := make([]byte, size)
	x := uint32(1)
	for i := range noise {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		noise[i] = byte(x)
	}
	return plainSkill().with("noise", string(noise))
}
