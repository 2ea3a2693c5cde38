package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Load loads a skill, for the next Prompt: the one that the name means among what is visible, else the
// nearest of that name in a repository that is not trusted, which trusts nothing. What has a slash in it
// or is . or .. is the path of a skill's directory in the environment, absolute or below the working
// directory. A skill that is loaded already is loaded as it is now.
//
// A skill of the host is pinned in the store and published in the environment before it counts as loaded.
// After an error the conversation and its record are as they were. It is ErrNoSkill, ErrBadSkill,
// ErrTooLarge, ErrUnavailable, ErrElsewhere, ErrMeanwhile, or what storage or store failed with.
func (c *Conversation) Load(ctx context.Context, nameOrPath string) (*Event, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	s := pick(v, nameOrPath)
	if s == nil {
		return nil, unknown(v, nameOrPath, true)
	}
	return c.load(ctx, v, *s, false)
}

// loadShown loads what the model asks for, of what it is shown.
func (c *Conversation) loadShown(ctx context.Context, name string, answered bool) (*Event, error) {
	v, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range v.skills {
		if s.State == discovery.Visible && s.Name == name {
			return c.load(ctx, v, s, answered)
		}
	}
	return nil, unknown(v, name, false)
}

func isPath(s string) bool { return s == "." || s == ".." || strings.ContainsAny(s, `/\`) }

// pick returns the skill that a name or path means, nil for none.
func pick(v *view, want string) *discovery.Skill {
	if !isPath(want) {
		for _, state := range []discovery.State{discovery.Visible, discovery.Untrusted} {
			for i := range v.skills {
				if s := &v.skills[i]; s.Name == want && s.State == state {
					return s
				}
			}
		}
		return nil
	}
	at := path.Clean(strings.ReplaceAll(want, `\`, "/"))
	if !isAbs(at) {
		at = path.Join(strings.ReplaceAll(v.fold.place.Dir, `\`, "/"), at)
	}
	for _, onHost := range []bool{false, true} {
		for i := range v.skills {
			if s := &v.skills[i]; s.OnHost == onHost && (s.Path == at || s.Real == at) {
				return s
			}
		}
	}
	if v.fold.captured != nil {
		return nil
	}
	return &discovery.Skill{Scope: ScopePath, Path: at, Real: at}
}

// unknown is the error of a name that means nothing, or nothing that whoever asks may know of. It names
// those that were perhaps meant.
func unknown(v *view, want string, person bool) error {
	e := &Error{Code: ErrNoSkill, What: "no skill named " + asked(want)}
	if d := keptOut(v, want); person && d != nil {
		code := ErrBadSkill
		if d.Code == string(discovery.TooLarge) {
			code = ErrTooLarge
		}
		return &Error{Code: code, About: d.Path, What: d.Message, Advice: d.Hint}
	}
	var names []string
	for _, s := range v.skills {
		if s.State == discovery.Visible || person && s.State == discovery.Untrusted {
			names = append(names, s.Name)
		}
	}
	if near := nearest(want, names); len(near) > 0 {
		e.Advice = "did you mean " + strings.Join(near, " or ") + "?"
	} else if person {
		e.Advice = "/skills shows what there is"
	}
	return e
}

// keptOut returns what keeps a skill whose directory has this name out of the catalog, nil for nothing.
func keptOut(v *view, name string) *discovery.Diagnostic {
	for i, d := range v.diagnostics {
		if d.Severity == skill.Error && (path.Base(d.Path) == name || path.Base(path.Dir(d.Path)) == name) {
			return &v.diagnostics[i]
		}
	}
	return nil
}

// load loads a skill of a view.
func (c *Conversation) load(ctx context.Context, v *view, s discovery.Skill, answered bool) (*Event, error) {
	snap := &Snapshot{Scope: s.Scope, Source: s.Path, OnHost: s.OnHost, Environment: v.fold.place.Environment, Answered: answered}
	var err error
	if s.OnHost && v.fold.captured == nil { // what is pinned stays until it is recorded who refers to it
		release, err := c.cfg.Store.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	switch {
	case v.fold.captured != nil:
		err = c.readCaptured(ctx, v.fold.captured, s.Path, snap)
	case s.OnHost:
		err = c.pin(ctx, snap)
	default:
		err = c.readThere(ctx, v.fold.place, snap)
	}
	if err != nil {
		return nil, err
	}
	if s.Name != "" && snap.Name != s.Name {
		return nil, &Error{Code: ErrBadSkill, About: snap.Source, What: "it was changed meanwhile and is now named " + display.Quote(snap.Name), Advice: "load it under that name"}
	}
	if !printable(snap.Source) || !printable(snap.Directory) {
		return nil, &Error{Code: ErrBadSkill, About: snap.Source, What: "the skill's path is not text that can be shown"}
	}
	e := &Event{Type: Loaded, Skill: snap}
	if err := c.fits(v.fold, e); err != nil {
		return nil, err
	}
	if snap.OnHost && v.fold.captured == nil && !v.fold.place.Target.Local() {
		dirs, err := c.publish(ctx, v.fold.place, []bundle.Digest{snap.Digest})
		if err != nil {
			return nil, err
		}
		snap.Directory = dirs[0]
	}
	err = c.record(ctx, func(h *history) ([]*Event, error) {
		f := h.current()
		if f.place.Environment != v.fold.place.Environment {
			return nil, &Error{Code: ErrMeanwhile, About: snap.Name, What: "the conversation moved to another environment while the skill was loaded", Advice: "load it again"}
		}
		return []*Event{e}, c.fits(f, e)
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// fits returns ErrTooLarge where what is loaded would be over the limit with e.
func (c *Conversation) fits(f *fold, e *Event) error {
	limit := c.cfg.Conventions.Limits.Active
	f = f.clone()
	f.apply(e)
	if n := f.bytes(); limit > 0 && n > limit {
		return &Error{Code: ErrTooLarge, About: e.Skill.Name,
			What:   fmt.Sprintf("with it %d bytes of instructions would be loaded, paused ones included; the limit is %d", n, limit),
			Advice: "/unskill another first"}
	}
	return nil
}

// judge fills in what SKILL.md says, or says why it cannot be loaded. dir is its directory's name.
func (c *Conversation) judge(snap *Snapshot, data []byte, dir string) error {
	s, problems := skill.Parse(data, dir)
	if len(data) > skill.MaxFileBytes {
		return &Error{Code: ErrTooLarge, About: snap.Source, What: fmt.Sprintf("SKILL.md is larger than %d KiB", skill.MaxFileBytes>>10),
			Advice: "move long sections into files beside SKILL.md and refer to them"}
	}
	severities := c.cfg.Conventions.Policy.SkillSeverities
	if s == nil || severities.Worst(problems) == skill.Error {
		e := &Error{Code: ErrBadSkill, About: snap.Source, What: "SKILL.md cannot be used"}
		for _, p := range problems {
			if severities.Of(p.Code) == skill.Error {
				e.Err, e.Advice = p, p.Hint
				break
			}
		}
		return e
	}
	snap.Name, snap.Instructions = s.Name, string(data)
	snap.SHA256 = digestOf(snap.Instructions)
	return nil
}

// pin puts a skill of the host into the store and fills in what was pinned.
func (c *Conversation) pin(ctx context.Context, snap *Snapshot) error {
	src, err := bundle.OpenSource(filepath.FromSlash(snap.Source))
	if err != nil {
		return badSource(snap, err)
	}
	defer src.Close()
	pinned, _, err := c.cfg.Store.Pin(ctx, src, c.cfg.Conventions.Rules, func(t *bundle.Tree) error {
		snap.Files, snap.MoreFiles = filesOf(t.Manifest)
		return c.judge(snap, t.SkillFile, src.Name)
	})
	if err != nil {
		return badSource(snap, err)
	}
	snap.Digest, snap.Directory = pinned.Digest, pinned.Path
	return nil
}

// badSource names the skill that an error of reading it is about.
func badSource(snap *Snapshot, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	what := "the skill cannot be loaded"
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // whose path is told, and may be anything
	}
	return &Error{Code: ErrBadSkill, About: snap.Source, What: what, Err: err}
}

// filesOf lists a bundle's files.
func filesOf(m *bundle.Manifest) (files []string, more int) {
	for _, e := range m.Entries() {
		if e.Kind == bundle.Dir {
			continue
		}
		if len(files) == MaxFilesListed {
			more++
			continue
		}
		files = append(files, strings.TrimPrefix(e.Path, m.Name()+"/"))
	}
	return files, more
}

// readThere reads a skill of the environment and fills in what it is.
func (c *Conversation) readThere(ctx context.Context, at Place, snap *Snapshot) error {
	env, err := c.reach(ctx, at.Target)
	if err != nil {
		return err
	}
	checked := c.checking(ctx, env, at)
	found, err := env.Skill(ctx, snap.Source)
	if is := <-checked; is != nil {
		return c.lost(at.Target, env, is)
	}
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrUnavailable) {
		return &Error{Code: ErrNoSkill, About: snap.Source, What: "no skill is there", Advice: "give the name of a skill, or the path of a directory with a SKILL.md"}
	}
	if err != nil {
		if errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return c.lost(at.Target, env, err)
		}
		return badSource(snap, err)
	}
	snap.Directory = found.Path
	for _, f := range found.Files {
		snap.Files = append(snap.Files, strings.ToValidUTF8(f, "\uFFFD"))
	}
	snap.MoreFiles = found.More
	return c.judge(snap, found.Data, path.Base(found.Path))
}

func same(p Place, id string) error {
	if id == p.Environment {
		return nil
	}
	return &Error{Code: ErrElsewhere, About: p.Target.String(), What: "the target is another machine or account than it was when the conversation moved there",
		Advice: "move the conversation there again: what belongs to the old one is paused then"}
}

// publish makes bundles of the store stand in the environment of a place, which is not this machine, and
// returns the skills' directories there. Which machine it is is asked at the same time, not before.
func (c *Conversation) publish(ctx context.Context, p Place, digests []bundle.Digest) ([]string, error) {
	var bundles []*bundle.Bundle
	defer func() {
		for _, b := range bundles {
			b.Close()
		}
	}()
	for _, d := range digests {
		b, err := c.cfg.Store.Open(d)
		if err != nil {
			return nil, noBundle(d, err)
		}
		bundles = append(bundles, b)
	}
	env, err := c.reach(ctx, p.Target)
	if err != nil {
		return nil, err
	}
	checked := c.checking(ctx, env, p)
	dirs, err := env.Publish(ctx, bundles...)
	if err := worse(err, <-checked); err != nil {
		return nil, c.lost(p.Target, env, err)
	}
	return dirs, nil
}

// checking asks beside other questions whether an environment is still that of a place.
func (c *Conversation) checking(ctx context.Context, env Environment, p Place) <-chan error {
	checked := make(chan error, 1)
	go func() {
		id, _, err := env.Identify(ctx)
		if err == nil {
			err = same(p, id)
		}
		checked <- err
	}()
	return checked
}

// worse returns the error that tells more: that it is another machine explains whatever failed there.
func worse(err, checked error) error {
	if err == nil || errors.Is(checked, ErrElsewhere) {
		return checked
	}
	return err
}

func noBundle(d bundle.Digest, err error) error {
	return &Error{Code: ErrBadSkill, About: d.Short(), What: "the bundle that the conversation refers to cannot be read", Err: err,
		Advice: "restore the store, or load the skill again"}
}

// Unload ends what is loaded under a name here: the active skill and the one that it shadows. What is
// paused stays. It returns the loaded events that it ends; ErrNotLoaded where there are none.
func (c *Conversation) Unload(ctx context.Context, name string) ([]*Event, error) {
	var ended []*Event
	err := c.record(ctx, func(h *history) ([]*Event, error) {
		ended = nil
		s := h.current().state()
		for _, e := range slices.Concat(s.Active, s.Shadowed) {
			if e.Skill.Name == name {
				ended = append(ended, e)
			}
		}
		if len(ended) == 0 {
			return nil, notLoaded(s, name)
		}
		u := &Event{Type: Unloaded}
		for _, e := range ended {
			u.Unloaded = append(u.Unloaded, e.ID)
		}
		return []*Event{u}, nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

func notLoaded(s State, name string) error {
	e := &Error{Code: ErrNotLoaded, What: "no skill named " + asked(name) + " is active here"}
	for _, p := range s.Paused {
		if p.Skill.Name == name {
			e.Advice = "one is paused: it belongs to another machine or account, and can be unloaded there"
		}
	}
	return e
}
