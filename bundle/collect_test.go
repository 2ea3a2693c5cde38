package bundle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func all(_ context.Context, infos []Info) ([]Info, error) { return infos, nil }

func TestCollectRemovesWhatIsPickedAndNothingElse(t *testing.T) {
	s := newStore(t)
	kept := pin(t, s, newSkill(t, "a = kept"))
	gone := pin(t, s, newSkill(t, "a = gone"))
	if err := os.WriteFile(filepath.Join(s.Dir(), "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := s.Collect(context.Background(), func(_ context.Context, infos []Info) ([]Info, error) {
		return slices.DeleteFunc(infos, func(i Info) bool { return i.Digest == kept.Digest }), nil
	})
	if err != nil || len(got) != 1 || got[0].Digest != gone.Digest || got[0].Bytes != gone.Bytes {
		t.Fatalf("collected %v, %v", got, err)
	}
	if err := s.Verify(context.Background(), kept.Digest); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		if !isLock(e.Name()) {
			left = append(left, e.Name())
		}
	}
	if want := []string{kept.Digest.String(), "theirs"}; !slices.Equal(left, want) {
		t.Errorf("left %q, want %q", left, want)
	}
}

func TestCollectTakesNothingAfterAnErrorOfPick(t *testing.T) {
	s := newStore(t)
	p := pin(t, s, newSkill(t, "a = x"))
	bad := errors.New("a journal is damaged")
	got, err := s.Collect(context.Background(), func(context.Context, []Info) ([]Info, error) { return nil, bad })
	if !errors.Is(err, bad) || len(got) != 0 {
		t.Errorf("collected %v, %v", got, err)
	}
	if err := s.Verify(context.Background(), p.Digest); err != nil {
		t.Error(err)
	}
}

func TestCollectMakesNoStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nosuch")
	s, err := OpenStore(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Collect(context.Background(), all); err != nil || len(got) != 0 {
		t.Errorf("collected %v, %v", got, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}

func TestCollectWaitsForWhoHoldsTheStore(t *testing.T) {
	s := newStore(t)
	release, err := s.Hold(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p := pin(t, s, newSkill(t, "a = x")) // while it is held
	ctx, cancel := context.WithTimeout(context.Background(), 5*lockPause)
	defer cancel()
	if got, err := s.Collect(ctx, all); !errors.Is(err, context.DeadlineExceeded) || len(got) != 0 {
		t.Errorf("collected %v, %v while the store was held", got, err)
	}
	if err := s.Verify(context.Background(), p.Digest); err != nil {
		t.Error(err)
	}
	release()
	if got, err := s.Collect(context.Background(), all); err != nil || len(got) != 1 {
		t.Errorf("collected %v, %v after the release", got, err)
	}
}

func TestHoldAndPinWaitForACollectThatIsUnderWay(t *testing.T) {
	s := newStore(t)
	p := pin(t, s, newSkill(t, "a = x"))
	src := newSkill(t, "a = x")
	pinned := make(chan error, 1)
	_, err := s.Collect(context.Background(), func(ctx context.Context, infos []Info) ([]Info, error) {
		short, cancel := context.WithTimeout(ctx, 5*lockPause)
		defer cancel()
		if release, err := s.Hold(short); err == nil {
			release()
			t.Error("the store was held while it was collected from")
		}
		go func() {
			_, _, err := s.Pin(context.Background(), src, Rules{}, nil)
			pinned <- err
		}()
		time.Sleep(3 * lockPause)
		return infos, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-pinned; err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(context.Background(), p.Digest); err != nil {
		t.Errorf("what was pinned after the collect is not there: %v", err)
	}
}

func TestPinningAgainIsPinningNow(t *testing.T) {
	s := newStore(t)
	src := newSkill(t, "a = x")
	p := pin(t, s, src)
	old := time.Now().AddDate(-1, 0, 0)
	if err := os.Chtimes(filepath.Dir(p.Path), old, old); err != nil {
		t.Fatal(err)
	}
	pin(t, s, src)
	infos, err := s.List(context.Background())
	if err != nil || len(infos) != 1 || time.Since(infos[0].Pinned) > 24*time.Hour {
		t.Errorf("listed as %v, %v", infos, err)
	}
}

func TestACollectThatIsGivenUpTakesNothingMore(t *testing.T) {
	s := newStore(t)
	p := pin(t, s, newSkill(t, "a = x"))
	ctx, cancel := context.WithCancel(context.Background())
	got, err := s.Collect(ctx, func(_ context.Context, all []Info) ([]Info, error) {
		cancel()
		return all, nil
	})
	if !errors.Is(err, context.Canceled) || len(got) != 0 {
		t.Errorf("collected %v, %v", got, err)
	}
	if err := s.Verify(context.Background(), p.Digest); err != nil {
		t.Error(err)
	}
}
