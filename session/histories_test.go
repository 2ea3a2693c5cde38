package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// ids is a state by the ids of its events.
func ids(s State) string {
	list := func(events []*Event) (out []string) {
		for _, e := range events {
			out = append(out, e.ID)
		}
		return out
	}
	return fmt.Sprint(s.Place, list(s.Active), list(s.Shadowed), list(s.Paused))
}

// wander is a generated history, and what held at each of its events when it was the head.
type wander struct {
	*world
	r    *rand.Rand
	c    []*Conversation // the same one, as several processes have it
	held map[string]string
	last string
}

func (w *wander) step() error {
	ctx := context.Background()
	c := w.c[w.r.IntN(len(w.c))]
	name := []string{"release", "review", "quokka", "nosuch"}[w.r.IntN(4)]
	var err error
	switch w.r.IntN(9) {
	case 0, 1, 2:
		_, err = c.Load(ctx, name)
	case 3:
		_, err = c.Tool(ctx, "load_skill", args(name))
	case 4:
		_, err = c.Unload(ctx, name)
	case 5, 6:
		err = c.Move(ctx, Target{Host: []string{"", "a", "a-again", "b"}[w.r.IntN(4)]}, []string{"/proj", "/proj/below", "/tmp"}[w.r.IntN(3)])
	case 7:
		at := slices.Sorted(func(yield func(string) bool) {
			for id := range w.held {
				if !yield(id) {
					return
				}
			}
		})
		err = c.Rewind(ctx, at[w.r.IntN(len(at))])
	case 8:
		if _, err = c.Trust(ctx); w.r.IntN(2) == 0 && err == nil {
			_, err = c.Untrust(ctx)
		}
	}
	if errors.Is(err, ErrNoSkill) || errors.Is(err, ErrNotLoaded) || errors.Is(err, ErrTooLarge) {
		// It failed, so it must not be seen.
		if s, _ := w.c[0].State(ctx, ""); ids(s) != w.last {
			return fmt.Errorf("after %w the state is %s, not %s", err, ids(s), w.last)
		}
		return nil
	}
	return err
}

// hold checks what must hold at every event, and remembers it.
func (w *wander) hold() error {
	ctx := context.Background()
	live, err := w.c[0].State(ctx, "")
	if err != nil {
		return err
	}
	w.last = ids(live)
	head := w.head(w.c[0])
	if before, ok := w.held[head]; ok && before != w.last {
		return fmt.Errorf("at %s: %s; the first time it was %s", head, w.last, before)
	}
	w.held[head] = w.last
	if err := partition(live, w.c[0].history.at(head).loaded); err != nil {
		return err
	}
	restarted, err := Open(ctx, w.cfg, w.c[0].ID())
	if err != nil {
		return err
	}
	log, err := restarted.Log(ctx)
	if err != nil {
		return err
	}
	handed, err := Restore(ctx, w.cfg, restarted.Header(), log.Events)
	if err != nil {
		return err
	}
	fork, err := restarted.Fork(ctx, "", "")
	if err != nil {
		return err
	}
	for what, c := range map[string]*Conversation{"restarted": restarted, "another process's": w.c[len(w.c)-1], "handed back": handed, "forked": fork} {
		if s, err := c.State(ctx, ""); err != nil || ids(s) != w.last {
			return fmt.Errorf("%s it is %s, %v; live %s", what, ids(s), err, w.last)
		}
	}
	return w.cfg.Storage.Remove(ctx, fork.ID())
}

// partition checks that active, shadowed and paused are what is loaded, each once and where it belongs.
func partition(s State, loaded []*Event) error {
	seen := map[*Event]int{}
	for _, e := range slices.Concat(s.Active, s.Shadowed, s.Paused) {
		seen[e]++
	}
	for _, e := range loaded {
		if seen[e] != 1 {
			return fmt.Errorf("%s is told %d times", e.Skill.Name, seen[e])
		}
		delete(seen, e)
	}
	if len(seen) > 0 {
		return fmt.Errorf("%d are told that are not loaded", len(seen))
	}
	names := map[string]bool{}
	for _, e := range s.Active {
		if names[e.Skill.Name] {
			return fmt.Errorf("two of the name %s are active", e.Skill.Name)
		}
		names[e.Skill.Name] = true
		if !e.Skill.OnHost && e.Skill.Environment != s.Place.Environment {
			return fmt.Errorf("%s is active in %s and belongs to %s", e.Skill.Name, s.Place.Environment, e.Skill.Environment)
		}
	}
	for _, e := range s.Shadowed {
		if !e.Skill.OnHost || !names[e.Skill.Name] {
			return fmt.Errorf("%s is shadowed by nothing", e.Skill.Name)
		}
	}
	for _, e := range s.Paused {
		if e.Skill.OnHost || e.Skill.Environment == s.Place.Environment {
			return fmt.Errorf("%s is paused where it belongs", e.Skill.Name)
		}
	}
	return nil
}

func TestWhatHoldsAtAnEventIsTheSameHoweverItIsReached(t *testing.T) {
	base := newWorld(t)
	for _, name := range []string{"release", "review"} {
		base.onHost(name, skillText(name, "host's "+name))
	}
	for _, m := range []string{"", "a", "b"} {
		base.on(m, projectRoot, "release", skillText("release", "project's on "+m+strings.Repeat("x", 30_000)))
		base.on(m, projectRoot, "quokka", skillText("quokka", "project's on "+m+strings.Repeat("y", 20_000)))
		base.on(m, userRoot, "review", skillText("review", "user's on "+m))
	}
	for seed := range uint64(30) {
		if seed%10 == 0 {
			base.cfg.Storage = newFiles(t)
		} else {
			base.cfg.Storage = new(Memory)
		}
		w := &wander{world: base, r: rand.New(rand.NewPCG(seed, 0)), held: map[string]string{}}
		w.c = []*Conversation{base.start("a", "/proj")}
		for range 2 {
			other, err := Open(context.Background(), base.cfg, w.c[0].ID())
			if err != nil {
				t.Fatal(err)
			}
			w.c = append(w.c, other)
		}
		for step := range 40 {
			if err := w.hold(); err != nil {
				t.Fatalf("history %d, step %d: %v", seed, step, err)
			}
			if err := w.step(); err != nil {
				t.Fatalf("history %d, step %d: %v", seed, step, err)
			}
		}
		for id, held := range w.held {
			if s, err := w.c[1].State(context.Background(), id); err != nil || ids(s) != held {
				t.Errorf("history %d: at %s it is %s, %v; it was %s", seed, id, ids(s), err, held)
			}
		}
	}
}
