package remote

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

func TestSFTPPublishesWholeBundlesPrivateAndExecutableWhereTheyWere(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		other := sftpSkill(t, "other", nil)
		d := b.Manifest.Digest()
		r, err := s.way().publish(t.Context(), []*bundle.Bundle{b, other, b})
		if err != nil || len(r) != 3 {
			t.Fatalf("publish: %+v, %v", r, err)
		}
		if r[0].Outcome != Published || r[1].Outcome != Published || r[2].Outcome != Present {
			t.Errorf("outcomes %v %v %v", r[0].Outcome, r[1].Outcome, r[2].Outcome)
		}
		if want := filepath.Join(s.copyOf(d), "release"); r[0].Path != want || r[0].Name != "release" {
			t.Errorf("the copy is %q at %q, want %q", r[0].Name, r[0].Path, want)
		}
		if r[0].Sent < 144_000 || r[2].Sent != 0 {
			t.Errorf("sent %d and %d bytes", r[0].Sent, r[2].Sent)
		}
		sameAsBundle(t, s, b)
		sameAsBundle(t, s, other)
		nothingBeside(t, s, d.String(), other.Manifest.Digest().String())
		for _, dir := range []string{s.cache(), filepath.Dir(s.cache()), filepath.Dir(filepath.Dir(s.cache()))} {
			if info, err := os.Stat(dir); err != nil || info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("%s: %v %v", dir, info.Mode(), err)
			}
		}
		if info, err := os.Stat(s.home); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the start directory became %v, %v", info.Mode(), err)
		}
	})
}

func TestSFTPKeepsThePromisesOfBothWays(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		testWay(t, func(t *testing.T) (transport.Conn, string) {
			s.reset(t)
			return s.conn, s.home
		}, Options{NoExec: true})
	})
}

func TestSFTPWholeCopyIsPresentAndSendsNothing(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		w := s.way()
		mustPublish(t, w, b)
		long := time.Now().Add(-40 * 24 * time.Hour)
		if err := os.Chtimes(s.copyOf(b.Manifest.Digest()), long, long); err != nil {
			t.Fatal(err)
		}
		for _, w := range []way{w, s.way()} {
			if r := mustPublish(t, w, b); r.Outcome != Present || r.Sent != 0 {
				t.Errorf("again: %v, %d bytes sent", r.Outcome, r.Sent)
			}
		}
		info, err := os.Stat(s.copyOf(b.Manifest.Digest()))
		if err != nil || time.Since(info.ModTime()) > time.Hour {
			t.Errorf("the last use was not recorded: %v, %v", info.ModTime(), err)
		}
	})
}

func TestSFTPCheckSaysWhatStandsThereAndRecordsTheUse(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		d := b.Manifest.Digest()
		fresh, knowing := s.way(), s.way()
		if k := checkOne(t, fresh, d); k.State != Absent || k.Path != "" {
			t.Errorf("before: %+v", k)
		}
		nothingMade(t, s)
		mustPublish(t, knowing, b)
		for _, w := range []way{fresh, knowing} {
			long := time.Now().Add(-40 * 24 * time.Hour)
			if err := os.Chtimes(s.copyOf(d), long, long); err != nil {
				t.Fatal(err)
			}
			k := checkOne(t, w, d)
			if k.State != Whole || k.Name != "release" || k.Path != filepath.Join(s.copyOf(d), "release") {
				t.Errorf("%+v", k)
			}
			if k.Files != 6 || k.Bytes < 144_000 || time.Since(k.Used) > time.Hour {
				t.Errorf("%+v", k)
			}
			if info, err := os.Stat(s.copyOf(d)); err != nil || time.Since(info.ModTime()) > time.Hour {
				t.Errorf("the last use was not recorded: %v", err)
			}
		}
	})
}

// nothingMade fails when the start directory holds anything.
func nothingMade(t *testing.T, s *sftpTarget) {
	t.Helper()
	if entries, err := os.ReadDir(s.home); err != nil || len(entries) > 0 {
		t.Errorf("the start directory holds %v, %v", entries, err)
	}
}

func TestSFTPListAndPruneOfNoCacheCreateNothing(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		dir, copies, err := s.way().list(t.Context())
		if err != nil || len(copies) != 0 || dir != s.cache() {
			t.Errorf("list: %q %v %v", dir, copies, err)
		}
		for _, o := range []PruneOptions{{}, {OlderThan: time.Hour}, {DryRun: true}} {
			if removed, err := s.way().prune(t.Context(), o); err != nil || len(removed) != 0 {
				t.Errorf("prune: %v %v", removed, err)
			}
		}
		nothingMade(t, s)
	})
}

func TestSFTPListNamesWhatIsForeignAndHidesWhatIsUnderWay(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		b := sftpSkill(t, "release", releaseFiles())
		d := b.Manifest.Digest().String()
		mustPublish(t, s.way(), b)
		for _, name := range []string{"notours", ".tmp-x", ".stage-" + d, ".trash-y", strings.ToUpper(d), "odd\n\x1bname"} {
			mkdirAll(t, filepath.Join(s.cache(), name))
		}
		got := states(t, s.way())
		want := map[string]State{d: Whole, "notours": Foreign, strings.ToUpper(d): Foreign, "odd\n\x1bname": Foreign}
		if len(got) != len(want) {
			t.Errorf("got %v", got)
		}
		for name, state := range want {
			if got[name] != state {
				t.Errorf("%q is %q, want %q", name, got[name], state)
			}
		}
	})
}

func TestSFTPPruneTakesOldCopiesAndNothingElse(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		a, b, c := sftpSkill(t, "a", releaseFiles()), sftpSkill(t, "b", nil), sftpSkill(t, "c", nil)
		if _, err := s.way().publish(t.Context(), []*bundle.Bundle{a, b, c}); err != nil {
			t.Fatal(err)
		}
		da, db, dc := a.Manifest.Digest(), b.Manifest.Digest(), c.Manifest.Digest()
		mkdirAll(t, filepath.Join(s.cache(), "notours"))
		outside := filepath.Join(s.home, "outside")
		mkdirAll(t, filepath.Join(outside, "kept"))
		if err := os.Symlink(outside, filepath.Join(s.copyOf(da), "a", "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(s.copyOf(da), "a", "references"), 0); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-40 * 24 * time.Hour)
		for _, d := range []bundle.Digest{da, dc} {
			if err := os.Chtimes(s.copyOf(d), long, long); err != nil {
				t.Fatal(err)
			}
		}
		o := PruneOptions{OlderThan: 30 * 24 * time.Hour, Keep: map[bundle.Digest]bool{dc: true}, DryRun: true}
		for _, dry := range []bool{true, false} {
			o.DryRun = dry
			removed, err := s.way().prune(t.Context(), o)
			if err != nil || len(removed) != 1 || removed[0].Digest != da || removed[0].Name != "" && removed[0].Name != "a" || removed[0].Err != nil {
				t.Fatalf("dry run %v: %+v, %v", dry, removed, err)
			}
			if _, err := os.Lstat(s.copyOf(da)); (err == nil) != dry {
				t.Errorf("dry run %v: %v", dry, err)
			}
		}
		nothingBeside(t, s, db.String(), dc.String(), "notours")
		if _, err := s.way().prune(t.Context(), PruneOptions{}); err != nil {
			t.Fatal(err)
		}
		nothingBeside(t, s, "notours")
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Errorf("a link was followed: %v", err)
		}
		if _, err := os.Stat(filepath.Join(s.cache(), "notours")); err != nil {
			t.Error(err)
		}
	})
}

func TestSFTPStaleStagingIsReapedAndFreshIsNot(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		first, second := sftpSkill(t, "first", nil), sftpSkill(t, "second", nil)
		mustPublish(t, s.way(), first)
		outside := filepath.Join(s.home, "outside")
		mkdirAll(t, filepath.Join(outside, "kept"))
		for name, age := range map[string]time.Duration{".tmp-old": 25, ".trash-old": 25, ".tmp-new": 23} {
			dir := filepath.Join(s.cache(), name)
			mkdirAll(t, filepath.Join(dir, "x", "y"))
			if err := os.Symlink(outside, filepath.Join(dir, "x", "link")); err != nil {
				t.Fatal(err)
			}
			at := time.Now().Add(-age * time.Hour)
			if err := os.Chtimes(dir, at, at); err != nil {
				t.Fatal(err)
			}
		}
		mustPublish(t, s.way(), second)
		nothingBeside(t, s, first.Manifest.Digest().String(), second.Manifest.Digest().String(), ".tmp-new")
		if _, err := os.Stat(filepath.Join(s.cache(), ".tmp-new", "x", "y")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Errorf("a link was followed: %v", err)
		}
	})
}

func TestSFTPModesDoNotDependOnTheTargetsUmaskOrSetgid(t *testing.T) {
	if !hasUmask {
		testenv.Missing(t, "a umask")
	}
	for _, umask := range []int{0, 0o22, 0o77, 0o777} {
		func() {
			s := localTarget(t)
			if err := os.Chmod(s.home, 0o755|fs.ModeSetgid); err != nil {
				t.Fatal(err)
			}
			b := sftpSkill(t, "release", releaseFiles())
			defer setUmask(setUmask(umask))
			if r := mustPublish(t, s.way(), b); r.Outcome != Published {
				t.Errorf("umask %04o: %v", umask, r.Outcome)
			}
			sameAsBundle(t, s, b)
		}()
	}
}
