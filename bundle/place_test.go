package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/punnet/punnet/internal/atomicfile"
)

func TestPlacedSkillIsTheBundlesContentWithItsModes(t *testing.T) {
	src := newSkill(t, "scripts/run.sh *= #!/bin/sh\nreferences/deep/a.md = a\nreferences/link.md -> deep/a.md\n.git/config = x")
	dir := filepath.Join(t.TempDir(), "data", "skills")
	rules := Rules{LeaveOut: []string{".git"}}
	for i, wantNew := range []bool{true, false, false} {
		placed, report, err := Place(context.Background(), dir, src, rules, nil)
		if err != nil || placed.New != wantNew || placed.Path != filepath.Join(dir, "release") || len(report.LeftOut()) != 1 {
			t.Fatalf("place number %d: %+v, %+v, %v", i+1, placed, report, err)
		}
	}
	tree, _, err := src.Scan(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	there, report, err := open(t, filepath.Join(dir, "release")).Scan(context.Background(), Rules{NoLinks: true})
	if err != nil || there.Manifest.Digest() != tree.Manifest.Digest() || len(report.LeftOut()) > 0 {
		t.Errorf("the copy is %v with %v, %v", there, report, err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("the collection has %v, %v; want the skill alone", names, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(filepath.Join(dir, "release/scripts/run.sh")); err != nil || info.Mode() != 0o700 {
		t.Errorf("the script has mode %v, %v", info.Mode(), err)
	}
}

func TestWhatHasTheNameIsNeverReplaced(t *testing.T) {
	other := "SKILL.md = other"
	for name, make := range map[string]func(t *testing.T, at string){
		"other content":   func(t *testing.T, at string) { writeTree(t, at, other) },
		"more content":    func(t *testing.T, at string) { writeTree(t, at, "a = a\nb = b") },
		"less content":    func(t *testing.T, at string) { writeTree(t, at, "") },
		"an execute bit":  func(t *testing.T, at string) { writeTree(t, at, "a *= a") },
		"a link besides":  func(t *testing.T, at string) { writeTree(t, at, "a = a\nb -> a") },
		"no skill":        func(t *testing.T, at string) { os.MkdirAll(filepath.Join(at, "x"), 0o755) },
		"empty directory": func(t *testing.T, at string) { os.MkdirAll(at, 0o755) },
		"file":            func(t *testing.T, at string) { writeTree(t, filepath.Dir(at), "release = x") },
		"dangling link":   func(t *testing.T, at string) { writeTree(t, filepath.Dir(at), "release -> nowhere") },
		"link to a skill": func(t *testing.T, at string) {
			writeTree(t, filepath.Dir(at), "real/a = a\nrelease -> real")
		},
	} {
		t.Run(name, func(t *testing.T) {
			src := newSkill(t, "a = a")
			dir := t.TempDir()
			make(t, filepath.Join(dir, "release"))
			before := list(t, dir)
			_, _, err := Place(context.Background(), dir, src, Rules{NoLinks: true}, nil)
			taken, ok := errors.AsType[*TakenError](err)
			if !ok || taken.Path != filepath.Join(dir, "release") {
				t.Errorf("error %v", err)
			}
			if after := list(t, dir); after != before {
				t.Errorf("the collection was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

// list describes everything in a directory.
func list(t *testing.T, dir string) string {
	t.Helper()
	out := ""
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil || p == dir {
			return err
		}
		text, target := []byte(nil), ""
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(p)
		} else if info.Mode()&os.ModeSymlink != 0 {
			target, err = os.Readlink(p)
		}
		out += p + " " + info.Mode().String() + " " + string(text) + target + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRefusedSkillLeavesNothingBehind(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		tree   string
		accept func(*Tree, *Report) error
		want   error
	}{
		"not accepted": {"a = a", func(*Tree, *Report) error { return no }, no},
		"leaking":      {"leak -> ../../etc", nil, LinkEscapes},
	} {
		dir := filepath.Join(t.TempDir(), "skills")
		_, report, err := Place(context.Background(), dir, newSkill(t, c.tree), Rules{}, c.accept)
		if !errors.Is(err, c.want) || report == nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("%s: the collection was made", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	dir := filepath.Join(t.TempDir(), "skills")
	_, _, err := Place(ctx, dir, newSkill(t, "a = a"), Rules{}, func(*Tree, *Report) error {
		cancel()
		return nil
	})
	if names, _ := os.ReadDir(dir); !errors.Is(err, context.Canceled) || len(names) > 0 {
		t.Errorf("interrupted: %v, %v", names, err)
	}
}

func TestWhatWasLeftUnfinishedIsClearedAwayAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	left := atomicfile.TempName(stagePrefix)
	writeTree(t, filepath.Join(dir, left, "release"), "a = a")
	writeTree(t, filepath.Join(dir, ".tmp-mine"), "a = a")
	if _, _, err := Place(context.Background(), dir, newSkill(t, "a = a"), Rules{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, left)); err == nil {
		t.Error("what was left is still there")
	}
	if _, err := os.Lstat(filepath.Join(dir, ".tmp-mine", "a")); err != nil {
		t.Error("what a person called so is gone")
	}
}

func TestOfSeveralWhoPlaceOneSkillOneIsNew(t *testing.T) {
	const n = 8
	dir := filepath.Join(t.TempDir(), "skills")
	var wg sync.WaitGroup
	var mu sync.Mutex
	news := 0
	for range n {
		src := newSkill(t, "a = a\nb/c/d = d")
		wg.Go(func() {
			placed, _, err := Place(context.Background(), dir, src, Rules{}, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if placed.New {
				news++
			}
		})
	}
	wg.Wait()
	if news != 1 {
		t.Errorf("%d of %d are new", news, n)
	}
}

func TestWhoPlacesWaitsForWhoHasTheCollection(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := Place(ctx, dir, newSkill(t, "a = a"), Rules{}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("there is %v, %v", left, err)
	}
}
