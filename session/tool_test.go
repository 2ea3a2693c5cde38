package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func args(name string) json.RawMessage {
	data, _ := json.Marshal(map[string]string{"name": name})
	return data
}

func TestToolsTakeWhatTheySayTheyTake(t *testing.T) {
	w := newWorld(t)
	w.onHost("release", skillText("release", "r"))
	c := w.start("", "/proj")
	for _, bad := range []string{``, `{}`, `[]`, `"release"`, `{"name":1}`, `{"name":"release","path":"x"}`, `{"name":"release","more":1}`, `{"name":"release"} {}`, "{\"name\":\"\x1b[31m"} {
		if _, err := c.Tool(context.Background(), "load_skill", json.RawMessage(bad)); !errors.Is(err, ErrBadArguments) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, name := range []string{"", "skill", "read_skill_reference"} {
		if _, err := c.Tool(context.Background(), name, args("release")); !errors.Is(err, ErrNoTool) {
			t.Errorf("tool %q: %v", name, err)
		}
	}
	for _, name := range []string{"list_skills", "load_skill", "unload_skill"} {
		if _, err := c.Tool(context.Background(), name, args("release")); err != nil {
			t.Errorf("tool %q: %v", name, err)
		}
	}
}

func TestCommandsAnswerInTextAndData(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "r"))
	w.onHost("evil", "---\nname: evil\ndescription: \"\\e[31m red \\u202e\"\n---\n")
	w.on("a", projectRoot, "quokka", skillText("quokka", "q"))
	c := w.start("a", "/proj")
	for line, want := range map[string]string{
		"/skills": "quokka", " /skill  release ": "Loaded release (host)", "/skill .agents/skills/quokka": "Loaded quokka (project)",
		"/skills trust": "/proj", "/skills  untrust": "/proj",
	} {
		a, err := c.Command(ctx, line)
		if err != nil || !strings.Contains(a.Text, want) || strings.ContainsAny(a.Text, "\x1b\u202e") {
			t.Errorf("%s: %q, %v", line, a.Text, err)
		}
		data, err := json.Marshal(a.Data)
		if err != nil || data[0] != '{' {
			t.Errorf("%s: data %s, %v", line, data, err)
		}
	}
	if a, err := c.Command(ctx, "/unskill release"); err != nil || !strings.Contains(a.Text, "release") {
		t.Errorf("%v, %v", a, err)
	}
	for _, line := range []string{"", "hello", "/skill", "/unskill ", "/skillz", "/skills maybe", "\x1b[31m"} {
		if _, err := c.Command(ctx, line); !errors.Is(err, ErrNotCommand) || strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func TestSlipsAreFoundNear(t *testing.T) {
	names := []string{"release", "review", "deploy-docs", "a"}
	for want, near := range map[string]string{"relase": "release", "reveiw": "review", "deploy-doc": "deploy-docs", "zzzz": "", "": "a", strings.Repeat("x", 10_000): ""} {
		if got := strings.Join(nearest(want, names), " "); got != near {
			t.Errorf("%.20q: %q; want %q", want, got, near)
		}
	}
}

func TestSkillsSaysWhichMachineAProblemIsOn(t *testing.T) {
	w := newWorld(t)
	w.onHost("bad", "no frontmatter")
	w.on("a", userRoot, "worse", "none here")
	a, err := w.start("a", "/proj").Command(context.Background(), "/skills")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  error: this machine: " + filepath.ToSlash(w.host) + "/bad/", "  error: a: " + userRoot + "/worse/"} {
		if !strings.Contains(a.Text, want) {
			t.Errorf("%q is not in\n%s", want, a.Text)
		}
	}
}
