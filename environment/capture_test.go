package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/session"
)

func TestASessionHasWhatWasCapturedWhenItStarted(t *testing.T) {
	l := newLab(t, "headlesscode")
	ctx := context.Background()
	managed := filepath.Join(l.home, ".local/share/headlesscode/skills")
	dir := l.skill(managed, "res", "body")
	write := func(name, data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("long.md", strings.Repeat("é", 30_000))
	write("bin.dat", "\xff\xfe\x00")
	write("exact.md", strings.Repeat("x", 20_000))
	source, err := os.ReadFile(filepath.Join(dir, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	c := l.start("", l.home)
	ref := func(path string) (session.Answer, error) {
		args, _ := json.Marshal(map[string]string{"name": "res", "path": path})
		return c.Tool(ctx, "read_skill_reference", args)
	}
	if _, err := ref("references/a.md"); !errors.Is(err, session.ErrNotLoaded) {
		t.Errorf("a reference before activation: %v", err)
	}
	write("references/a.md", "later")
	write("SKILL.md", "---\nname: res\ndescription: x\n---\nlater\n")
	l.skill(managed, "newer", "not of this session")
	c = reopened(t, l, c.ID())
	a, err := c.Tool(ctx, "skill", json.RawMessage(`{"name":"res"}`))
	if err != nil {
		t.Fatal(err)
	}
	got := a.Data.(session.CapturedAnswer)
	sum := sha256.Sum256(source)
	if got.Instructions != "body\n" || got.SHA256 != hex.EncodeToString(sum[:]) || got.Source != "managed: "+dir {
		t.Errorf("%+v", got)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(a.Text), &fields); err != nil || len(fields) != 3 {
		t.Errorf("the answer is %s", a.Text)
	}
	if a, err := ref("./references/a.md"); err != nil || a.Text != "reference of res\n" {
		t.Errorf("%q, %v", a.Text, err)
	}
	if a, err := ref("long.md"); err != nil || !a.Data.(session.ReferenceAnswer).Truncated || strings.Count(a.Text, "é") != 20_000 {
		t.Errorf("a long reference: %d characters, %v", strings.Count(a.Text, "é"), err)
	}
	if a, err := ref("exact.md"); err != nil || a.Data.(session.ReferenceAnswer).Truncated || len(a.Text) != 20_000 {
		t.Errorf("a reference at the limit: %d, %v", len(a.Text), err)
	}
	for _, path := range []string{"../res/SKILL.md", "references/../SKILL.md", "/etc/passwd", dir + "/SKILL.md", "bin.dat", "references", ".", "", "..", "a\\b", "nosuch"} {
		if _, err := ref(path); !errors.Is(err, session.ErrNoReference) && !errors.Is(err, session.ErrBadArguments) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := c.Tool(ctx, "skill", json.RawMessage(`{"name":"newer"}`)); !errors.Is(err, session.ErrNoSkill) {
		t.Errorf("a skill that came later: %v", err)
	}
	if p := l.prompt(c); p.Text != "" || words(p.Active) != "res:managed" {
		t.Errorf("the model has the instructions already, and is told again: %+v", p)
	}
	cat, err := c.Catalog(ctx)
	if err != nil || len(cat.Skills) != 1 || cat.Skills[0].Description != "does res" || cat.Skills[0].Source != got.Source {
		t.Errorf("%+v, %v", cat, err)
	}
	refs, err := session.References(ctx, l.cfg.Storage)
	if err != nil || len(refs) != 1 {
		t.Errorf("%d bundles are referred to, %v", len(refs), err)
	}
	sub, err := c.Subagent(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Tool(ctx, "skill", json.RawMessage(`{"name":"res"}`)); err != nil {
		t.Errorf("a subagent: %v", err)
	}
}

func TestASessionCapturesNoMoreTextThanItsLimit(t *testing.T) {
	l := newLab(t, "headlesscode")
	managed := filepath.Join(l.home, ".local/share/headlesscode/skills")
	for _, name := range []string{"a", "b", "c"} {
		l.skill(managed, name, strings.Repeat("x", 1000))
	}
	l.cfg.Conventions.Limits.Session = 2500
	c := l.start("", l.home)
	a := l.command(c, "/skills")
	o := a.Data.(session.Overview)
	if len(o.Skills) != 2 || !strings.Contains(a.Text, "was not captured") {
		t.Errorf("%s", a.Text)
	}
}
