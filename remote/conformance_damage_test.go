package remote

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/punnet/punnet/bundle"
)

// damages are ways to spoil a copy, by its digest directory and skill directory.
var damages = map[string]func(t testing.TB, d, dir string){
	"content": func(t testing.TB, _, dir string) {
		must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("evil"), 0o600))
	},
	"missing":        func(t testing.TB, _, dir string) { must(t, os.Remove(filepath.Join(dir, "references/deep/a.md"))) },
	"extra":          func(t testing.TB, _, dir string) { must(t, os.WriteFile(filepath.Join(dir, "extra"), nil, 0o600)) },
	"extra readable": func(t testing.TB, _, dir string) { must(t, os.WriteFile(filepath.Join(dir, "extra"), nil, 0o644)) },
	"extra directory": func(t testing.TB, _, dir string) {
		must(t, os.MkdirAll(filepath.Join(dir, "scripts/__pycache__"), 0o700))
	},
	"extra at top": func(t testing.TB, d, _ string) { must(t, os.WriteFile(filepath.Join(d, "manifest"), nil, 0o600)) },
	"line end in name": func(t testing.TB, _, dir string) {
		must(t, os.WriteFile(filepath.Join(dir, "a\nd .b"), nil, 0o600))
	},
	"exec bit lost":   func(t testing.TB, _, dir string) { must(t, os.Chmod(filepath.Join(dir, "scripts/run.sh"), 0o600)) },
	"exec bit gained": func(t testing.TB, _, dir string) { must(t, os.Chmod(filepath.Join(dir, "SKILL.md"), 0o700)) },
	"readable file":   func(t testing.TB, _, dir string) { must(t, os.Chmod(filepath.Join(dir, "SKILL.md"), 0o644)) },
	"setuid": func(t testing.TB, _, dir string) {
		must(t, os.Chmod(filepath.Join(dir, "scripts/run.sh"), 0o700|fs.ModeSetuid))
	},
	"open directory": func(t testing.TB, _, dir string) { must(t, os.Chmod(filepath.Join(dir, "references"), 0o755)) },
	"open top":       func(t testing.TB, d, _ string) { must(t, os.Chmod(d, 0o755)) },
	"locked directory": func(t testing.TB, d, dir string) {
		must(t, os.Chmod(filepath.Join(dir, "references"), 0o500))
		must(t, os.Chmod(d, 0o500))
	},
	"file is a link": func(t testing.TB, d, dir string) {
		must(t, os.Rename(filepath.Join(dir, "SKILL.md"), filepath.Join(filepath.Dir(d), "..", "moved")))
		must(t, os.Symlink(filepath.Join(filepath.Dir(d), "..", "moved"), filepath.Join(dir, "SKILL.md")))
	},
	"directory is a link": func(t testing.TB, _, dir string) {
		must(t, os.Rename(filepath.Join(dir, "references"), filepath.Join(dir, "elsewhere")))
		must(t, os.Symlink("elsewhere", filepath.Join(dir, "references")))
	},
	"nested link": func(t testing.TB, _, dir string) {
		must(t, os.Symlink("/etc", filepath.Join(dir, "references/deep/etc")))
	},
	"file is a directory": func(t testing.TB, _, dir string) {
		must(t, os.Remove(filepath.Join(dir, "empty")))
		must(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	},
	"directory is a file": func(t testing.TB, _, dir string) {
		must(t, os.Remove(filepath.Join(dir, "assets")))
		must(t, os.WriteFile(filepath.Join(dir, "assets"), nil, 0o600))
	},
	"emptied": func(t testing.TB, _, dir string) { must(t, os.RemoveAll(dir)) },
	"renamed": func(t testing.TB, d, dir string) { must(t, os.Rename(dir, filepath.Join(d, "other"))) },
	"fifo":    func(t testing.TB, _, dir string) { makeFIFO(t, filepath.Join(dir, "pipe")) },
}

// repairs spoils one bundle for each kind of damage, so that asking and repairing is one call each.
func (w *wayTest) repairs() {
	kinds := slices.Sorted(maps.Keys(damages))
	var bundles []*bundle.Bundle
	var digests []bundle.Digest
	for i := range kinds {
		b := plainSkill().pin(w.t, fmt.Sprintf("release-%d", i))
		bundles, digests = append(bundles, b), append(digests, b.Manifest.Digest())
	}
	_, err := w.c.Publish(w.t.Context(), bundles...)
	must(w.t, err)
	before := snapshot(w.t, w.root)
	for i, kind := range kinds {
		d := filepath.Join(w.root, digests[i].String())
		damages[kind](w.t, d, filepath.Join(d, bundles[i].Manifest.Name()))
	}
	copies, err := w.c.Check(w.t.Context(), digests...)
	must(w.t, err)
	for i, c := range copies {
		if c.State != Damaged {
			w.t.Errorf("%s: check says %+v, want it damaged", kinds[i], c)
		}
	}
	results, err := w.c.Publish(w.t.Context(), bundles...)
	must(w.t, err)
	for i, r := range results {
		if r.Outcome != Repaired || r.Err != nil {
			w.t.Errorf("%s: %+v, want it repaired", kinds[i], r)
		}
	}
	if after := snapshot(w.t, w.root); after != before {
		w.t.Errorf("the cache was\n%sand is\n%s", before, after)
	}
	w.result(bundles[0], Present)
}

func (w *wayTest) replaces() {
	b := plainSkill().pin(w.t, "release")
	w.result(b, Published)
	d := filepath.Join(w.root, b.Manifest.Digest().String())
	elsewhere := filepath.Join(w.home, "elsewhere")
	for name, put := range map[string]func(){
		"a link to a whole copy": func() {
			must(w.t, os.Rename(d, elsewhere))
			must(w.t, os.Symlink(elsewhere, d))
		},
		"a file":          func() { must(w.t, os.WriteFile(d, []byte("x"), 0o600)) },
		"a dangling link": func() { must(w.t, os.Symlink("nowhere", d)) },
		"a link to nothing of ours": func() {
			must(w.t, os.Mkdir(elsewhere, 0o700))
			must(w.t, os.Symlink(elsewhere, d))
		},
	} {
		must(w.t, os.RemoveAll(elsewhere))
		if name != "a link to a whole copy" {
			must(w.t, os.RemoveAll(d))
		}
		put()
		before := snapshot(w.t, elsewhere)
		w.result(b, Repaired)
		w.holds(b)
		if after := snapshot(w.t, elsewhere); after != before {
			w.t.Errorf("%s: where the link leads to was changed from\n%sto\n%s", name, before, after)
		}
	}
	must(w.t, os.RemoveAll(d))
	must(w.t, os.Mkdir(d, 0o700))
	if r := publishOne(w.t, w.c, b); r.Outcome != Repaired && r.Outcome != Published {
		w.t.Errorf("an empty directory: %+v", r)
	}
	w.holds(b)
}
