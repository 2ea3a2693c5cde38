package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/internal/testenv"
)

func TestPinIsWholePrivateAndRepeatable(t *testing.T) {
	s := newStore(t)
	src := newSkill(t, plainTree)
	first := pin(t, s, src)
	if !first.New || first.Mended || first.Name != "release" || first.Files != 7 {
		t.Errorf("first pin: %+v", first)
	}
	before := treeOf(t, s.Dir())
	second := pin(t, s, src)
	if second.New || second.Mended || second.Digest != first.Digest || second.Bytes != first.Bytes || second.Path != first.Path {
		t.Errorf("second pin: %+v, first %+v", second, first)
	}
	if after := treeOf(t, s.Dir()); after != before {
		t.Errorf("pinning again changed the store:\n%s\n%s", before, after)
	}
	if got := names(t, s); !slices.Equal(got, []string{first.Digest.String()}) {
		t.Errorf("the store holds %q", got)
	}
	if err := s.Verify(context.Background(), first.Digest); err != nil {
		t.Error(err)
	}
	// An edit, of a resource alone too, makes another bundle and leaves the first.
	put(t, filepath.Join(src.Path, "references/deep"), "a.md", "edited")
	third := pin(t, s, src)
	if third.Digest == first.Digest || !third.New {
		t.Errorf("after an edit: %+v", third)
	}
	if err := s.Verify(context.Background(), first.Digest); err != nil {
		t.Errorf("the earlier version: %v", err)
	}
}

func TestNameInTheStoreIsTheCollectionsEntry(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, filepath.Join(dir, "real"), "f = x")
	if err := os.Symlink("real", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	if p := pin(t, s, open(t, filepath.Join(dir, "alias"))); p.Name != "alias" || filepath.Base(p.Path) != "alias" {
		t.Errorf("pinned as %s at %s", p.Name, p.Path)
	}
	t.Chdir(filepath.Join(dir, "real"))
	if p := pin(t, s, open(t, ".")); p.Name != "real" {
		t.Errorf("the working directory was pinned as %s", p.Name)
	}
}

func TestSkillMayBeNamedManifest(t *testing.T) {
	for _, name := range []string{"manifest", "MANIFEST", ".manifest"} {
		dir := filepath.Join(t.TempDir(), name)
		writeTree(t, dir, "f = x")
		s := newStore(t)
		p := pin(t, s, open(t, dir))
		if err := s.Verify(context.Background(), p.Digest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if again := pin(t, s, open(t, dir)); again.New || again.Mended {
			t.Errorf("%s: pinned again as %+v", name, again)
		}
	}
}

// damages is every way a stored bundle can come to differ, each with the path that is to be named.
func damages() map[string]struct {
	path string
	do   func(bundle string) error
} {
	type d = struct {
		path string
		do   func(bundle string) error
	}
	in := func(b, p string) string { return filepath.Join(b, p) }
	return map[string]d{
		"content": {"release/scripts/run.sh", func(b string) error {
			return os.WriteFile(in(b, "release/scripts/run.sh"), []byte("#!/bin/bh"), 0o700)
		}},
		"missing file":             {"release/references/deep/a.md", func(b string) error { return os.Remove(in(b, "release/references/deep/a.md")) }},
		"missing directory":        {"release/empty", func(b string) error { return os.Remove(in(b, "release/empty")) }},
		"extra file":               {"release/extra", func(b string) error { return os.WriteFile(in(b, "release/extra"), nil, 0o600) }},
		"extra directory":          {"release/scripts/__pycache__", func(b string) error { return os.Mkdir(in(b, "release/scripts/__pycache__"), 0o700) }},
		"extra beside the skill":   {"other", func(b string) error { return os.Mkdir(in(b, "other"), 0o700) }},
		"exec bit lost":            {"release/scripts/run.sh", func(b string) error { return os.Chmod(in(b, "release/scripts/run.sh"), 0o600) }},
		"exec bit won":             {"release/SKILL.md", func(b string) error { return os.Chmod(in(b, "release/SKILL.md"), 0o700) }},
		"open to others":           {"release/SKILL.md", func(b string) error { return os.Chmod(in(b, "release/SKILL.md"), 0o644) }},
		"directory open to others": {"release/references", func(b string) error { return os.Chmod(in(b, "release/references"), 0o755) }},
		"top open to others":       {".", func(b string) error { return os.Chmod(b, 0o755) }},
		"link for a file": {"release/SKILL.md", func(b string) error {
			p := in(b, "release/SKILL.md")
			return errors.Join(os.Rename(p, in(b, "release/real")), os.Symlink("real", p))
		}},
		"link for a directory": {"release/references", func(b string) error {
			p := in(b, "release/references")
			return errors.Join(os.Rename(p, b+"-moved"), os.Symlink(b+"-moved", p))
		}},
		"directory for a file": {"release/SKILL.md", func(b string) error {
			p := in(b, "release/SKILL.md")
			return errors.Join(os.Remove(p), os.Mkdir(p, 0o700))
		}},
		"manifest gone":   {"manifest", func(b string) error { return os.Remove(in(b, "manifest")) }},
		"manifest edited": {"manifest", func(b string) error { return os.WriteFile(in(b, "manifest"), []byte("d ./release\n"), 0o600) }},
		"manifest torn":   {"manifest", func(b string) error { return os.Truncate(in(b, "manifest"), 100) }},
		"emptied":         {"manifest", func(b string) error { return errors.Join(os.RemoveAll(b), os.Mkdir(b, 0o700)) }},
		"a file instead":  {".", func(b string) error { return errors.Join(os.RemoveAll(b), os.WriteFile(b, nil, 0o600)) }},
		"a link instead":  {".", func(b string) error { return errors.Join(os.Rename(b, b+"-moved"), os.Symlink(b+"-moved", b)) }},
	}
}

func TestDamageIsNamedAndMendedByPinning(t *testing.T) {
	for name, d := range damages() {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			src := newSkill(t, plainTree)
			p := pin(t, s, src)
			whole := treeOf(t, filepath.Join(s.Dir(), p.Digest.String()))
			if err := d.do(filepath.Join(s.Dir(), p.Digest.String())); err != nil {
				t.Fatal(err)
			}
			err := s.Verify(context.Background(), p.Digest)
			damaged, ok := errors.AsType[*DamagedError](err)
			if !ok {
				t.Fatalf("Verify: %v, want a *DamagedError", err)
			}
			if !slices.ContainsFunc(damaged.Damage, func(x Damage) bool { return x.Path == d.path }) {
				t.Errorf("damage %v does not name %s", damaged.Damage, d.path)
			}
			mended := pin(t, s, src)
			if !mended.Mended || mended.New || mended.Digest != p.Digest {
				t.Errorf("pinning again: %+v", mended)
			}
			if now := treeOf(t, filepath.Join(s.Dir(), p.Digest.String())); now != whole {
				t.Errorf("mended to\n%s\nwant\n%s", now, whole)
			}
			for _, n := range names(t, s) {
				if n != p.Digest.String() && n != p.Digest.String()+"-moved" {
					t.Errorf("%s is left over", n)
				}
			}
		})
	}
}

func TestOpenTellsAbsentFromDamaged(t *testing.T) {
	s := newStore(t)
	if _, err := s.Open(Digest{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open in a store that is not there: %v", err)
	}
	if err := s.Verify(context.Background(), Digest{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify in a store that is not there: %v", err)
	}
	if infos, err := s.List(context.Background()); err != nil || len(infos) != 0 {
		t.Errorf("List of a store that is not there: %v, %v", infos, err)
	}
	p := pin(t, s, newSkill(t, ""))
	if _, err := s.Open(Digest{1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of another digest: %v", err)
	}
	os.Remove(filepath.Join(s.Dir(), p.Digest.String(), "manifest"))
	if _, err := s.Open(p.Digest); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a damaged bundle: %v", err)
	}
	infos, err := s.List(context.Background())
	if err != nil || len(infos) != 1 || infos[0].Err == nil {
		t.Errorf("List with a damaged bundle: %+v, %v", infos, err)
	}
}

func TestListTellsWhatIsThere(t *testing.T) {
	s := newStore(t)
	var want []Digest
	for _, text := range []string{"1", "22", "333"} {
		want = append(want, pin(t, s, newSkill(t, "SKILL.md = "+text)).Digest)
	}
	slices.SortFunc(want, func(a, b Digest) int { return slices.Compare(a[:], b[:]) })
	os.Mkdir(filepath.Join(s.Dir(), "notours"), 0o755)
	infos, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []Digest
	var bytes int64
	for _, i := range infos {
		got = append(got, i.Digest)
		bytes += i.Bytes
		if i.Name != "release" || i.Files != 1 || i.Pinned.IsZero() || i.Err != nil {
			t.Errorf("%+v", i)
		}
	}
	if !slices.Equal(got, want) || bytes != 6 {
		t.Errorf("listed %v with %d bytes, want %v with 6", got, bytes, want)
	}
}

func TestAcceptDecidesBeforeAnythingIsWritten(t *testing.T) {
	s := newStore(t)
	refused := errors.New("not this one")
	_, report, err := s.Pin(context.Background(), newSkill(t, "SKILL.md = text"), Rules{}, func(tree *Tree) error {
		if string(tree.SkillFile) != "text" {
			t.Errorf("accept was shown %q", tree.SkillFile)
		}
		return refused
	})
	if !errors.Is(err, refused) || report == nil {
		t.Errorf("error %v, report %v", err, report)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}

func TestUnfinishedWorkOfEndedProcessesIsSwept(t *testing.T) {
	s := newStore(t)
	p := pin(t, s, newSkill(t, ""))
	for _, n := range []string{atomicfile.TempName(stagePrefix), atomicfile.TempName(trashPrefix)} {
		writeTree(t, filepath.Join(s.Dir(), n), "d/f = x")
	}
	for _, n := range []string{".tmp-mywork", ".trash-1000"} { // another program's
		writeTree(t, filepath.Join(s.Dir(), n), "d/f = x")
	}
	pin(t, s, newSkill(t, "other = x"))
	if got := names(t, s); len(got) != 4 || !slices.Contains(got, p.Digest.String()) || !slices.Contains(got, ".tmp-mywork") {
		t.Errorf("the store holds %q", got)
	}
	// While another process is at work, what is unfinished may be its.
	root, done, err := s.writable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	root.Mkdir(stagePrefix+"theirs", 0o700)
	pin(t, s, newSkill(t, "third = x"))
	if !slices.Contains(names(t, s), stagePrefix+"theirs") {
		t.Error("the staging directory of a process at work was swept")
	}
	done()
}

func TestPrivateWhateverTheUmaskIs(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		s := newStore(t)
		src := newSkill(t, plainTree)
		old := umask(mask)
		_, _, err := s.Pin(context.Background(), src, Rules{}, nil)
		umask(old)
		if err != nil {
			t.Fatalf("umask %03o: %v", mask, err)
		}
		checkPrivate(t, filepath.Dir(s.Dir()))
	}
}

func TestCancelledPinLeavesNothing(t *testing.T) {
	s := newStore(t)
	src := newSkill(t, plainTree)
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err := s.Pin(ctx, src, Rules{}, func(*Tree) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if got := names(t, s); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

func TestPinnersOfOneBundleAgree(t *testing.T) {
	s := newStore(t)
	src := newSkill(t, plainTree)
	want := pin(t, newStore(t), src).Digest
	for round := range 10 {
		var wg sync.WaitGroup
		made := make([]Pinned, 8)
		for i := range made {
			wg.Go(func() {
				p, _, err := s.Pin(context.Background(), src, Rules{}, nil)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				made[i] = p
			})
		}
		wg.Wait()
		newOnes := 0
		for _, p := range made {
			if p.Digest != want {
				t.Fatalf("pinned %s, want %s", p.Digest, want)
			}
			if p.New || p.Mended {
				newOnes++
			}
		}
		if newOnes != 1 {
			t.Errorf("round %d: %d pinners say they put it there, want one", round, newOnes)
		}
		if err := s.Verify(context.Background(), want); err != nil {
			t.Fatal(err)
		}
		if got := names(t, s); !slices.Equal(got, []string{want.String()}) {
			t.Fatalf("round %d left %q", round, got)
		}
		damage := filepath.Join(s.Dir(), want.String(), "release", SkillFile)
		if round%2 == 0 {
			os.RemoveAll(filepath.Join(s.Dir(), want.String()))
		} else if err := os.WriteFile(damage, []byte(fmt.Sprint(round)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStorePathIsAbsolute(t *testing.T) {
	if _, err := OpenStore("relative/store", Limits{}); err == nil {
		t.Error("a relative store was opened")
	}
}

func TestStoreThatCannotBeMadeIsAnError(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "file", "x")
	s, err := OpenStore(filepath.Join(dir, "file", "store"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Pin(context.Background(), newSkill(t, ""), Rules{}, nil); err == nil {
		t.Error("pinned below a file")
	}
}

// For who is bound by modes, damage can be that it cannot be read. It is told, does not hide the
// rest, and is mended without a trace.
func TestUnreadableBundleIsDamagedAndHidesNothing(t *testing.T) {
	testenv.AsOther(t, func(t *testing.T) {
		for _, c := range []struct {
			path string
			mode os.FileMode
		}{{".", 0}, {"manifest", 0}, {"release", 0}, {"release/scripts", 0o500}, {"release/SKILL.md", 0}, {".", 0o500}} {
			s := newStore(t)
			src := newSkill(t, plainTree)
			p := pin(t, s, src)
			pin(t, s, newSkill(t, "other = x"))
			if err := os.Chmod(filepath.Join(s.Dir(), p.Digest.String(), c.path), c.mode); err != nil {
				t.Fatal(err)
			}
			if infos, err := s.List(context.Background()); err != nil || len(infos) != 2 {
				t.Errorf("%s %v: %d listed, %v", c.path, c.mode, len(infos), err)
			}
			if _, ok := errors.AsType[*DamagedError](s.Verify(context.Background(), p.Digest)); !ok {
				t.Errorf("%s %v: not told as damaged", c.path, c.mode)
			}
			if again := pin(t, s, src); !again.Mended {
				t.Errorf("%s %v: pinned again as %+v", c.path, c.mode, again)
			}
			if got := names(t, s); len(got) != 2 {
				t.Errorf("%s %v: the store holds %q", c.path, c.mode, got)
			}
		}
	})
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	s := newStore(t)
	p := pin(t, s, newSkill(t, plainTree))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Verify(ctx, p.Digest); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestLockThatIsNoFileIsRefused(t *testing.T) {
	s := newStore(t)
	pin(t, s, newSkill(t, ""))
	lock := filepath.Join(s.Dir(), lockName)
	os.Remove(lock)
	if err := os.Symlink(filepath.Join(s.Dir(), "..", "elsewhere"), lock); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Pin(context.Background(), newSkill(t, "f = x"), Rules{}, nil); err == nil {
		t.Error("a lock that leads elsewhere was used")
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "..", "elsewhere")); err == nil {
		t.Error("a file was made through the lock")
	}
}
