package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// What cannot be loaded leaves no trace: not in the journal, not in the state, not in the prompt.
func TestAFailedLoadIsInvisible(t *testing.T) {
	big := strings.Repeat("x", 60_000)
	dead := &Error{Code: ErrUnavailable, What: "dead link"}
	for name, c := range map[string]struct {
		load  string
		spoil func(*world)
		is    error
	}{
		"no such skill":       {"nosuch", nil, ErrNoSkill},
		"no such path":        {"/no/such", nil, ErrNoSkill},
		"over 64 KiB":         {"/odd/huge", nil, ErrTooLarge},
		"over it, by name":    {"wide", nil, ErrTooLarge},
		"unusable, by name":   {"bad", nil, ErrBadSkill},
		"over 128 KiB":        {"big-3", nil, ErrTooLarge},
		"no frontmatter":      {"/odd/none", nil, ErrBadSkill},
		"an error in it":      {"/odd/Bad", nil, ErrBadSkill},
		"a hidden path":       {"/odd/a\u202eb", nil, ErrBadSkill},
		"a dead link":         {"review", func(w *world) { w.machines["a"].trouble = dead }, ErrUnavailable},
		"dies at publishing":  {"review", func(w *world) { w.machines["a"].publish = dead }, ErrUnavailable},
		"a full disk there":   {"review", func(w *world) { w.machines["a"].publish = errors.New("no space left") }, nil},
		"another machine now": {"mine", func(w *world) { w.machines["a"].id = "machine:other" }, ErrElsewhere},
		"and for the host's":  {"review", func(w *world) { w.machines["a"].id = "machine:other" }, ErrElsewhere},
		"a store of no use": {"review", func(w *world) {
			os.WriteFile(w.cfg.Store.Dir()+"x", nil, 0o600)
			os.Rename(w.cfg.Store.Dir(), w.cfg.Store.Dir()+"-gone")
			os.Rename(w.cfg.Store.Dir()+"x", w.cfg.Store.Dir())
		}, nil},
		"a full disk here": {"review", func(w *world) { w.cfg.Storage.(*failing).full = true }, errFull},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w := newWorld(t)
			w.cfg.Storage = &failing{Storage: w.cfg.Storage}
			w.onHost("review", skillText("review", "r"))
			for i := range 4 {
				w.onHost(fmt.Sprint("big-", i), skillText(fmt.Sprint("big-", i), big))
			}
			w.onHost("wide", skillText("wide", strings.Repeat("x", 70_000)))
			w.onHost("bad", skillText("Bad Name", "x"))
			w.on("a", userRoot, "mine", skillText("mine", "m"))
			w.on("a", "/odd", "huge", skillText("huge", strings.Repeat("x", 70_000)))
			w.on("a", "/odd", "none", "text")
			w.on("a", "/odd", "Bad", skillText("Bad Name", "x"))
			w.on("a", "/odd", "a\u202eb", skillText("mine", "m"))
			conv := w.start("a", "/proj")
			w.load(conv, "big-0")
			w.load(conv, "big-1")
			logged, _ := conv.Log(ctx)
			before := w.state(conv)
			text, err := conv.Prompt(ctx, PromptOptions{Unverified: true})
			if err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				c.spoil(w)
			}
			if _, err = conv.Load(ctx, c.load); err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("loaded, or failed as nobody can tell: %v", err)
			}
			now, _ := conv.Log(ctx)
			if len(now.Events) != len(logged.Events) || now.Head != logged.Head {
				t.Errorf("%d events, there were %d", len(now.Events), len(logged.Events))
			}
			check(t, "state", w.state(conv), before)
			if after, err := conv.Prompt(ctx, PromptOptions{Unverified: true}); err != nil || after.Text != text.Text {
				t.Errorf("the prompt changed, or %v", err)
			}
		})
	}
}

var errFull = errors.New("no space left on device")

// failing is a storage whose disk can be full.
type failing struct {
	Storage
	full bool
}

func (s *failing) Append(ctx context.Context, id string, from Mark, decide func([]*Event) ([]*Event, error)) (Mark, error) {
	return s.Storage.Append(ctx, id, from, func(newer []*Event) ([]*Event, error) {
		events, err := decide(newer)
		if err == nil && s.full {
			err = errFull
		}
		return events, err
	})
}

func TestPausedSnapshotsCountAndReplacedOnesDoNot(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := len(skillText("big", ""))
	w.on("a", userRoot, "big", skillText("big", strings.Repeat("x", 64<<10-head)))
	w.on("b", userRoot, "big", skillText("big", strings.Repeat("y", 64<<10-head)))
	w.onHost("one", skillText("one", "x"))
	c := w.start("a", "/proj")
	w.load(c, "big")
	w.load(c, "big") // not twice its size
	w.move(c, "b", "/proj")
	w.load(c, "big") // together exactly at the limit
	if _, err := c.Load(ctx, "one"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a byte over the limit: %v", err)
	}
	if _, err := c.Unload(ctx, "big"); err != nil {
		t.Fatal(err)
	}
	w.load(c, "one")
}

// meanwhile is a storage in which something happens right before the next event is added.
type meanwhile struct {
	Storage
	happens func()
}

func (s *meanwhile) Append(ctx context.Context, id string, from Mark, decide func([]*Event) ([]*Event, error)) (Mark, error) {
	if f := s.happens; f != nil {
		s.happens = nil
		f()
	}
	return s.Storage.Append(ctx, id, from, decide)
}

// What was true when a load began is asked again under the lock, where nobody else can change it.
func TestALoadCountsOnlyIfItStillFitsWhenItIsRecorded(t *testing.T) {
	big := strings.Repeat("x", 60_000)
	for name, c := range map[string]struct {
		happens func(*world, *Conversation)
		is      error
		left    string
	}{
		"moved elsewhere":     {func(w *world, c *Conversation) { w.move(c, "b", "/proj") }, ErrMeanwhile, "active[] shadowed[] paused[one:user]"},
		"moved to an alias":   {func(w *world, c *Conversation) { w.move(c, "a-again", "/tmp") }, nil, "active[one:user two:user] shadowed[] paused[]"},
		"no room any more":    {func(w *world, c *Conversation) { w.load(c, "three") }, ErrTooLarge, "active[one:user three:user] shadowed[] paused[]"},
		"more room than then": {func(w *world, c *Conversation) { c.Unload(context.Background(), "one") }, nil, "active[two:user] shadowed[] paused[]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, skill := range []string{"one", "two", "three"} {
				w.on("a", userRoot, skill, skillText(skill, big))
			}
			other := w.start("a", "/proj")
			w.load(other, "one")
			cfg := w.cfg
			s := &meanwhile{Storage: w.cfg.Storage}
			cfg.Storage = s
			conv, err := Open(context.Background(), cfg, other.ID())
			if err != nil {
				t.Fatal(err)
			}
			s.happens = func() { c.happens(w, other) }
			if _, err := conv.Load(context.Background(), "two"); !errors.Is(err, c.is) {
				t.Errorf("%v; want %v", err, c.is)
			}
			check(t, "state", w.state(conv), c.left)
			check(t, "as others have it", w.state(other), c.left)
		})
	}
}
