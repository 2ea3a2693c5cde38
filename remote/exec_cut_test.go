//go:build linux

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
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

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
