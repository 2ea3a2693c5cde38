//go:build unix

package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A writer swaps files, directories and links under the walk. Whatever a scan accepts was there at
// some moment: content of one of the two versions, never anything from outside the skill, and never
// one version's file beside the other's.
func TestWalkAgainstAWriterReadsOldOrNewOrFails(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "release")
	outside := filepath.Join(top, "outside")
	writeTree(t, outside, "f = SECRET\ng = SECRET")
	writeTree(t, dir, "d/f = old\nd/g = old\nSKILL.md = s")
	ok := map[[32]byte]string{}
	for _, text := range []string{"old", "new", "s", "" /* a file just created */} {
		ok[sha256.Sum256([]byte(text))] = text
	}
	var stop atomic.Bool
	var swaps int
	var wg sync.WaitGroup
	wg.Go(func() { // each step is one rename, as an editor's or a git checkout's are
		in := func(p string) string { return filepath.Join(dir, p) }
		for i := 0; !stop.Load(); i++ {
			text := []string{"old", "new"}[i%2]
			os.MkdirAll(in("e"), 0o755)
			os.WriteFile(in("e/f"), []byte(text), 0o644)
			os.WriteFile(in("e/g"), []byte(text), 0o644)
			os.Rename(in("d"), filepath.Join(top, "gone"))
			switch i % 3 {
			case 0: // a link to outside stands there for a moment
				os.Symlink(outside, in("d"))
				os.Remove(in("d"))
			case 1: // a FIFO, or a link inside a directory
				os.Symlink("../outside/f", in("l"))
				os.Remove(in("l"))
			}
			os.Rename(in("e"), in("d"))
			os.RemoveAll(filepath.Join(top, "gone"))
			swaps++
			if i%8 == 7 {
				time.Sleep(20 * time.Millisecond) // let some scans through whole
			}
		}
	})
	src := open(t, dir)
	accepted, refused := 0, 0
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		tree, err := scanNow(src)
		if err != nil {
			if _, isReject := errors.AsType[*RejectedError](err); !isReject && !errors.Is(err, errChanged) {
				t.Fatalf("scan: %v", err)
			}
			refused++
			continue
		}
		accepted++
		versions := map[string]bool{}
		for _, e := range tree.Manifest.Entries() {
			if e.Kind == Dir {
				continue
			}
			text, known := ok[e.SHA256]
			if !known {
				t.Fatalf("%s holds content that was never in the skill", e.Path)
			}
			if path.Dir(e.Path) == "release/d" { // what stands there was moved there whole
				versions[text] = true
			}
		}
		if len(versions) > 1 {
			t.Fatalf("one scan holds both versions:\n%s", tree.Manifest.Text())
		}
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d swaps; %d scans accepted, %d refused or to be retried", swaps, accepted, refused)
	if accepted == 0 || refused == 0 {
		t.Errorf("%d scans accepted and %d refused: the race did not happen", accepted, refused)
	}
}

// scanNow scans without a retry, so that every interference shows.
func scanNow(src *Source) (*Tree, error) {
	tree, _, err := src.scanOnce(context.Background(), Rules{})
	return tree, err
}

func TestGrowingFileIsGivenUpAfterItsRetries(t *testing.T) {
	src := newSkill(t, "log = x")
	s := newStore(t)
	scans := 0
	_, report, err := s.Pin(context.Background(), src, Rules{}, func(*Tree) error {
		scans++
		return grow(src, "log")
	})
	if !errors.Is(err, Changing) || len(report.Rejected()) == 0 {
		t.Errorf("error %v, want %s", err, Changing)
	}
	if scans != 1+changeRetries {
		t.Errorf("%d scans, want one and %d retries", scans, changeRetries)
	}
	if got := names(t, s); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

func grow(src *Source, name string) error {
	f, err := os.OpenFile(filepath.Join(src.Path, name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	return errors.Join(err, f.Close())
}

// writerFunc is called with each piece that is written.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestFileThatChangesWhileItIsReadIsNotTaken(t *testing.T) {
	for name, change := range map[string]func(src *Source, p string) error{
		"grows":   func(src *Source, p string) error { return grow(src, "f") },
		"shrinks": func(src *Source, p string) error { return os.Truncate(p, 1) },
		"edited":  func(src *Source, p string) error { return os.WriteFile(p, []byte("edited"), 0o644) },
		"mode":    func(src *Source, p string) error { return os.Chmod(p, 0o755) },
	} {
		src := newSkill(t, "f = 123456")
		info, err := src.files.Lstat("f")
		if err != nil {
			t.Fatal(err)
		}
		err = copyStable(context.Background(), writerFunc(func(p []byte) (int, error) {
			return len(p), change(src, filepath.Join(src.Path, "f"))
		}), src.files, "f", info)
		if !errors.Is(err, errChanged) {
			t.Errorf("%s: error %v, want errChanged", name, err)
		}
		if _, err := openStable(src.files, "f", info); !errors.Is(err, errChanged) {
			t.Errorf("%s: opened by its old look: %v", name, err)
		}
	}
	src := newSkill(t, "f = x\ng = x")
	info, err := src.files.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(src.Path, "g"), filepath.Join(src.Path, "f")); err != nil {
		t.Fatal(err)
	}
	if _, err := openStable(src.files, "f", info); !errors.Is(err, errChanged) {
		t.Errorf("another file of the same size was opened: %v", err)
	}
	if err := os.Remove(filepath.Join(src.Path, "f")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(src.Path, "f"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openStable(src.files, "f", info); !errors.Is(err, errChanged) { // and does not wait for a writer
		t.Errorf("a FIFO in the file's place was opened: %v", err)
	}
}

// An edit between the scan and the copy must not get in, even one that keeps size and times.
func TestWhatIsPinnedIsWhatWasScanned(t *testing.T) {
	src := newSkill(t, "f = aaaa")
	s := newStore(t)
	edits := 0
	p, _, err := s.Pin(context.Background(), src, Rules{}, func(tree *Tree) error {
		if edits++; edits == 1 {
			info, err := os.Stat(filepath.Join(src.Path, "f"))
			if err != nil {
				return err
			}
			put(t, src.Path, "f", "bbbb")
			return os.Chtimes(filepath.Join(src.Path, "f"), info.ModTime(), info.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if edits != 2 {
		t.Errorf("%d scans, want a second one after the edit", edits)
	}
	data, err := os.ReadFile(filepath.Join(p.Path, "f"))
	if err != nil || string(data) != "bbbb" {
		t.Errorf("pinned %q (%v)", data, err)
	}
	if err := s.Verify(context.Background(), p.Digest); err != nil {
		t.Error(err)
	}
}

// What was looked at once and is another thing at the end was not there at one moment.
func TestScanSeesAnyChangeMadeBehindIt(t *testing.T) {
	const tree = "d/f = 1\ne/g = 1\nl -> d\nm -> k\nk -> d/f"
	for name, change := range map[string]func(dir string) error{
		"file content":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "d/f"), []byte("2"), 0o644) },
		"file replaced":     func(dir string) error { return os.Rename(filepath.Join(dir, "e/g"), filepath.Join(dir, "d/f")) },
		"file gone":         func(dir string) error { return os.Remove(filepath.Join(dir, "e/g")) },
		"file added":        func(dir string) error { return os.WriteFile(filepath.Join(dir, "e/h"), nil, 0o644) },
		"directory emptied": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "e")) },
		"link turned": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "l")), os.Symlink("e", filepath.Join(dir, "l")))
		},
		"link of a chain turned": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "k")), os.Symlink("e/g", filepath.Join(dir, "k")))
		},
		"skill file gone": func(dir string) error { return os.Remove(filepath.Join(dir, SkillFile)) },
	} {
		src := newSkill(t, tree)
		w := newWalk(src, Rules{})
		if err := w.run(context.Background()); err != nil || len(w.report.Rejected()) > 0 {
			t.Fatalf("%v, %v", err, w.report.Rejected())
		}
		if err := w.lookAgain(); err != nil {
			t.Fatalf("unchanged: %v", err)
		}
		if err := change(src.Path); err != nil {
			t.Fatal(err)
		}
		if err := w.lookAgain(); !errors.Is(err, errChanged) {
			t.Errorf("%s: not seen", name)
		}
	}
}
