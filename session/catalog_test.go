package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestTheModelLoadsWhatItIsShownAndLearnsOfNothingElse(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "SECRET TEXT"))
	w.on("a", projectRoot, "quokka", skillText("quokka", "q"))
	c := w.start("a", "/proj/below")
	cat, err := c.Catalog(ctx)
	if err != nil || len(cat.Skills) != 1 || strings.Contains(cat.Text, "quokka") {
		t.Fatalf("catalog %+v, %v", cat, err)
	}
	for _, name := range []string{"quokka", "quoka", projectRoot + "/quokka", "../.agents/skills/quokka"} {
		_, err := c.Tool(ctx, "load_skill", args(name))
		if !errors.Is(err, ErrNoSkill) || strings.Contains(err.(*Error).Advice, "quokka") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.Tool(ctx, "load_skill", args("relaese")); !errors.Is(err, ErrNoSkill) || !strings.Contains(err.(*Error).Advice, "release") {
		t.Errorf("a slip is not told what was meant: %+v", err)
	}
	a, err := c.Tool(ctx, "load_skill", args("release"))
	if err != nil || strings.Contains(a.Text, "SECRET") || !strings.Contains(a.Text, "/home/u/.cache/") {
		t.Errorf("acknowledged with %q, %v", a.Text, err)
	}
	if data, _ := json.Marshal(a.Data); strings.Contains(string(data), "SECRET") {
		t.Errorf("data %s", data)
	}
	w.load(c, "quokka")
	if cat, _ := c.Catalog(ctx); strings.Contains(cat.Text, "quokka") {
		t.Error("an explicit load trusts the repository")
	}
	if _, err := c.Trust(ctx); err != nil {
		t.Fatal(err)
	}
	if cat, _ := c.Catalog(ctx); !strings.Contains(cat.Text, "quokka") {
		t.Error("trusted, and not in the catalog")
	}
	w.move(c, "a", "/elsewhere")
	if cat, _ := c.Catalog(ctx); strings.Contains(cat.Text, "quokka") {
		t.Error("outside of the repository its skills are in the catalog")
	}
}

func TestTrustIsASettingOfThisConversationAndEnvironment(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	for _, m := range []string{"a", "b"} {
		w.on(m, projectRoot, "quokka", skillText("quokka", "q"))
	}
	c := w.start("a", "/proj")
	first := w.head(c)
	trusted := func(c *Conversation) bool {
		t.Helper()
		cat, err := c.Catalog(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(cat.Text, "quokka")
	}
	if _, err := c.Trust(ctx); err != nil || !trusted(c) {
		t.Fatalf("not trusted: %v", err)
	}
	w.load(c, "quokka")
	if err := c.Rewind(ctx, first); err != nil || !trusted(c) {
		t.Errorf("rewinding takes trust back: %v", err)
	}
	fork, err := c.Fork(ctx, "", "")
	if err != nil || !trusted(fork) {
		t.Errorf("a fork has no trust: %v", err)
	}
	sub, err := c.Subagent(ctx, "")
	if err != nil || trusted(sub) {
		t.Errorf("a subagent has its parent's trust: %v", err)
	}
	w.move(c, "b", "/proj")
	if trusted(c) {
		t.Error("trust followed to another machine")
	}
	w.move(c, "a-again", "/proj/below")
	w.machines["a"].id = "machine:other"
	if _, err := c.Catalog(ctx); !errors.Is(err, ErrElsewhere) {
		t.Errorf("the trust of one machine is another's that has its name: %v", err)
	}
	w.machines["a"].id = "machine:a"
	if !trusted(c) {
		t.Error("trust is lost by another alias and directory of the repository")
	}
	w.load(c, "quokka")
	if _, err := c.Untrust(ctx); err != nil || trusted(c) {
		t.Errorf("still trusted: %v", err)
	}
	check(t, "what is loaded stays", w.state(c), "active[quokka:project] shadowed[] paused[]")
	if !trusted(fork) {
		t.Error("untrusting changed a fork")
	}
}
