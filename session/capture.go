package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// capturers is how many skills are captured at once: most of it is waiting for the disk.
const capturers = 8

// maxCaptureDiagnostics bounds what a started event holds of what was wrong.
const maxCaptureDiagnostics = 256

// captures reports whether a session captures all skills when it starts.
func (c Conventions) captures() bool { return c.Limits.Session > 0 }

// capture pins every visible skill of the host, in order as far as the session's limit goes.
func (c *Conversation) capture(ctx context.Context, at Place) (*Capture, error) {
	env, err := c.reach(ctx, at.Target)
	if err != nil {
		return nil, err
	}
	col, err := env.Collections(ctx, at.Dir)
	if err != nil {
		return nil, c.lost(at.Target, env, err)
	}
	made := discovery.Build(c.cfg.Conventions.Policy, col.Listings...)
	skills := slices.DeleteFunc(made.Skills, func(s discovery.Skill) bool { return s.State != discovery.Visible || !s.OnHost })
	captured := make([]Captured, len(skills))
	failed := make([]error, len(skills))
	reports := make([]*bundle.Report, len(skills))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(capturers)
	for i, s := range skills {
		g.Go(func() error {
			captured[i], reports[i], failed[i] = c.captureSkill(gctx, s)
			return gctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := &Capture{Skills: []Captured{}, Diagnostics: append(slices.Clone(col.Diagnostics), made.Diagnostics...)}
	tell := func(s discovery.Skill, code, message string) {
		out.Diagnostics = append(out.Diagnostics, discovery.Diagnostic{Severity: skill.Warning, Code: code, Path: s.Path, Message: message})
	}
	var total int64
	for i, s := range skills {
		if failed[i] != nil {
			tell(s, string(ErrBadSkill), "it was not captured: "+display.Quote(failed[i].Error()))
			continue
		}
		for _, f := range reports[i].LeftOut() {
			if f.Reason != bundle.LeftOutByName {
				tell(s, string(f.Reason), "not captured: "+display.Quote(f.Path))
			}
		}
		if total+captured[i].Bytes > c.cfg.Conventions.Limits.Session {
			tell(s, string(bundle.TooManyBytes), fmt.Sprintf("it was not captured: a session captures at most %d bytes of text", c.cfg.Conventions.Limits.Session))
			continue
		}
		total += captured[i].Bytes
		out.Skills = append(out.Skills, captured[i])
	}
	if n := len(out.Diagnostics); n > maxCaptureDiagnostics {
		out.Diagnostics = out.Diagnostics[:maxCaptureDiagnostics]
		tell(discovery.Skill{Path: at.Dir}, string(discovery.ListingFull), fmt.Sprintf("%d more problems are not listed", n-maxCaptureDiagnostics))
	}
	return out, nil
}

func (c *Conversation) captureSkill(ctx context.Context, s discovery.Skill) (Captured, *bundle.Report, error) {
	got := Captured{Scope: s.Scope, Source: s.Path}
	src, err := bundle.OpenSource(filepath.FromSlash(s.Path))
	if err != nil {
		return got, nil, err
	}
	defer src.Close()
	pinned, report, err := c.cfg.Store.Pin(ctx, src, c.cfg.Conventions.Rules, func(t *bundle.Tree) error {
		snap := &Snapshot{Source: s.Path}
		if err := c.judge(snap, t.SkillFile, src.Name); err != nil {
			return err
		}
		// What it says now, in the place of what the listing had.
		parsed, _ := skill.Parse(t.SkillFile, src.Name)
		got.Name, got.Description = parsed.Name, parsed.Description
		if got.Name != s.Name {
			return errors.New("it was changed meanwhile and has another name")
		}
		return nil
	})
	if err == nil && !printable(s.Path) {
		err = errors.New("its path is not text that can be shown")
	}
	got.Digest, got.Bytes = pinned.Digest, pinned.Bytes
	return got, report, err
}

// readCaptured fills in what was captured of the skill with this source.
func (c *Conversation) readCaptured(ctx context.Context, from *Capture, source string, snap *Snapshot) error {
	i := slices.IndexFunc(from.Skills, func(s Captured) bool { return s.Source == source })
	if i < 0 {
		return &Error{Code: ErrNoSkill, About: source, What: "it was not captured when the session started"}
	}
	s := from.Skills[i]
	b, err := c.cfg.Store.Open(s.Digest)
	if err != nil {
		return noBundle(s.Digest, err)
	}
	defer b.Close()
	data, err := readBundle(b, bundle.SkillFile)
	if err != nil {
		return noBundle(s.Digest, err)
	}
	snap.Digest, snap.Directory = s.Digest, c.cfg.Store.Path(s.Digest, b.Manifest.Name())
	snap.Files, snap.MoreFiles = filesOf(b.Manifest)
	return c.judge(snap, data, b.Manifest.Name())
}

// errNotInBundle is a path that is no file of a bundle.
var errNotInBundle = errors.New("it has no such file")

// readBundle returns the content of a file by its path below the skill directory.
func readBundle(b *bundle.Bundle, p string) ([]byte, error) {
	for _, e := range b.Manifest.Entries() {
		if e.Kind == bundle.Dir || e.Path != path.Join(b.Manifest.Name(), p) {
			continue
		}
		var buf bytes.Buffer
		if err := b.CopyFile(&buf, e); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	}
	return nil, errNotInBundle
}
