//go:build unix

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
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
		"one small file changed": {func() { must(t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("evil"), 0o600)) }, 1200},
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
	go func() {
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
	}()
	r := publishOne(t, c, b)
	close(done)
	if r.Outcome != Published || peak > 64<<20 {
		t.Errorf("%s with %d MiB of memory", r.Outcome, peak>>20)
	}
	if got := recomputed(t, filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String())); got != b.Manifest.Digest().String() {
		t.Error("not whole")
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

// TestAStreamThatEndsEarlyLeavesNothing cuts the stream at many places.
func TestAStreamThatEndsEarlyLeavesNothing(t *testing.T) {
	conn, home := newShellConn(t)
	b := plainSkill().with("blob", randomText(3<<10)).pin(t, "release")
	size := int64(packed(t, b).Len())
	root := filepath.Join(home, ".cache/berry/skills")
	cuts := []int64{0, 1, 10, 18, 100, 511, 513, size / 4, size / 2, size * 3 / 4, size - 100, size - 60}
	for _, n := range cuts {
		for name, end := range map[string]error{"end": io.EOF, "error": iotest.ErrTimeout} {
			conn.fix = func(cmd *transport.Cmd) {
				cmd.Stdin = io.MultiReader(io.LimitReader(cmd.Stdin, n), iotest.ErrReader(end))
			}
			results, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
			if err == nil || results[0].Outcome != Failed || results[0].Err == nil {
				t.Errorf("cut with an %s at %d of %d: %+v, %v", name, n, size, results, err)
			}
			waitFor(t, func() bool { return len(names(t, root)) == 0 })
			if got := names(t, root); len(got) != 0 {
				t.Errorf("cut with an %s at %d of %d: the cache holds %q", name, n, size, got)
			}
		}
	}
	conn.fix = nil
	if r := publishOne(t, openCache(t, conn, Options{}), b); r.Outcome != Published {
		t.Errorf("after all that: %+v", r)
	}
}

// waitFor waits a moment until ok.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// packed returns what is sent for a bundle that is not there.
func packed(t testing.TB, b *bundle.Bundle) *bytes.Buffer {
	var buf bytes.Buffer
	s := &stream{w: newExecWay(nil, Options{})}
	s.add(item{Bundle: b})
	must(t, s.pack(t.Context(), &buf))
	return &buf
}

func TestACancelledPublishLeavesNothing(t *testing.T) {
	conn, home := newShellConn(t)
	b := plainSkill().with("blob", randomText(400<<10)).pin(t, "release")
	for _, n := range []int{0, 1, 3, 6} {
		ctx, cancel := context.WithCancel(t.Context())
		conn.fix = func(cmd *transport.Cmd) {
			in, left := cmd.Stdin, n
			cmd.Stdin = readerFunc(func(p []byte) (int, error) {
				if left--; left < 0 {
					cancel()
					<-ctx.Done()
					time.Sleep(20 * time.Millisecond)
				}
				return in.Read(p)
			})
		}
		_, err := openCache(t, conn, Options{}).Publish(ctx, b)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at read %d: %v", n, err)
		}
		waitFor(t, func() bool { return len(names(t, filepath.Join(home, ".cache/berry/skills"))) == 0 })
		if got := names(t, filepath.Join(home, ".cache/berry/skills")); len(got) != 0 {
			t.Errorf("cancelled at read %d: the cache holds %q", n, got)
		}
	}
}

// TestABundleSpoiledOnThisSideIsThisSidesError and nothing of it is left there.
func TestABundleSpoiledOnThisSideIsThisSidesError(t *testing.T) {
	conn, home := newShellConn(t)
	dir := filepath.Join(t.TempDir(), "release")
	plainSkill().write(t, dir)
	src, err := bundle.OpenSource(dir)
	must(t, err)
	defer src.Close()
	store, err := bundle.OpenStore(filepath.Join(t.TempDir(), "store"), bundle.Limits{})
	must(t, err)
	pinned, _, err := store.Pin(t.Context(), src, bundle.Rules{}, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(pinned.Path, "scripts/run.sh"), []byte("evil"), 0o700))
	b, err := store.Open(pinned.Digest)
	must(t, err)
	defer b.Close()
	results, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
	if _, ok := errors.AsType[*bundle.DamagedError](err); !ok || !strings.Contains(err.Error(), "on this side") || results[0].Err == nil {
		t.Errorf("got %+v, %v", results, err)
	}
	waitFor(t, func() bool { return len(names(t, filepath.Join(home, ".cache/berry/skills"))) == 0 })
	if got := names(t, filepath.Join(home, ".cache/berry/skills")); len(got) != 0 {
		t.Errorf("the cache holds %q", got)
	}
}

// TestAKilledPublishLeavesTheNameAbsentOrWhole kills the shell and all it started, at many moments.
func TestAKilledPublishLeavesTheNameAbsentOrWhole(t *testing.T) {
	conn, home := newShellConn(t)
	b := plainSkill().with("blob", randomText(200<<10)).pin(t, "release")
	d := b.Manifest.Digest().String()
	root := filepath.Join(home, ".cache/berry/skills")
	payload := packed(t, b).Bytes()
	whole, stages := 0, 0
	for i := range 10 {
		if i%2 == 1 { // a damaged copy is in the way
			must(t, os.MkdirAll(filepath.Join(root, d), 0o700))
			must(t, os.WriteFile(filepath.Join(root, d, "x"), nil, 0o600))
		}
		cmd := exec.Command("/bin/sh", "-c", line(verbPublish, fmt.Sprintf("%032x", i), "berry/skills", d))
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		must(t, err)
		must(t, cmd.Start())
		if i < 5 {
			_, _ = in.Write(payload[:len(payload)*i/5])
			time.Sleep(100 * time.Millisecond)
		} else {
			_, _ = in.Write(payload)
			in.Close()
			time.Sleep(time.Duration(i-5) * 20 * time.Millisecond)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		for _, name := range names(t, root) {
			switch {
			case strings.HasPrefix(name, ".tmp-"), strings.HasPrefix(name, ".stage-"):
				stages++
			case name == d && (i%2 == 1 || recomputed(t, filepath.Join(root, d)) == d):
				whole++
			default:
				t.Errorf("killed at %d: the cache holds %q", i, name)
			}
		}
		if r := publishOne(t, openCache(t, conn, Options{}), b); r.Err != nil || recomputed(t, filepath.Join(root, d)) != d {
			t.Errorf("after a kill at %d: %+v", i, r)
		}
		must(t, os.RemoveAll(filepath.Join(root, d)))
	}
	t.Logf("%d left something unfinished behind, %d a copy", stages, whole)
	if stages == 0 {
		t.Error("no kill came in time to leave something behind")
	}
	long := time.Now().Add(-50 * time.Hour)
	for _, name := range names(t, root) {
		must(t, os.Chtimes(filepath.Join(root, name), long, long))
	}
	publishOne(t, openCache(t, conn, Options{}), b)
	if got := names(t, root); len(got) != 1 || got[0] != d {
		t.Errorf("in the end the cache holds %q", got)
	}
}
