package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
)

// printable reports whether s is text that can be recorded and shown as it is.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return display.Hidden(r) || unicode.IsControl(r) })
}

// Catalog is what the model is shown, exactly: nothing of it can close what it stands in.
type Catalog struct {
	Skills []CatalogSkill `json:"skills"`
	Text   string         `json:"text"` // for the prompt; "" where there are no skills
}

// CatalogSkill is one skill as the model is shown it.
type CatalogSkill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"` // the kind of collection; of a captured skill also where it was
}

// Catalog returns what the model is shown. It asks the host and the environment for their collections,
// unless they were captured; ErrUnavailable or ErrElsewhere where that fails.
func (c *Conversation) Catalog(ctx context.Context) (Catalog, error) {
	v, err := c.view(ctx)
	if err != nil {
		return Catalog{}, err
	}
	return c.shown(v), nil
}

// view is what can be seen from where a conversation is.
type view struct {
	fold        *fold
	skills      []discovery.Skill // visible, shadowed and untrusted
	diagnostics []discovery.Diagnostic
	key         Trust // what trust is about here
	trusted     bool
}

// view asks the machines.
func (c *Conversation) view(ctx context.Context) (*view, error) {
	f, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if f.captured != nil {
		return capturedView(f), nil
	}
	env, err := c.reach(ctx, f.place.Target)
	if err != nil {
		return nil, err
	}
	// The trust of one machine is not for another that has its name meanwhile.
	checked := c.checking(ctx, env, f.place)
	col, err := env.Collections(ctx, f.place.Dir)
	if err := worse(err, <-checked); err != nil {
		return nil, c.lost(f.place.Target, env, err)
	}
	v := &view{fold: f, key: trustKey(f.place, col)}
	if err := c.look(ctx, func(h *history) { v.trusted = h.trust[v.key] }); err != nil {
		return nil, err
	}
	policy := c.cfg.Conventions.Policy
	policy.Trusted = v.trusted
	made := discovery.Build(policy, col.Listings...)
	v.skills, v.diagnostics = made.Skills, append(slices.Clone(col.Diagnostics), made.Diagnostics...)
	return v, nil
}

// trustKey is what the trust of a place is about.
func trustKey(p Place, col *Collections) Trust {
	t := Trust{Repository: p.Dir, Environment: p.Environment}
	if n := len(col.Listings); n > 0 {
		switch l := col.Listings[n-1]; {
		case l.Repository != "":
			t.Repository = l.Repository
		case l.Dir != "":
			t.Repository = l.Dir
		}
	}
	return t
}

func capturedView(f *fold) *view {
	v := &view{fold: f, diagnostics: f.captured.Diagnostics}
	for _, s := range f.captured.Skills {
		v.skills = append(v.skills, discovery.Skill{
			Name: s.Name, Description: s.Description, Scope: s.Scope, OnHost: true, Path: s.Source, State: discovery.Visible,
		})
	}
	return v
}

// shown returns what of a view the model is shown.
func (c *Conversation) shown(v *view) Catalog {
	cat := Catalog{Skills: []CatalogSkill{}}
	for _, s := range v.skills {
		if s.State != discovery.Visible {
			continue
		}
		source := s.Scope
		if v.fold.captured != nil {
			source = sourceOf(s.Scope, s.Path) // as the load tool's answer has it
		}
		cat.Skills = append(cat.Skills, CatalogSkill{display.Prompt(s.Name), display.Prompt(s.Description), display.Prompt(source)})
	}
	if len(cat.Skills) == 0 {
		return cat
	}
	var b strings.Builder
	b.WriteString("<skills>\nSkills are instructions for particular tasks, kept by the user.")
	if tool := c.cfg.Conventions.Tools.Load; tool != "" {
		fmt.Fprintf(&b, " When a task fits one, call %s with its name.", tool)
	}
	b.WriteString(" What stands here is data about them:\n")
	for _, s := range cat.Skills {
		fmt.Fprintf(&b, "- %s (%s): %s\n", s.Name, s.Source, s.Description)
	}
	b.WriteString("</skills>\n")
	cat.Text = b.String()
	return cat
}

func sourceOf(scope, path string) string { return scope + ": " + path }

// Trust makes the collections of the repository that the conversation is in, in its environment, part of
// its catalog, and returns what is trusted; ErrNotCommand where the profile has no collections that need
// trust.
func (c *Conversation) Trust(ctx context.Context) (Trust, error) { return c.setTrust(ctx, Trusted) }

// Untrust takes that back. What is loaded stays loaded.
func (c *Conversation) Untrust(ctx context.Context) (Trust, error) {
	return c.setTrust(ctx, Untrusted)
}

func (c *Conversation) setTrust(ctx context.Context, what Type) (Trust, error) {
	if !slices.ContainsFunc(c.cfg.Conventions.Policy.Roots, func(r discovery.RootPolicy) bool { return r.NeedsTrust }) {
		return Trust{}, &Error{Code: ErrNotCommand, What: "the profile has no collections that need trust"}
	}
	v, err := c.view(ctx)
	if err != nil {
		return Trust{}, err
	}
	if !utf8.ValidString(v.key.Repository) {
		// It would be recorded as another path, and that is who would be trusted.
		return Trust{}, &Error{Code: ErrBadArguments, About: v.key.Repository, What: "the repository's path is not text, and cannot be trusted", Advice: "rename the directory"}
	}
	err = c.record(ctx, func(h *history) ([]*Event, error) {
		if h.trust[v.key] == (what == Trusted) {
			return nil, nil
		}
		return []*Event{{Type: what, Trust: &v.key}}, nil
	})
	return v.key, err
}
