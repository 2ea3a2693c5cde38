package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
)

// Overview is what /skills shows.
type Overview struct {
	Target      string                 `json:"target"`     // as it was named
	Dir         string                 `json:"dir"`        // the working directory there
	Repository  string                 `json:"repository"` // what trust is about here; "" where nothing needs any
	Trusted     bool                   `json:"trusted"`
	Skills      []Listed               `json:"skills"`
	Active      []PromptSkill          `json:"active"`
	Paused      []PromptSkill          `json:"paused"`
	Shadowed    []PromptSkill          `json:"shadowed"`
	Bytes       int64                  `json:"bytes"`           // of loaded instructions, paused ones included
	Limit       int64                  `json:"limit,omitempty"` // of Bytes; 0 for none
	Diagnostics []discovery.Diagnostic `json:"diagnostics"`
}

// Listed is one skill that can be loaded.
type Listed struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Scope       string          `json:"scope"`
	Path        string          `json:"path"`
	State       discovery.State `json:"state"`
	ShadowedBy  string          `json:"shadowedBy,omitempty"`
}

// TrustAnswer is the data of the answer to /skills trust and /skills untrust.
type TrustAnswer struct {
	Trust
	Trusted bool `json:"trusted"`
}

// Commands are the forms of line that Command takes, for help.
func Commands() []string {
	return []string{"/skills", "/skill NAME", "/unskill NAME", "/skills trust", "/skills untrust"}
}

// Command does what a line says: one of Commands. NAME may be a path, see Load; it is the rest of the
// line. Any other line is ErrNotCommand.
func (c *Conversation) Command(ctx context.Context, line string) (Answer, error) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(strings.Join(strings.Fields(line), " "), " ")
	if _, after, ok := strings.Cut(line, word); ok && word != "/skills" {
		rest = strings.TrimSpace(after) // a path may have spaces in a row
	}
	switch {
	case word == "/skills" && rest == "":
		return c.overview(ctx)
	case word == "/skills" && rest == "trust":
		t, err := c.Trust(ctx)
		if err != nil {
			return Answer{}, err
		}
		return Answer{"Trusted: the skills of " + display.Quote(t.Repository) + " are in the catalog of this conversation.", TrustAnswer{t, true}}, nil
	case word == "/skills" && rest == "untrust":
		t, err := c.Untrust(ctx)
		if err != nil {
			return Answer{}, err
		}
		return Answer{"Not trusted: the skills of " + display.Quote(t.Repository) + " are left out of the catalog. What is loaded stays loaded.", TrustAnswer{t, false}}, nil
	case word == "/skill" && rest != "":
		e, err := c.Load(ctx, rest)
		if err != nil {
			return Answer{}, err
		}
		return loadedAnswer(e), nil
	case word == "/unskill" && rest != "":
		return c.unload(ctx, rest)
	}
	return Answer{}, &Error{Code: ErrNotCommand, What: "not a command", About: shortened(line), Advice: "the commands are " + strings.Join(Commands(), ", ")}
}

// asked returns what somebody asked for, fit to stand in an error however long it is.
func asked(s string) string { return display.Quote(shortened(s)) }

func shortened(s string) string {
	if short, cut := firstRunes(s, 80); cut {
		return short + "..."
	}
	return s
}

// overview answers /skills.
func (c *Conversation) overview(ctx context.Context) (Answer, error) {
	v, err := c.view(ctx)
	if err != nil {
		return Answer{}, err
	}
	s := v.fold.state()
	o := Overview{
		Target: s.Place.Target.String(), Dir: s.Place.Dir, Repository: v.key.Repository, Trusted: v.trusted, Skills: []Listed{},
		Active: promptSkills(s.Active), Paused: promptSkills(s.Paused), Shadowed: promptSkills(s.Shadowed),
		Bytes: v.fold.bytes(), Limit: c.cfg.Conventions.Limits.Active,
		Diagnostics: append([]discovery.Diagnostic{}, v.diagnostics...),
	}
	for _, s := range v.skills {
		o.Skills = append(o.Skills, Listed{s.Name, s.Description, s.Scope, s.Path, s.State, s.ShadowedBy})
	}
	return Answer{o.text(), o}, nil
}

// text returns the overview for a person, fit for a terminal.
func (o Overview) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s\n", display.Quote(o.Target), display.Quote(o.Dir))
	loaded := [][]string{}
	add := func(what string, skills []PromptSkill) {
		for _, s := range skills {
			loaded = append(loaded, []string{what, s.Name, s.Scope, cmp.Or(s.Digest[:min(12, len(s.Digest))], s.Directory)})
		}
	}
	add("active", o.Active)
	add("shadowed", o.Shadowed)
	add("paused", o.Paused)
	if len(loaded) > 0 {
		b.WriteString("\nLoaded")
		if o.Limit > 0 {
			fmt.Fprintf(&b, " (%d of %d bytes)", o.Bytes, o.Limit)
		}
		b.WriteString("\n")
		table(&b, loaded)
	}
	b.WriteString("\nSkills\n")
	var rows [][]string
	for _, s := range o.Skills {
		about := strings.Join(strings.Fields(s.Description), " ")
		switch s.State {
		case discovery.Shadowed:
			about = "shadowed by " + s.ShadowedBy
		case discovery.Untrusted:
			about = "untrusted: " + about
		}
		rows = append(rows, []string{s.Name, s.Scope, shortened(about)})
	}
	if len(rows) == 0 {
		b.WriteString("  none\n")
	}
	table(&b, rows)
	untrusted := slices.ContainsFunc(o.Skills, func(s Listed) bool { return s.State == discovery.Untrusted })
	if untrusted {
		fmt.Fprintf(&b, "\n%s is not trusted; /skills trust puts its skills into the catalog\n", display.Quote(o.Repository))
	}
	if len(o.Diagnostics) > 0 {
		b.WriteString("\nProblems\n")
		for _, d := range o.Diagnostics {
			where := ""
			switch d.Machine {
			case discovery.OnHost:
				where = "this machine: "
			case discovery.InEnvironment:
				where = display.Quote(o.Target) + ": "
			}
			fmt.Fprintf(&b, "  %s: %s%s: %s [%s]\n", d.Severity, where, display.Quote(d.Path), display.Quote(d.Message), d.Code)
		}
	}
	return b.String()
}

// table writes rows in columns, each cell fit for a terminal.
func table(b *strings.Builder, rows [][]string) {
	var wide []int
	for _, row := range rows {
		for i := range row {
			row[i] = display.Quote(row[i])
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], len([]rune(row[i])))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("  " + cell + strings.Repeat(" ", wide[i]-len([]rune(cell))))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
