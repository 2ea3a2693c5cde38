package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

func TestAConversationThatWasRemovedIsNotAnotherOfItsID(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	files := newFiles(t)
	w.cfg.Storage = files
	w.onHost("release", skillText("release", "body"))
	begin := func() *Conversation {
		c, err := Start(ctx, w.cfg, "same", Target{Host: "a"}, "/proj")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 20 { // until both are of one length: a time can be a digit shorter
		old := begin()
		size := stat(t, files.Path("same"))
		if err := files.Remove(ctx, "same"); err != nil {
			t.Fatal(err)
		}
		begin()
		same := stat(t, files.Path("same")) == size
		_, err := old.Load(ctx, "release")
		if !errors.Is(err, ErrNoConversation) {
			t.Errorf("loaded into what was removed: %v", err)
		}
		if _, err := Open(ctx, w.cfg, "same"); err != nil {
			t.Fatalf("the new conversation: %v", err)
		}
		if err := files.Remove(ctx, "same"); err != nil {
			t.Fatal(err)
		}
		if same {
			return
		}
	}
	t.Fatal("never of one length")
}

func stat(t *testing.T, p string) int64 {
	t.Helper()
	info, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestAJournalLargerThanMemoryIsRefused(t *testing.T) {
	s := journal(t, 3)
	ids, _ := s.List(context.Background())
	if err := os.Truncate(s.Path(ids[0]), 1<<42); err != nil {
		testenv.Missing(t, "a file system with sparse files: "+err.Error())
	}
	_, _, err := s.Read(context.Background(), ids[0], 0)
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestADirectoryThatIsElsewhereIsNotEmpty(t *testing.T) {
	at := filepath.Join(t.TempDir(), "conversations")
	if err := os.Symlink(filepath.Join(t.TempDir(), "not-mounted"), at); err != nil {
		testenv.Missing(t, "a file system with links: "+err.Error())
	}
	s, err := NewFiles(at)
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := s.List(context.Background()); err == nil {
		t.Errorf("listed %q", ids)
	}
}

func TestALockThatWasRemovedIsNoLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "removal of a file that is open")
	}
	s := newFiles(t)
	ctx := context.Background()
	if err := os.MkdirAll(s.Dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	var holders, most atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				unlock, err := s.lock(ctx, "same")
				if err != nil {
					t.Error(err)
					return
				}
				n := holders.Add(1)
				if n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Millisecond / 2)
				holders.Add(-1)
				s.dropLock("same", unlock) // as who removes the conversation
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d held the lock at once", n)
	}
}

func TestConversationsOfOneIDFromOneMomentDiffer(t *testing.T) {
	ctx := context.Background()
	s := newFiles(t)
	h := Header{ID: "talk", Profile: "berry", Created: now()}
	if err := s.Create(ctx, h, testEvents(1)); err != nil {
		t.Fatal(err)
	}
	_, mark, err := s.Read(ctx, h.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, h.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, h, testEvents(1)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read(ctx, h.ID, mark); !errors.Is(err, ErrNoConversation) {
		t.Errorf("the mark of the one is taken for the other's: %v", err)
	}
}
