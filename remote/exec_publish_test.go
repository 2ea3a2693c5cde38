//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

func always(bundle.Digest) bool { return true }

// TestWhatIsIntactInADamagedCopyIsNotSentAgain counts bytes: most of what a copy holds is its own.
func TestWhatIsIntactInADamagedCopyIsNotSentAgain(t *testing.T) {
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{Believed: always})
	b := plainSkill().with("blob", randomText(40<<10)).with("other", randomText(30<<10)).pin(t, "release")
	whole := publishOne(t, c, b).Sent
	if whole < 20<<10 {
		t.Fatalf("the bundle took %d bytes, too few to tell", whole)
	}
	dir := filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String(), "release")
	for name, d := range map[string]struct {
		damage func()
		most   int64
	}{
		"a script left something behind": {func() {
			must(t, os.Mkdir(filepath.Join(dir, "scripts/__pycache__"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "scripts/__pycache__/a.pyc"), make([]byte, 9000), 0o644))
		}, 1000},
		"one small file changed, another touched": {func() {
			must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("evil"), 0o600))
			must(t, os.Chtimes(filepath.Join(dir, "blob"), time.Now(), time.Now()))
		}, 1200},
		"one large file changed": {func() { must(t, os.WriteFile(filepath.Join(dir, "other"), []byte("evil"), 0o600)) }, whole/2 + 1000},
		"far too many files": {func() {
			for i := range 3000 {
				must(t, os.WriteFile(filepath.Join(dir, "references", fmt.Sprintf("extra-%d-%s", i, strings.Repeat("x", 200))), nil, 0o600))
			}
		}, whole + 2000},
	} {
		d.damage()
		r := publishOne(t, c, b)
		if r.Outcome != Repaired || r.Sent > d.most {
			t.Errorf("%s: %s with %d bytes, want at most %d", name, r.Outcome, r.Sent, d.most)
		}
		if got := recomputed(t, filepath.Dir(dir)); got != b.Manifest.Digest().String() {
			t.Errorf("%s: not whole", name)
		}
		if info, err := os.Stat(filepath.Join(dir, "blob")); err != nil || !info.ModTime().Equal(bundle.PackedTime()) {
			t.Errorf("%s: a file that was kept has the time %v, %v", name, info.ModTime(), err)
		}
	}
}

func TestANewVersionSendsWhatChanged(t *testing.T) {
	conn, home := newShellConn(t)
	old := plainSkill().with("blob", randomText(40<<10)).pin(t, "release")
	next := plainSkill().with("blob", randomText(40<<10)).with("SKILL.md", "new").with("scripts/run.sh", "now text").pin(t, "release")
	c := openCache(t, conn, Options{Older: func(m *bundle.Manifest) *bundle.Manifest { return old.Manifest }})
	whole := publishOne(t, c, old).Sent
	r := publishOne(t, c, next)
	if r.Outcome != Published || r.Sent > whole/10 {
		t.Errorf("%s with %d bytes, where the whole takes %d", r.Outcome, r.Sent, whole)
	}
	w := &wayTest{t: t, c: c, home: home, root: filepath.Join(home, ".cache/berry/skills")}
	w.holds(next, old.Manifest.Digest().String())
	w.holds(old, next.Manifest.Digest().String())

	// An older version that is not whole is of no use, and no hindrance.
	must(t, os.RemoveAll(filepath.Join(w.root, next.Manifest.Digest().String())))
	must(t, os.Remove(filepath.Join(w.root, old.Manifest.Digest().String(), "release/blob")))
	if r := publishOne(t, c, next); r.Outcome != Published || r.Sent < whole/2 {
		t.Errorf("%s with %d bytes, where the whole takes %d", r.Outcome, r.Sent, whole)
	}
}

// TestWhatSpoilsWhileItIsCopiedIsSentWhole spoils the damaged copy further, between the answer and
// the stream.
func TestWhatSpoilsWhileItIsCopiedIsSentWhole(t *testing.T) {
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{Believed: always})
	b := plainSkill().with("blob", randomText(40<<10)).pin(t, "release")
	whole := publishOne(t, c, b).Sent
	dir := filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String(), "release")
	must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("evil"), 0o600))
	var once sync.Once
	conn.fix = func(cmd *transport.Cmd) {
		in := cmd.Stdin
		cmd.Stdin = readerFunc(func(p []byte) (int, error) {
			n, err := in.Read(p)
			once.Do(func() { must(t, os.WriteFile(filepath.Join(dir, "blob"), []byte("evil"), 0o600)) })
			return n, err
		})
	}
	r := publishOne(t, c, b)
	if r.Outcome != Repaired || r.Sent < whole {
		t.Errorf("%s with %d bytes, want over %d", r.Outcome, r.Sent, whole)
	}
	if got := recomputed(t, filepath.Dir(dir)); got != b.Manifest.Digest().String() {
		t.Error("not whole")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTheBytesOfAStreamAreSharedOut(t *testing.T) {
	conn, _ := newShellConn(t)
	var fed int64
	conn.fix = func(cmd *transport.Cmd) {
		in := cmd.Stdin
		cmd.Stdin = readerFunc(func(p []byte) (int, error) {
			n, err := in.Read(p)
			fed += int64(n)
			return n, err
		})
	}
	c := openCache(t, conn, Options{})
	small, big := testSkill{"SKILL.md": "s"}.pin(t, "small"), testSkill{"SKILL.md": randomText(50 << 10)}.pin(t, "big")
	results, err := c.Publish(t.Context(), small, big)
	must(t, err)
	if a, b := results[0].Sent, results[1].Sent; a <= 0 || b < 10*a || a+b != fed {
		t.Errorf("%d and %d bytes of %d", a, b, fed)
	}
}

// TestALargeBundleIsNotSentWhereItIs asks first.
func TestALargeBundleIsNotSentWhereItIs(t *testing.T) {
	conn, _ := newShellConn(t)
	c := openCache(t, conn, Options{})
	b := testSkill{"SKILL.md": "x", "blob": randomText(blindBytes)}.pin(t, "release")
	publishOne(t, c, b)
	if r := publishOne(t, c, b); r.Outcome != Present || r.Sent != 0 {
		t.Errorf("%s with %d bytes", r.Outcome, r.Sent)
	}
	if n := conn.commands.Load(); n != 2 {
		t.Errorf("%d commands for two publishes", n)
	}
}

func TestPublishingStreams(t *testing.T) {
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{})
	blob := make([]byte, 31<<20)
	for i := range blob {
		blob[i] = byte(i * i >> 7)
	}
	b := testSkill{"SKILL.md": "x", "blob": string(blob)}.pin(t, "release")
	blob = nil
	runtime.GC()
	var peak uint64
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	})
	r := publishOne(t, c, b)
	close(done)
	watching.Wait()
	if r.Outcome != Published || peak > 64<<20 {
		t.Errorf("%s with %d MiB of memory", r.Outcome, peak>>20)
	}
	if got := recomputed(t, filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String())); got != b.Manifest.Digest().String() {
		t.Error("not whole")
	}
}

// TestACopyThatIsUsedMeanwhileIsNotPruned uses one between the choice and the removal.
func TestACopyThatIsUsedMeanwhileIsNotPruned(t *testing.T) {
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{})
	used, unused := testSkill{"SKILL.md": "a"}.pin(t, "used"), testSkill{"SKILL.md": "b"}.pin(t, "unused")
	_, err := c.Publish(t.Context(), used, unused)
	must(t, err)
	root := filepath.Join(home, ".cache/berry/skills")
	long := time.Now().Add(-1000 * time.Hour)
	for _, b := range []*bundle.Bundle{used, unused} {
		must(t, os.Chtimes(filepath.Join(root, b.Manifest.Digest().String()), long, long))
	}
	conn.fix = func(cmd *transport.Cmd) {
		if strings.Contains(cmd.Line, unused.Manifest.Digest().String()) {
			now := time.Now()
			must(t, os.Chtimes(filepath.Join(root, used.Manifest.Digest().String()), now, now))
		}
	}
	removed, err := c.Prune(t.Context(), PruneOptions{OlderThan: time.Hour})
	must(t, err)
	if len(removed) != 1 || removed[0].Name != "unused" {
		t.Errorf("prune says %+v", removed)
	}
	if got := names(t, root); len(got) != 1 || got[0] != used.Manifest.Digest().String() {
		t.Errorf("the cache holds %q", got)
	}
}

func TestMoreBundlesThanACommandNames(t *testing.T) {
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{})
	b := testSkill{"SKILL.md": "x"}.pin(t, "release")
	publishOne(t, c, b)
	var wanted []bundle.Digest
	for i := range 200 {
		wanted = append(wanted, bundle.Digest{byte(i), 1})
	}
	wanted = append(wanted, b.Manifest.Digest(), wanted[0])
	before := conn.commands.Load()
	copies, err := c.Check(t.Context(), wanted...)
	must(t, err)
	if n := conn.commands.Load() - before; n != 3 {
		t.Errorf("%d commands", n)
	}
	for i, k := range copies {
		if k.Digest != wanted[i] || (k.State == Whole) != (i == 200) {
			t.Errorf("%d: %+v", i, k)
		}
	}
	_ = home
}
