package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// collected is a skill of one of this machine's collections that can be used by its name.
type collected struct {
	name string
	path string // the skill directory, absolute
}

// collect returns the skills of this machine's collections, the first of each name, in the order of
// the collections and of the directories' names; and what keeps others out.
func (a *app) collect(ctx context.Context) ([]collected, []diagnostic, error) {
	var out []collected
	var ds []diagnostic
	q, err := a.profile.HostQuery(a.env)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range q.Roots {
		dir := filepath.FromSlash(c.Path)
		names, more, err := entryNames(dir, c.Entries)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if more {
			ds = append(ds, diagnostic{Severity: skill.Warning.String(), Code: "too-many-entries", Path: dir,
				Message: fmt.Sprintf("more than %d entries; those past the first %d are not looked at", c.Entries, c.Entries)})
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			path := filepath.Join(dir, name)
			p, ok, err := a.glance(ctx, path)
			switch {
			case err != nil:
				ds = append(ds, diagnostic{Severity: skill.Error.String(), Code: errorCode(err), Path: path, Message: quoted(err).Error()})
			case !ok:
			case p.bad != nil:
				ds = append(ds, *p.bad)
			case !slices.ContainsFunc(out, func(c collected) bool { return c.name == p.skill.Name }):
				out = append(out, collected{p.skill.Name, path})
			}
		}
	}
	return out, ds, nil
}

// entryNames returns the sorted names in a directory, at most max of them, and whether there are more.
func entryNames(dir string, max int) ([]string, bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	names, err := f.Readdirnames(max + 1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	more := len(names) > max
	slices.Sort(names)
	return names[:min(len(names), max)], more, nil
}

// glance reads the skill file of one entry of a collection. ok is false where the entry is no skill
// directory at all.
func (a *app) glance(ctx context.Context, path string) (p parsed, ok bool, err error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return p, false, nil
	}
	src, err := bundle.OpenSource(path)
	if err != nil {
		return p, false, err
	}
	defer src.Close()
	data, err := src.ReadSkillFile(ctx, a.profile.Rules)
	if errors.Is(err, bundle.NoSkillFile) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	return a.judge(data, filepath.Join(path, skill.FileName), src.Name), true, nil
}

// locate returns the paths that SKILL arguments stand for: a name is looked up in this machine's
// collections, anything else is a path already. A name that is not found stays as it is, for
// openSkill to say so.
func (a *app) locate(ctx context.Context, args []string) ([]string, error) {
	if !slices.ContainsFunc(args, func(arg string) bool { return !isPath(arg) }) {
		return args, nil
	}
	skills, ds, err := a.collect(ctx)
	if err != nil {
		return nil, err
	}
	a.unusable = ds
	paths := slices.Clone(args)
	for i, arg := range args {
		if isPath(arg) {
			continue
		}
		if at := slices.IndexFunc(skills, func(c collected) bool { return c.name == arg }); at >= 0 {
			paths[i] = skills[at].path
		}
	}
	return paths, nil
}

// why returns the diagnostic that keeps a skill whose directory has this name out of the collections.
func (a *app) why(name string) (diagnostic, bool) {
	for _, d := range a.unusable {
		if filepath.Base(d.Path) == name || filepath.Base(filepath.Dir(d.Path)) == name {
			return d, true
		}
	}
	return diagnostic{}, false
}

// everything returns the paths of all skills in this machine's collections. What keeps a skill out
// is told.
func (a *app) everything(ctx context.Context) ([]string, error) {
	skills, ds, err := a.collect(ctx)
	if err != nil {
		return nil, err
	}
	a.warn(ds)
	if len(skills) == 0 {
		return nil, &cliError{code: "not-found", err: errors.New("there are no skills in this machine's collections"), hint: "collections of profile " + display.Quote(a.profile.Name) + ": " + a.collectionPlaces()}
	}
	var paths []string
	for _, s := range skills {
		paths = append(paths, s.path)
	}
	return paths, nil
}

func (a *app) collectionPlaces() string {
	places := ""
	q, err := a.profile.HostQuery(a.env)
	if err != nil {
		return ""
	}
	for _, r := range q.Roots {
		if places != "" {
			places += ", "
		}
		places += display.Quote(filepath.FromSlash(r.Path))
	}
	return places
}
