package session

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestForksGoTheirOwnWayAndSubagentsInheritNothing(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("one", skillText("one", "1"))
	w.onHost("two", skillText("two", "2"))
	c := w.start("a", "/proj")
	at := w.load(c, "one")
	w.load(c, "two")
	fork, err := c.Fork(ctx, "the-fork", at.ID)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "fork", w.state(fork), "active[one:host] shadowed[] paused[]")
	if _, err := fork.Unload(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	check(t, "the original", w.state(c), "active[one:host two:host] shadowed[] paused[]")
	if err := w.cfg.Storage.Remove(ctx, c.ID()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(ctx, w.cfg, "the-fork")
	if err != nil || again.Header().Parent.ID != c.ID() {
		t.Fatalf("a fork needs its origin: %v", err)
	}
	sub, err := again.Subagent(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	check(t, "subagent", w.state(sub), "active[] shadowed[] paused[]")
	s, _ := sub.State(ctx, "")
	if s.Place.Target.Host != "a" || s.Place.Dir != "/proj" {
		t.Errorf("it began at %+v", s.Place)
	}
	if _, err := again.Fork(ctx, "", "no-such-event"); !errors.Is(err, ErrNoEvent) {
		t.Errorf("%v", err)
	}
	if _, err := again.Fork(ctx, "the-fork", ""); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
}

func TestBundlesOfConversationsAreKnown(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "1"))
	c := w.start("a", "/proj")
	first := w.load(c, "release").Skill.Digest
	w.onHost("release", skillText("release", "2"))
	second := w.load(c, "release").Skill.Digest
	refs, err := References(ctx, w.cfg.Storage)
	if err != nil || len(refs) != 2 || !refs[first] || !refs[second] {
		t.Errorf("%v, %v", refs, err)
	}
	s := journal(t, 3)
	if err := os.WriteFile(s.Path("broken"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := References(ctx, s); !errors.Is(err, ErrDamaged) {
		t.Errorf("a conversation that cannot be read refers to nothing? %v", err)
	}
}

func TestAHarnessKeepsTheHistoryItself(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "r"))
	w.on("a", projectRoot, "quokka", skillText("quokka", "q"))
	c := w.start("a", "/proj")
	w.load(c, "release")
	if _, err := c.Trust(ctx); err != nil {
		t.Fatal(err)
	}
	w.load(c, "quokka")
	l, _ := c.Log(ctx)
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var kept Log
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	again, err := Restore(ctx, w.cfg, c.Header(), kept.Events)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "state", w.state(again), w.state(c))
	check(t, "prompt", w.prompt(again).Text, w.prompt(c).Text)
	if cat, _ := again.Catalog(ctx); !strings.Contains(cat.Text, "quokka") {
		t.Error("trust is lost")
	}
	if _, err := Restore(ctx, w.cfg, c.Header(), kept.Events[1:]); !errors.Is(err, ErrDamaged) {
		t.Errorf("without its beginning: %v", err)
	}
	kept.Events[1].Skill.Instructions += "and more\n"
	if again, err = Restore(ctx, w.cfg, c.Header(), kept.Events); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Prompt(ctx, PromptOptions{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("instructions that are not those that were loaded: %v", err)
	}
}
