package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
)

// watched is a storage that tries to collect from the store whenever something is recorded, and with reads
// also when it is read.
type watched struct {
	Storage
	store *bundle.Store
	reads bool
	got   []string // where it could collect
}

func (s *watched) try(at string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
	defer cancel()
	_, err := s.store.Collect(ctx, func(context.Context, []bundle.Info) ([]bundle.Info, error) { return nil, nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		s.got = append(s.got, at)
	}
}

func (s *watched) Create(ctx context.Context, h Header, events []*Event) error {
	s.try("create")
	return s.Storage.Create(ctx, h, events)
}

func (s *watched) Read(ctx context.Context, id string, from Mark) ([]*Event, Mark, error) {
	if s.reads {
		s.try("read")
		s.reads = false // what follows is the new conversation's
	}
	return s.Storage.Read(ctx, id, from)
}

func (s *watched) Append(ctx context.Context, id string, from Mark, decide func([]*Event) ([]*Event, error)) (Mark, error) {
	s.try("append")
	return s.Storage.Append(ctx, id, from, decide)
}

func TestNothingIsCollectedWhileItIsRecordedWhatRefersToIt(t *testing.T) {
	ctx := context.Background()
	for _, captures := range []bool{false, true} {
		w := newWorld(t)
		s := &watched{Storage: w.cfg.Storage, store: w.cfg.Store}
		w.cfg.Storage = s
		w.onHost("release", skillText("release", "text"))
		if captures {
			w.cfg.Conventions.Limits.Session = 1 << 20
		}
		c := w.start("a", "/proj")
		want := []string(nil)
		if !captures {
			want = []string{"create"} // nothing is loaded: nothing is referred to
		}
		if !slices.Equal(s.got, want) {
			t.Errorf("captures %v: at the start collected at %q, want %q", captures, s.got, want)
		}
		s.got = nil
		if !captures {
			w.load(c, "release")
		}
		s.reads = true
		if _, err := c.Fork(ctx, "", ""); err != nil {
			t.Fatal(err)
		}
		s.reads = true
		if _, err := c.Subagent(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if len(s.got) > 0 {
			t.Errorf("captures %v: collected at %q", captures, s.got)
		}
	}
}
