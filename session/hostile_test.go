package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoPathClosesThePrompt(t *testing.T) {
	w := newWorld(t)
	w.on("a", "/proj/x<", "loaded-skills>", skillText("odd", "body\n"))
	c := w.start("a", "/proj")
	w.load(c, "/proj/x</loaded-skills>")
	if p := w.prompt(c); strings.Count(p.Text, "</loaded-skills>") != 1 {
		t.Errorf("a directory closes the section:\n%s", p.Text)
	}
	text := skillText("tagged", "body\n")
	w.onHost("tagged", text)
	dir := filepath.Join(w.host, "tagged", "a<")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "loaded-skills>"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	w.load(c, "tagged")
	p := w.prompt(c)
	if strings.Count(p.Text, "</loaded-skills>") != 1 || !strings.Contains(p.Text, `a\u{3c}/loaded-skills>`) {
		t.Errorf("a file's name closes the section:\n%s", p.Text)
	}
}

func TestASkillThatGotAnotherNameMeanwhileReplacesNothing(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.on("a", userRoot, "kept", skillText("kept", "k"))
	w.on("a", userRoot, "asked", skillText("asked", "a"))
	c := w.start("a", "/tmp")
	w.load(c, "kept")
	reach := w.cfg.Reach
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) {
		env, err := reach(ctx, t)
		return renaming{env}, err
	}
	c, err := Open(ctx, w.cfg, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	before := w.state(c)
	if _, err := c.Tool(ctx, "load_skill", args("asked")); !errors.Is(err, ErrBadSkill) {
		t.Errorf("loaded: %v", err)
	}
	check(t, "state", w.state(c), before)
	s, _ := c.State(ctx, "")
	if s.Active[0].Skill.Source != userRoot+"/kept" {
		t.Errorf("replaced by %s", s.Active[0].Skill.Source)
	}
}

// renaming is an environment whose skills say that they are "kept" once they are read.
type renaming struct{ Environment }

func (r renaming) Skill(ctx context.Context, dir string) (*Found, error) {
	f, err := r.Environment.Skill(ctx, dir)
	if err == nil {
		f.Data = []byte(skillText("kept", "another"))
	}
	return f, err
}

func TestTrustOfAPathThatIsNoTextIsNobodyElses(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.on("a", projectRoot, "quokka", skillText("quokka", "q"))
	reach := w.cfg.Reach
	at := map[string]string{"/proj/a": "/proj\xff", "/proj/b": "/proj\xfe", "/proj/c": "/proj\uFFFD"}
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) {
		env, err := reach(ctx, t)
		return repositories{env, at}, err
	}
	for first := range at {
		c := w.start("a", first)
		_, err := c.Trust(ctx)
		if text := first == "/proj/c"; text != (err == nil) || !text && !errors.Is(err, ErrBadArguments) {
			t.Errorf("trust in %s: %v", first, err)
		}
		for dir := range at {
			if err := c.ChangeDir(ctx, dir); err != nil {
				t.Fatal(err)
			}
			cat, err := c.Catalog(ctx)
			if shown := len(cat.Skills) > 0; err != nil || shown != (dir == first && dir == "/proj/c") {
				t.Errorf("trusted in %s, in %s it is shown: %v, %v", first, dir, shown, err)
			}
		}
	}
}

// repositories is an environment with the repositories of some directories.
type repositories struct {
	Environment
	of map[string]string
}

func (r repositories) Collections(ctx context.Context, dir string) (*Collections, error) {
	col, err := r.Environment.Collections(ctx, dir)
	if err == nil {
		col.Listings[len(col.Listings)-1].Repository = r.of[dir]
	}
	return col, err
}

func TestErrorsOfArgumentsTellNothingOfTheProgram(t *testing.T) {
	w := newWorld(t)
	c := w.start("a", "/proj")
	for _, wrong := range []string{`[]`, `{"name":1}`, `"x"`, `{"name":{}}`, `{"name":"x","path":["y"]}`} {
		_, err := c.Tool(context.Background(), "load_skill", []byte(wrong))
		if !errors.Is(err, ErrBadArguments) || strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "struct") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestASkillIsNotActiveOnTheMachineThatItsTargetLeadsToNow(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.on("a", userRoot, "mine", skillText("mine", "m"))
	c := w.start("a", "/proj")
	w.load(c, "mine")
	w.machines["a"], w.machines["b"] = w.machines["b"], w.machines["a"]
	c, err := Open(ctx, w.cfg, c.ID()) // the environment was reached before
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prompt(ctx, PromptOptions{}); !errors.Is(err, ErrElsewhere) {
		t.Errorf("prompt: %v", err)
	}
	if p, err := c.Prompt(ctx, PromptOptions{Unverified: true}); err != nil || !strings.Contains(p.Text, "was not asked") {
		t.Errorf("unverified: %v, %s", err, p.Text)
	}
	w.move(c, "a", "/proj")
	check(t, "moved there", w.state(c), "active[] shadowed[] paused[mine:user]")
	w.prompt(c)
}

func TestAnErrorIsShortHoweverLongWhatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.cfg.Conventions.Tools.Reference = "read_reference"
	w.on("a", userRoot, "mine", skillText("mine", "m"))
	c := w.start("a", "/proj")
	w.load(c, "mine")
	long := strings.Repeat("x\u202e", 1<<19)
	for what, err := range map[string]error{
		"a skill":     last(c.Tool(ctx, "load_skill", args(long))),
		"a person's":  last(c.Load(ctx, long)),
		"unloaded":    last(c.Unload(ctx, long)),
		"a tool":      last(c.Tool(ctx, long, nil)),
		"an argument": last(c.Tool(ctx, "load_skill", []byte(`{"`+long+`":1}`))),
		"not loaded":  last(c.Tool(ctx, "read_reference", []byte(`{"name":"`+long+`","path":"a"}`))),
		"a reference": last(c.Tool(ctx, "read_reference", []byte(`{"name":"mine","path":"`+long+`"}`))),
		"an event":    c.Rewind(ctx, long),
		"an id":       CheckID(long),
		"a command":   last(c.Command(ctx, long)),
	} {
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", what, len(err.Error()))
		}
	}
}

func last[T any](_ T, err error) error { return err }

func TestAHistoryWithHolesIsRefused(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	c := w.start("a", "/proj")
	l, err := c.Log(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(ctx, w.cfg, c.Header(), append(l.Events, nil)); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}
