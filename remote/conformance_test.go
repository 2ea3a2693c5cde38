package remote

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// testWay holds one way to a cache to what both promise. open returns a connection to a machine
// whose files are this one's, and the home directory of its account there, which must be new.
func testWay(t *testing.T, open func(t *testing.T) (conn transport.Conn, home string), o Options) {
	o.Dir = "berry/skills"
	start := func(t *testing.T) *wayTest {
		conn, home := open(t)
		c, err := Open(conn, o)
		must(t, err)
		return &wayTest{t: t, c: c, home: home, root: filepath.Join(home, ".cache", "berry", "skills")}
	}
	for _, test := range []struct {
		name string
		run  func(*wayTest)
	}{
		{"a bundle is published and then present", (*wayTest).publishes},
		{"many bundles go together and each has its result", (*wayTest).publishesMany},
		{"every kind of damage is seen and repaired", (*wayTest).repairs},
		{"what stands in the place of a copy is replaced", (*wayTest).replaces},
		{"asking creates nothing", (*wayTest).asksOnly},
		{"list names everything", (*wayTest).lists},
		{"prune takes copies by age and never what is foreign", (*wayTest).prunes},
		{"what was left unfinished long ago is taken away", (*wayTest).reaps},
		{"nothing outside the cache is changed", (*wayTest).keepsOut},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "-"), func(t *testing.T) { test.run(start(t)) })
	}
}

// wayTest is one way, and the cache it leads to as this machine sees it.
type wayTest struct {
	t    *testing.T
	c    *Cache
	home string
	root string
}

// holds fails unless the copy of b is whole, private, at its place, and nothing but the named
// entries is beside it.
func (w *wayTest) holds(b *bundle.Bundle, beside ...string) {
	w.t.Helper()
	d := b.Manifest.Digest()
	if got := recomputed(w.t, filepath.Join(w.root, d.String())); got != d.String() {
		w.t.Errorf("plain tools compute the digest %s, want %s", got, d)
	}
	want := append([]string{d.String()}, beside...)
	slices.Sort(want)
	if got := names(w.t, w.root); !slices.Equal(got, want) {
		w.t.Errorf("the cache holds %q, want %q", got, want)
	}
	err := filepath.WalkDir(filepath.Join(w.root, d.String()), func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() && !info.ModTime().Equal(bundle.PackedTime()) {
			w.t.Errorf("%s has the time %v, want %v", p, info.ModTime(), bundle.PackedTime())
		}
		return nil
	})
	must(w.t, err)
	for dir := w.root; dir != w.home; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		must(w.t, err)
		if info.Mode() != fs.ModeDir|0o700 {
			w.t.Errorf("%s has the mode %v, want drwx------", dir, info.Mode())
		}
	}
}

// result publishes b and holds the result to an outcome.
func (w *wayTest) result(b *bundle.Bundle, want Outcome) Result {
	w.t.Helper()
	r := publishOne(w.t, w.c, b)
	d := b.Manifest.Digest()
	path := filepath.Join(w.root, d.String(), b.Manifest.Name())
	if r.Outcome != want || r.Digest != d || r.Name != b.Manifest.Name() || r.Path != path {
		w.t.Errorf("published %+v, want %s at %s", r, want, path)
	}
	if want == Present != (r.Sent == 0) && want == Published {
		w.t.Errorf("%s with %d bytes sent", want, r.Sent)
	}
	return r
}

func (w *wayTest) publishes() {
	b := plainSkill().pin(w.t, "release")
	w.result(b, Published)
	w.holds(b)
	w.result(b, Present)
	w.holds(b)
	if w.c.Class() == "" {
		w.t.Error("the class is not known after a publish")
	}
	copies, err := w.c.Check(w.t.Context(), b.Manifest.Digest(), bundle.Digest{1})
	must(w.t, err)
	if len(copies) != 2 || copies[0].State != Whole || copies[0].Name != "release" || copies[1].State != Absent {
		w.t.Errorf("check says %+v", copies)
	}
	if want := filepath.Join(w.root, b.Manifest.Digest().String(), "release"); copies[0].Path != want {
		w.t.Errorf("check says it is at %q, want %q", copies[0].Path, want)
	}
}

func (w *wayTest) publishesMany() {
	var bundles []*bundle.Bundle
	for _, name := range []string{"one", "two", "three", "技能"} {
		bundles = append(bundles, plainSkill().with("SKILL.md", name).pin(w.t, name))
	}
	w.result(bundles[1], Published)
	must(w.t, os.WriteFile(filepath.Join(w.root, bundles[1].Manifest.Digest().String(), "two", "extra"), nil, 0o600))
	bundles = append(bundles, bundles[0])
	results, err := w.c.Publish(w.t.Context(), bundles...)
	must(w.t, err)
	for i, want := range []Outcome{Published, Repaired, Published, Published} {
		if results[i].Outcome != want || results[i].Digest != bundles[i].Manifest.Digest() || results[i].Err != nil {
			w.t.Errorf("bundle %d: %+v, want %s", i, results[i], want)
		}
		d := bundles[i].Manifest.Digest().String()
		if got := recomputed(w.t, filepath.Join(w.root, d)); got != d {
			w.t.Errorf("bundle %d is not whole", i)
		}
	}
	if r := results[4]; r.Err != nil || r.Path != results[0].Path {
		w.t.Errorf("a bundle given twice: %+v, want the path %s", r, results[0].Path)
	}
	if got := names(w.t, w.root); len(got) != 4 {
		w.t.Errorf("the cache holds %q", got)
	}
}

func (w *wayTest) asksOnly() {
	// What stands above the cache is not in it.
	must(w.t, os.Mkdir(filepath.Join(w.home, bundle.Digest{1}.String()), 0o700))
	before := snapshot(w.t, w.home)
	copies, err := w.c.Check(w.t.Context(), bundle.Digest{1}, bundle.Digest{2})
	must(w.t, err)
	if len(copies) != 2 || copies[0].State != Absent || copies[1].State != Absent || copies[1].Digest != (bundle.Digest{2}) {
		w.t.Errorf("check says %+v", copies)
	}
	dir, copies, err := w.c.List(w.t.Context())
	must(w.t, err)
	if dir != w.root || len(copies) != 0 {
		w.t.Errorf("list says %q %+v, want an empty %q", dir, copies, w.root)
	}
	removed, err := w.c.Prune(w.t.Context(), PruneOptions{})
	must(w.t, err)
	if len(removed) != 0 {
		w.t.Errorf("prune says %+v", removed)
	}
	if after := snapshot(w.t, w.home); after != before {
		w.t.Errorf("the home was changed from\n%sto\n%s", before, after)
	}
}

func (w *wayTest) lists() {
	whole, broken := plainSkill().pin(w.t, "whole"), plainSkill().pin(w.t, "broken")
	_, err := w.c.Publish(w.t.Context(), whole, broken)
	must(w.t, err)
	at := filepath.Join(w.root, broken.Manifest.Digest().String(), "broken", "SKILL.md")
	must(w.t, os.WriteFile(at, []byte("evil"), 0o600))
	foreign := []string{"notours", "-n", "with space", "end\nof line", "技能", "\xff\xfe", "..dots", strings.Repeat("A", 64)}
	for _, name := range foreign {
		must(w.t, os.Mkdir(filepath.Join(w.root, name), 0o700))
	}
	for _, name := range []string{".tmp-0123", ".stage-" + whole.Manifest.Digest().String()} {
		must(w.t, os.Mkdir(filepath.Join(w.root, name), 0o700))
	}
	before := snapshot(w.t, w.root)
	dir, copies, err := w.c.List(w.t.Context())
	must(w.t, err)
	if dir != w.root {
		w.t.Errorf("the cache is said to be %q, want %q", dir, w.root)
	}
	for _, c := range copies {
		switch {
		case c.State == Foreign:
			i := slices.Index(foreign, c.Name)
			if i < 0 {
				w.t.Fatalf("an entry is named %q", c.Name)
			}
			foreign = slices.Delete(foreign, i, i+1)
		case c.Digest == whole.Manifest.Digest():
			var bytes int64
			for _, content := range plainSkill() {
				bytes += int64(len(content))
			}
			age := time.Since(c.Used)
			if c.State != Whole || c.Name != "whole" || c.Files != whole.Manifest.Files() || c.Bytes != bytes || age < -time.Minute || age > time.Hour {
				w.t.Errorf("the whole copy: %+v, want %d files and %d bytes", c, whole.Manifest.Files(), bytes)
			}
		case c.Digest == broken.Manifest.Digest():
			if c.State != Damaged || c.Name != "broken" {
				w.t.Errorf("the damaged copy: %+v", c)
			}
		}
	}
	if len(foreign) > 0 || len(copies) != 10 {
		w.t.Errorf("%d entries, without %q", len(copies), foreign)
	}
	if after := snapshot(w.t, w.root); after != before {
		w.t.Errorf("list changed the cache from\n%sto\n%s", before, after)
	}
}

func (w *wayTest) prunes() {
	ctx := w.t.Context()
	var bundles []*bundle.Bundle
	for _, name := range []string{"old", "new", "held", "broken"} {
		bundles = append(bundles, plainSkill().pin(w.t, name))
	}
	_, err := w.c.Publish(ctx, bundles...)
	must(w.t, err)
	dir := func(i int) string { return filepath.Join(w.root, bundles[i].Manifest.Digest().String()) }
	must(w.t, os.WriteFile(filepath.Join(dir(3), "broken", "SKILL.md"), []byte("evil"), 0o600))
	must(w.t, os.MkdirAll(filepath.Join(w.root, "notours", "deep"), 0o700))
	long := time.Now().Add(-40 * 24 * time.Hour)
	for _, i := range []int{0, 2, 3} {
		must(w.t, os.Chtimes(dir(i), long, long))
	}
	must(w.t, os.Chtimes(filepath.Join(w.root, "notours"), long, long))

	o := PruneOptions{OlderThan: 30 * 24 * time.Hour, Keep: map[bundle.Digest]bool{bundles[2].Manifest.Digest(): true}, DryRun: true}
	before := snapshot(w.t, w.root)
	for _, dry := range []bool{true, false} {
		o.DryRun = dry
		removed, err := w.c.Prune(ctx, o)
		must(w.t, err)
		var got []string
		for _, r := range removed {
			got = append(got, r.Name)
			if r.Err != nil {
				w.t.Errorf("prune: %s: %v", r.Name, r.Err)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"broken", "old"}) {
			w.t.Errorf("prune (dry run %v) says %q, want broken and old", dry, got)
		}
		if dry && snapshot(w.t, w.root) != before {
			w.t.Error("a dry run changed the cache")
		}
	}
	left := []string{filepath.Base(dir(1)), filepath.Base(dir(2)), "notours"}
	slices.Sort(left)
	if got := names(w.t, w.root); !slices.Equal(got, left) {
		w.t.Errorf("after prune the cache holds %q, want %q", got, left)
	}
	if _, err := w.c.Check(ctx, bundles[2].Manifest.Digest()); err != nil {
		w.t.Fatal(err)
	}
	if removed, err := w.c.Prune(ctx, PruneOptions{OlderThan: 24 * time.Hour}); err != nil || len(removed) != 0 {
		w.t.Errorf("a copy that was used a moment ago: %+v, %v", removed, err)
	}
	if removed, err := w.c.Prune(ctx, PruneOptions{}); err != nil || len(removed) != 2 {
		w.t.Errorf("prune of all: %+v, %v", removed, err)
	}
	if got := names(w.t, w.root); !slices.Equal(got, []string{"notours"}) {
		w.t.Errorf("after prune of all the cache holds %q", got)
	}
	if _, err := os.Stat(filepath.Join(w.root, "notours", "deep")); err != nil {
		w.t.Error(err)
	}
}

func (w *wayTest) reaps() {
	b := plainSkill().pin(w.t, "release")
	must(w.t, os.MkdirAll(filepath.Join(w.root, ".tmp-dead", "deep"), 0o700))
	must(w.t, os.MkdirAll(filepath.Join(w.root, ".tmp-alive"), 0o700))
	must(w.t, os.MkdirAll(filepath.Join(w.root, ".stage-"+b.Manifest.Digest().String()), 0o700))
	for dir := w.root; dir != w.home; dir = filepath.Dir(dir) {
		must(w.t, os.Chmod(dir, 0o700))
	}
	long := time.Now().Add(-3 * 24 * time.Hour)
	for _, name := range []string{".tmp-dead", ".stage-" + b.Manifest.Digest().String()} {
		must(w.t, os.Chtimes(filepath.Join(w.root, name), long, long))
	}
	w.result(b, Published)
	w.holds(b, ".tmp-alive")
}

func (w *wayTest) keepsOut() {
	must(w.t, os.Mkdir(filepath.Join(w.home, ".cache"), 0o755))
	must(w.t, os.Chmod(filepath.Join(w.home, ".cache"), 0o755|fs.ModeSetgid))
	must(w.t, os.Mkdir(filepath.Join(w.home, ".cache", "other"), 0o755))
	must(w.t, os.WriteFile(filepath.Join(w.home, "file"), []byte("mine"), 0o644))
	before := snapshot(w.t, w.home)
	b := plainSkill().pin(w.t, "release")
	w.result(b, Published)
	for _, dir := range []string{w.root, filepath.Dir(w.root)} {
		if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
			w.t.Errorf("%s below a setgid directory: %v %v", dir, info.Mode(), err)
		}
	}
	must(w.t, os.Chmod(w.root, 0o755|fs.ModeSetgid))
	must(w.t, os.RemoveAll(filepath.Join(w.root, b.Manifest.Digest().String())))
	w.result(b, Published)
	if info, err := os.Stat(w.root); err != nil || info.Mode() != fs.ModeDir|0o700 {
		w.t.Errorf("a cache that was open: %v %v", info.Mode(), err)
	}
	must(w.t, os.RemoveAll(filepath.Join(w.home, ".cache", "berry")))
	if after := snapshot(w.t, w.home); after != before {
		w.t.Errorf("the home was changed from\n%sto\n%s", before, after)
	}
	if _, err := os.Lstat(w.root); !errors.Is(err, fs.ErrNotExist) {
		w.t.Error(err)
	}
}
