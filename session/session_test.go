package session

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

func check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s; want %s", what, got, want)
	}
}

func TestAProjectsSkillPausesElsewhereAndResumesBeforeTheHosts(t *testing.T) {
	w := newWorld(t)
	w.onHost("release", skillText("release", "host"))
	w.on("a", projectRoot, "release", skillText("release", "project"))
	w.on("a", userRoot, "remote", skillText("remote", "user"))
	c := w.start("a", "/proj")
	w.load(c, "release")
	check(t, "untrusted, the host's is meant", w.state(c), "active[release:host] shadowed[] paused[]")
	if _, err := c.Trust(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.load(c, "release")
	w.load(c, "remote")
	check(t, "the project's replaces it", w.state(c), "active[release:project remote:user] shadowed[] paused[]")
	asked := w.machines["a"].asked
	if err := c.ChangeDir(context.Background(), "/elsewhere"); err != nil || w.machines["a"].asked != asked {
		t.Errorf("another directory: %v, or the machine was asked", err)
	}
	w.move(c, "a-again", "/tmp")
	check(t, "another alias and directory", w.state(c), "active[release:project remote:user] shadowed[] paused[]")
	w.move(c, "b", "/proj")
	check(t, "elsewhere", w.state(c), "active[] shadowed[] paused[release:project remote:user]")
	w.load(c, "release")
	check(t, "the host's of a paused name", w.state(c), "active[release:host] shadowed[] paused[release:project remote:user]")
	w.load(c, "release")
	check(t, "again", w.state(c), "active[release:host] shadowed[] paused[release:project remote:user]")
	w.move(c, "a", "/proj")
	check(t, "back", w.state(c), "active[release:project remote:user] shadowed[release:host] paused[]")
	w.load(c, "release")
	check(t, "reloaded, the host's stays shadowed", w.state(c), "active[remote:user release:project] shadowed[release:host] paused[]")
	p := w.prompt(c)
	if len(p.Shadowed) != 1 || strings.Contains(p.Text, "\nhost\n") || !strings.Contains(p.Text, "\nproject\n") {
		t.Errorf("prompt: %+v", p)
	}
	if _, err := c.Unload(context.Background(), "release"); err != nil {
		t.Fatal(err)
	}
	check(t, "unloaded: nothing of the name is active", w.state(c), "active[remote:user] shadowed[] paused[]")
}

func TestUnloadingLeavesWhatIsPaused(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "host"))
	w.on("a", userRoot, "mine", skillText("mine", "user"))
	c := w.start("a", "/proj")
	w.load(c, "mine")
	w.move(c, "b", "/proj")
	if _, err := c.Unload(ctx, "mine"); !errors.Is(err, ErrNotLoaded) || !strings.Contains(err.(*Error).Advice, "paused") {
		t.Errorf("%v", err)
	}
	check(t, "state", w.state(c), "active[] shadowed[] paused[mine:user]")
}

func TestAnEditChangesNothingUntilTheSkillIsLoadedAgain(t *testing.T) {
	w := newWorld(t)
	w.onHost("release", skillText("release", "old text\n"))
	w.on("a", userRoot, "mine", skillText("mine", "old words\n"))
	c := w.start("a", "/proj")
	w.load(c, "release")
	w.load(c, "mine")
	before := w.prompt(c)
	old := w.head(c)
	w.onHost("release", skillText("release", "new text\n"))
	w.on("a", userRoot, "mine", skillText("mine", "new words\n"))
	again, err := Open(context.Background(), w.cfg, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "after the edits and a restart", w.prompt(again).Text, before.Text)
	if err := os.RemoveAll(w.host); err != nil {
		t.Fatal(err)
	}
	check(t, "after the source is gone", w.prompt(c).Text, before.Text)
	w.onHost("release", skillText("release", "new text\n"))
	w.load(c, "release")
	w.load(c, "mine")
	if p := w.prompt(c); !strings.Contains(p.Text, "new text") || !strings.Contains(p.Text, "new words") || strings.Contains(p.Text, "old") {
		t.Errorf("loaded again: %s", p.Text)
	}
	if err := c.Rewind(context.Background(), old); err != nil {
		t.Fatal(err)
	}
	check(t, "rewound", w.prompt(c).Text, before.Text)
}

func TestEightLoadsAtOnceAllSucceed(t *testing.T) {
	w := newWorld(t)
	w.cfg.Storage = newFiles(t)
	w.onHost("review", skillText("review", "r"))
	c := w.start("a", "/proj")
	var wg sync.WaitGroup
	for i := range 8 {
		other := c
		if i%2 == 0 {
			var err error
			if other, err = Open(context.Background(), w.cfg, c.ID()); err != nil {
				t.Fatal(err)
			}
		}
		wg.Go(func() {
			if _, err := other.Command(context.Background(), "/skill review"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	check(t, "state", w.state(c), "active[review:host] shadowed[] paused[]")
	if l, _ := c.Log(context.Background()); len(l.Events) != 9 {
		t.Errorf("%d events", len(l.Events))
	}
}

func TestATargetThatDoesNotAnswerKeepsNobodyElseWaiting(t *testing.T) {
	w := newWorld(t)
	reach := w.cfg.Reach
	began, dead := make(chan struct{}), false
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) {
		if dead && t.Host == "a" {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return reach(ctx, t)
	}
	c := w.start("a", "/proj")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	dead = true
	first, giveUp := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := c.Catalog(first)
		done <- err
	}()
	<-began
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.reach(gone, Target{Host: "a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
	w.move(c, "b", "/proj")
	if _, err := c.Catalog(context.Background()); err != nil {
		t.Errorf("on another target: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	giveUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
