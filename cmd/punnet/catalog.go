package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
	"github.com/punnet/punnet/transport"
)

// catalogAsk says which catalog is wanted.
type catalogAsk struct {
	target  transport.Target // where the conversation runs; the zero Target is this machine
	dir     string           // its working directory, an absolute path; "" for the usual one
	trusted bool             // its repository is trusted
	reached *reached         // the target, where it is reached already
}

// catalog makes the catalog that a conversation would see: of the host's roots, and of those of the
// machine that it runs on. The two machines are asked at the same time.
func (a *app) catalog(ctx context.Context, ask catalogAsk) (*discovery.Catalog, error) {
	policy := a.profile.Policy(ask.trusted)
	if ask.target.Local() {
		here, qerr, err := a.readBoth(ctx, ask.dir)
		if err != nil {
			return nil, err
		}
		return a.build(policy, qerr, here), nil
	}
	q, qerr := a.profile.HostQuery(a.env)
	var here, there *discovery.Listing
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		here, err = environment.ReadHere(gctx, q)
		return err
	})
	g.Go(func() (err error) {
		there, err = a.readThere(gctx, ask)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return a.build(policy, qerr, here, there), nil
}

// build makes a catalog of what machines said. qerr is why the roots that a file enables are not
// among it; it hides nothing else.
func (a *app) build(policy discovery.Policy, qerr error, listings ...*discovery.Listing) *discovery.Catalog {
	c := discovery.Build(policy, listings...)
	if qerr != nil {
		machine := ""
		if len(listings) > 1 {
			machine = discovery.OnHost
		}
		c.Diagnostics = append([]diagnostic{a.profile.EnabledProblem(a.env, machine, qerr)}, c.Diagnostics...)
	}
	return c
}

// readBoth asks this machine for all there is to a conversation on it, in a directory, "" for the working
// directory. One that was removed is the listing's problem: the other collections are still there. qerr
// is for build.
func (a *app) readBoth(ctx context.Context, dir string) (here *discovery.Listing, qerr, err error) {
	var gone error
	if dir == "" {
		dir, gone = os.Getwd()
	} else if dir, err = filepath.Abs(dir); err != nil {
		return nil, nil, err
	}
	if gone != nil {
		dir = ""
	}
	q, qerr := a.profile.LocalQuery(a.env, dir)
	here, err = environment.ReadHere(ctx, q)
	if err == nil && gone != nil {
		here.Dir, here.Problem = ".", discovery.NoDirectory
	}
	return here, qerr, err
}

// readThere reaches a target, where it is not yet, and asks it for the collections of a conversation's
// environment. Without a working directory that is the account's home, which the target alone knows.
func (a *app) readThere(ctx context.Context, ask catalogAsk) (*discovery.Listing, error) {
	r := ask.reached
	if r == nil {
		var err error
		if r, err = a.reach(ctx, ask.target); err != nil {
			return nil, err
		}
		defer r.conn.Close()
	}
	return r.cache.Collections(ctx, a.profile.EnvironmentQuery(cmp.Or(ask.dir, discovery.Home)))
}

// names returns what SKILL names mean here: this machine's catalog in the working directory, as
// large as it is. It is made once.
func (a *app) names(ctx context.Context) (*discovery.Catalog, error) {
	if a.named != nil {
		return a.named, nil
	}
	listing, qerr, err := a.readBoth(ctx, "")
	if err != nil {
		return nil, err
	}
	policy := a.profile.Policy(false)
	policy.Skills = 0
	a.named = a.build(policy, qerr, listing)
	return a.named, nil
}

// pick returns the skill of a catalog that a name means: the visible one, or else the nearest of the
// untrusted ones, which whoever names it has chosen.
func pick(c *discovery.Catalog, name string) *discovery.Skill {
	if s := c.Visible(name); s != nil {
		return s
	}
	for i := range c.Skills {
		if s := &c.Skills[i]; s.Name == name && s.State == discovery.Untrusted {
			return s
		}
	}
	return nil
}

// locate returns the paths that SKILL arguments stand for: a name is looked up in this machine's
// catalog, anything else is a path already. A name that is not found stays as it is, for openSkill
// to say so.
func (a *app) locate(ctx context.Context, args []string) ([]string, error) {
	paths := slices.Clone(args)
	for i, arg := range args {
		if isPath(arg) {
			continue
		}
		c, err := a.names(ctx)
		if err != nil {
			return nil, err
		}
		if s := pick(c, arg); s != nil {
			paths[i] = filepath.FromSlash(s.Path)
			a.noteUntrusted(s)
		}
	}
	return paths, nil
}

// noteUntrusted tells that a skill was used by its name alone.
func (a *app) noteUntrusted(s *discovery.Skill) {
	if s.State == discovery.Untrusted && !a.quiet && !a.json {
		fmt.Fprintf(a.stderr, "note: %s is a project's, at %s; its repository is not trusted\n", display.Quote(s.Name), display.Quote(s.Path))
	}
}

// why returns the diagnostic that keeps a skill whose directory has this name out of a catalog.
func why(c *discovery.Catalog, name string) (diagnostic, bool) {
	if c != nil {
		for _, d := range c.Diagnostics {
			at := filepath.FromSlash(d.Path)
			if d.Severity == skill.Error && (filepath.Base(at) == name || filepath.Base(filepath.Dir(at)) == name) {
				return d, true
			}
		}
	}
	return diagnostic{}, false
}

// everything returns the paths of all skills in this machine's own collections, the first of each
// name. What keeps a skill out is told.
func (a *app) everything(ctx context.Context) ([]string, error) {
	q, qerr := a.profile.HostQuery(a.env)
	listing, err := environment.ReadHere(ctx, q)
	if err != nil {
		return nil, err
	}
	policy := a.profile.Policy(false)
	policy.Skills = 0
	c := a.build(policy, qerr, listing)
	var told []diagnostic // by whoever opens the skill
	for _, s := range c.Skills {
		told = append(told, s.Warnings...)
	}
	a.warn(slices.DeleteFunc(slices.Clone(c.Diagnostics), func(d diagnostic) bool { return slices.Contains(told, d) }))
	var paths []string
	for _, s := range c.Skills {
		if s.State == discovery.Visible {
			paths = append(paths, filepath.FromSlash(s.Path))
		}
	}
	if len(paths) == 0 {
		return nil, &cliError{code: "not-found", err: errors.New("there are no skills in this machine's collections"), hint: "collections of profile " + display.Quote(a.profile.Name) + ": " + a.collectionPlaces()}
	}
	return paths, nil
}

// collectionPlaces names the places where names are looked up, for hints.
func (a *app) collectionPlaces() string {
	places := ""
	q, _ := a.profile.LocalQuery(a.env, "")
	for _, r := range q.Roots {
		if places != "" {
			places += ", "
		}
		places += display.Quote(filepath.FromSlash(r.Path))
	}
	return places
}
