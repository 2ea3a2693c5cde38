package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

// collected is a skill of one of this machine's collections that can be used by its name.
type collected struct {
	name string
	path string // the skill directory, absolute
}

// collect returns the skills of this machine's collections, the visible one of each name, in order;
// and what keeps others out.
func (a *app) collect(ctx context.Context) ([]collected, []diagnostic, error) {
	c, err := a.hostCatalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []collected
	var told []discovery.Diagnostic // by whoever opens the skill
	for _, s := range c.Skills {
		if s.State == discovery.Visible {
			out = append(out, collected{s.Name, filepath.FromSlash(s.Path)})
		}
		told = append(told, s.Warnings...)
	}
	var ds []diagnostic
	for _, d := range c.Diagnostics {
		if !slices.Contains(told, d) {
			ds = append(ds, diagnostic{
				Severity: d.Severity.String(), Code: d.Code, Path: filepath.FromSlash(d.Path),
				Line: d.Line, Message: d.Message, Hint: d.Hint,
			})
		}
	}
	return out, ds, nil
}

// hostCatalog reads the collections that are on this machine wherever a conversation runs.
func (a *app) hostCatalog(ctx context.Context) (*discovery.Catalog, error) {
	q, err := a.profile.HostQuery(a.env)
	if err != nil {
		return nil, err
	}
	conn := transport.Local()
	defer conn.Close()
	files, err := conn.Files(ctx)
	if err != nil {
		return nil, err
	}
	l, err := discovery.Read(ctx, files, q)
	if err != nil {
		return nil, err
	}
	return discovery.Build(a.profile.Policy(false), l), nil
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
