package session

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

func capturing(t *testing.T) *world {
	w := newWorld(t)
	w.cfg.Conventions.Limits.Session = 1 << 20
	return w
}

func TestOnlyTheHostsSkillsAreCaptured(t *testing.T) {
	w := capturing(t)
	ctx := context.Background()
	w.onHost("release", skillText("release", "r"))
	// A path of a machine must not be read on this one.
	other := filepath.Join(t.TempDir(), "mine")
	if err := errors.Join(os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "SKILL.md"), []byte(skillText("mine", "here")), 0o644)); err != nil {
		t.Fatal(err)
	}
	listed := func(env Environment, err error) (Environment, error) {
		return listing{env, func(l *discovery.Listing) {
			l.Collections = []discovery.Collection{{Root: 2, Path: filepath.ToSlash(filepath.Dir(other)), Real: filepath.ToSlash(filepath.Dir(other)),
				Entries: []discovery.Entry{entry(filepath.ToSlash(filepath.Dir(other)), "mine", skillText("mine", "there"))}}}
		}}, err
	}
	reach := w.cfg.Reach
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) { return listed(reach(ctx, t)) }
	c := w.start("a", "/proj")
	l, err := c.Log(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Events[0].Captured.Skills; len(got) != 1 || got[0].Name != "release" {
		t.Errorf("captured: %+v", got)
	}
	for _, path := range []string{other, userRoot + "/mine", "."} {
		if _, err := c.Load(ctx, path); !errors.Is(err, ErrNoSkill) {
			t.Errorf("%s was loaded by its path: %v", path, err)
		}
	}
}

type listing struct {
	Environment
	change func(*discovery.Listing)
}

func (e listing) Collections(ctx context.Context, dir string) (*Collections, error) {
	col, err := e.Environment.Collections(ctx, dir)
	if err == nil {
		e.change(col.Listings[len(col.Listings)-1])
	}
	return col, err
}

func TestASkillThatGotAnotherNameIsNotCaptured(t *testing.T) {
	w := capturing(t)
	w.cfg.Conventions.Policy.SkillSeverities = skill.Severities{skill.NameDirectory: skill.Warning}
	w.onHost("release", skillText("release", "r"))
	reach := w.cfg.Reach
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) {
		env, err := reach(ctx, t)
		return listing{env, func(*discovery.Listing) { w.onHost("release", skillText("trusted", "another")) }}, err
	}
	l, err := w.start("a", "/proj").Log(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Events[0].Captured; len(got.Skills) != 0 || len(got.Diagnostics) == 0 {
		t.Errorf("%+v", got)
	}
}

func TestASkillWhosePathIsNoTextIsNotCaptured(t *testing.T) {
	w := capturing(t)
	w.host = filepath.Join(w.host, "a\u202eb")
	w.onHost("release", skillText("release", "r"))
	l, err := w.start("a", "/proj").Log(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Events[0].Captured; len(got.Skills) != 0 || len(got.Diagnostics) == 0 {
		t.Errorf("%+v", got)
	}
}

func TestProblemsOfACaptureAreBounded(t *testing.T) {
	w := capturing(t)
	reach := w.cfg.Reach
	w.cfg.Reach = func(ctx context.Context, t Target) (Environment, error) {
		env, err := reach(ctx, t)
		return complaining{env}, err
	}
	l, err := w.start("a", "/proj").Log(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := l.Events[0].Captured.Diagnostics
	if len(got) != maxCaptureDiagnostics+1 || !strings.HasPrefix(got[len(got)-1].Message, "744 more") {
		t.Errorf("%d: %+v", len(got), got[len(got)-1])
	}
}

type complaining struct{ Environment }

func (e complaining) Collections(ctx context.Context, dir string) (*Collections, error) {
	col, err := e.Environment.Collections(ctx, dir)
	if err == nil {
		col.Diagnostics = make([]discovery.Diagnostic, 1000)
	}
	return col, err
}

func TestWhatWasCapturedIsReferredToThoughNobodyLoadedIt(t *testing.T) {
	w := capturing(t)
	w.onHost("release", skillText("release", "r"))
	l, err := w.start("a", "/proj").Log(context.Background())
	if err != nil || len(l.Events[0].Captured.Skills) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	refs, err := References(context.Background(), forgetful{w.cfg.Storage})
	if err != nil || len(refs) != 1 || !refs[l.Events[0].Captured.Skills[0].Digest] {
		t.Errorf("%v, %v", refs, err)
	}
}

type forgetful struct{ Storage }

func (s forgetful) List(ctx context.Context) ([]string, error) {
	ids, err := s.Storage.List(ctx)
	return append([]string{"removed"}, ids...), err
}
