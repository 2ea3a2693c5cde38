package remote

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// faults decides the fate of every call that changes something, and, once cut, of every call.
type faults struct {
	calls atomic.Int64
	cut   atomic.Bool
	// before and after are asked around the n-th such call.
	before, after func(n int64) error
}

// faultyConn is a connection to a target that has faults.
type faultyConn struct {
	transport.Conn
	f *faults
}

func (c *faultyConn) Files(ctx context.Context) (transport.FS, error) {
	files, err := c.Conn.Files(ctx)
	return &faultyFS{files, c.f}, err
}

type faultyFS struct {
	transport.FS
	f *faults
}

func (f *faults) change(do func() error) error {
	if f.cut.Load() {
		return transport.ErrLost
	}
	n := f.calls.Add(1)
	if f.before != nil {
		if err := f.before(n); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && f.after != nil {
		err = f.after(n)
	}
	return err
}

func (f *faults) read() error {
	if f.cut.Load() {
		return transport.ErrLost
	}
	return nil
}

func (s *faultyFS) Lstat(name string) (fs.FileInfo, error) {
	if err := s.f.read(); err != nil {
		return nil, err
	}
	return s.FS.Lstat(name)
}

func (s *faultyFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	if err := s.f.read(); err != nil {
		return nil, err
	}
	return s.FS.ReadDir(name, max)
}

func (s *faultyFS) Mkdir(name string, perm fs.FileMode) error {
	return s.f.change(func() error { return s.FS.Mkdir(name, perm) })
}
func (s *faultyFS) Chmod(name string, perm fs.FileMode) error {
	return s.f.change(func() error { return s.FS.Chmod(name, perm) })
}
func (s *faultyFS) Chtimes(name string, t time.Time) error {
	return s.f.change(func() error { return s.FS.Chtimes(name, t) })
}
func (s *faultyFS) Rename(a, b string) error {
	return s.f.change(func() error { return s.FS.Rename(a, b) })
}
func (s *faultyFS) Remove(name string) error {
	return s.f.change(func() error { return s.FS.Remove(name) })
}
func (s *faultyFS) RemoveDir(name string) error {
	return s.f.change(func() error { return s.FS.RemoveDir(name) })
}

func (s *faultyFS) Create(name string, perm fs.FileMode) (transport.FileWriter, error) {
	var w transport.FileWriter
	err := s.f.change(func() (err error) {
		w, err = s.FS.Create(name, perm)
		return err
	})
	if err != nil {
		if w != nil {
			_ = w.Close()
		}
		return nil, err
	}
	return &faultyWriter{w, s.f}, nil
}

type faultyWriter struct {
	transport.FileWriter
	f *faults
}

func (w *faultyWriter) Write(p []byte) (n int, err error) {
	err = w.f.change(func() error {
		n, err = w.FileWriter.Write(p)
		return err
	})
	return n, err
}

func (w *faultyWriter) Close() error {
	return errors.Join(w.f.change(func() error { return nil }), w.FileWriter.Close())
}

var errInjected = errors.New("injected failure")

// nth returns a hook that acts at the n-th call alone.
func nth(n int64, act func() error) func(int64) error {
	return func(at int64) error {
		if at != n {
			return nil
		}
		return act()
	}
}

// everyFault runs a call once for each change it makes on the target and each kind of fault there,
// and holds what it left behind to the promise of the commit. prepare makes the target ready.
func everyFault(t *testing.T, s *sftpTarget, b *bundle.Bundle, prepare func(), call func(w *sftpWay) error) {
	for kind, plan := range map[string]func(f *faults, n int64){
		"refused":    func(f *faults, n int64) { f.before = nth(n, func() error { return errInjected }) },
		"reply lost": func(f *faults, n int64) { f.after = nth(n, func() error { return errInjected }) },
		"cut before": func(f *faults, n int64) {
			f.before = nth(n, func() error { f.cut.Store(true); return transport.ErrLost })
		},
		"cut after": func(f *faults, n int64) {
			f.after = nth(n, func() error { f.cut.Store(true); return transport.ErrLost })
		},
	} {
		for n := int64(1); ; n++ {
			prepare()
			f := &faults{}
			plan(f, n)
			err := call(newSFTPWay(&faultyConn{s.conn, f}, Options{Dir: sftpDir}))
			state := checkOne(t, s.way(), b.Manifest.Digest()).State
			if state != Absent && state != Whole && !stillAsPrepared(t, s) {
				t.Errorf("%s at %d (%v): the copy is %s", kind, n, err, state)
			}
			if !strings.HasPrefix(kind, "cut") {
				nothingBeside(t, s, b.Manifest.Digest().String())
			}
			mustPublish(t, s.way(), b)
			sameAsBundle(t, s, b)
			if t.Failed() {
				t.Fatalf("%s at %d (%v)", kind, n, err)
			}
			if f.calls.Load() < n {
				if err != nil {
					t.Errorf("without a fault: %v", err)
				}
				break
			}
		}
	}
}

// stillAsPrepared reports whether the damaged copy that a test prepared was not touched.
func stillAsPrepared(t *testing.T, s *sftpTarget) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.cache(), "*", "release", "scripts", "__pycache__"))
	must(t, err)
	return len(found) == 1
}

func TestSFTPAnyFaultOfAPublishLeavesTheNameAbsentOrWhole(t *testing.T) {
	s := localTarget(t)
	b := sftpSkill(t, "release", map[string]string{"scripts/run.sh": "#!/bin/sh\n", "references/deep/a.md": "a"})
	everyFault(t, s, b, func() { must(t, os.RemoveAll(filepath.Join(s.home, ".cache"))) }, func(w *sftpWay) error {
		r, err := w.publish(t.Context(), []*bundle.Bundle{b})
		return failureOf(r, err)
	})
}

func TestSFTPAnyFaultOfARepairLeavesTheNameAbsentOrWhole(t *testing.T) {
	s := localTarget(t)
	b := sftpSkill(t, "release", map[string]string{"scripts/run.sh": "#!/bin/sh\n", "references/deep/a.md": "a"})
	dir := filepath.Join(s.copyOf(b.Manifest.Digest()), "release")
	everyFault(t, s, b, func() {
		must(t, os.RemoveAll(s.cache()))
		mustPublish(t, s.way(), b)
		must(t, os.Mkdir(filepath.Join(dir, "scripts", "__pycache__"), 0o755))
		must(t, os.Remove(filepath.Join(dir, "references", "deep", "a.md")))
	}, func(w *sftpWay) error {
		r, err := w.publish(t.Context(), []*bundle.Bundle{b})
		return failureOf(r, err)
	})
}

func TestSFTPAnyFaultOfAPruneLeavesTheNameAbsentOrWhole(t *testing.T) {
	s := localTarget(t)
	b := sftpSkill(t, "release", map[string]string{"scripts/run.sh": "#!/bin/sh\n"})
	everyFault(t, s, b, func() {
		must(t, os.RemoveAll(s.cache()))
		mustPublish(t, s.way(), b)
		long := time.Now().Add(-40 * 24 * time.Hour)
		must(t, os.Chtimes(s.copyOf(b.Manifest.Digest()), long, long))
	}, func(w *sftpWay) error {
		_, err := w.prune(t.Context(), PruneOptions{OlderThan: time.Hour})
		return err
	})
}

func failureOf(r []Result, err error) error {
	for _, one := range r {
		err = errors.Join(err, one.Err)
	}
	return err
}

func TestSFTPCancelLeavesNothingOnTheTarget(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b, whole := sftpSkill(t, "release", releaseFiles()), sftpSkill(t, "whole", nil)
		damaged := filepath.Join(s.copyOf(b.Manifest.Digest()), "release", "SKILL.md")
		for n := int64(1); ; n++ {
			must(t, os.RemoveAll(s.cache()))
			mustPublish(t, s.way(), whole)
			if n%2 == 0 {
				mustPublish(t, s.way(), b)
				must(t, os.WriteFile(damaged, []byte("evil"), 0o600))
			}
			ctx, cancel := context.WithCancel(t.Context())
			f := &faults{before: nth(n, func() error { cancel(); return nil })}
			r, err := newSFTPWay(&faultyConn{s.conn, f}, Options{Dir: sftpDir}).publish(ctx, []*bundle.Bundle{whole, b})
			done := f.calls.Load() < n || ctx.Err() == nil
			cancel()
			nothingBeside(t, s, whole.Manifest.Digest().String(), b.Manifest.Digest().String())
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("cancel at %d: %v", n, err)
			}
			for _, one := range r {
				if one.Name == "whole" && one.Outcome != Present || one.Err != nil {
					t.Errorf("cancel at %d: %+v", n, one)
				}
			}
			if k := checkOne(t, s.way(), b.Manifest.Digest()); k.State != Absent && k.State != Whole && n%2 != 0 {
				t.Errorf("cancel at %d: %v", n, k.State)
			}
			if done || t.Failed() {
				return
			}
		}
	})
}

func TestSFTPContextThatIsOverDoesNothing(t *testing.T) {
	s := localTarget(t)
	b := sftpSkill(t, "release", nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := s.way().publish(ctx, []*bundle.Bundle{b})
	if !errors.Is(err, context.Canceled) || len(r) != 0 {
		t.Errorf("%v, %v", r, err)
	}
	nothingMade(t, s)
}
