package discovery

import "github.com/punnet/punnet/skill"

// Policy is what a profile and a conversation say of the catalog.
type Policy struct {
	// Roots has what Build must know of each root; a Collection.Root is an index into it.
	Roots []RootPolicy
	// Trusted lists the skills of roots that need trust like all others.
	Trusted bool
	// Skills is how many visible skills there may be; 0 for any number.
	Skills int
	// NoLinks refuses skills whose directory or SKILL.md is a link.
	NoLinks bool
	// SkillSeverities and Severities say how much each problem counts.
	SkillSeverities skill.Severities
	Severities      Severities
}

// RootPolicy is what Build must know of one root.
type RootPolicy struct {
	Scope      string // what kind of root it is: project, host, user, enabled, managed, or a profile's own word
	OnHost     bool   // it is on this machine, wherever the conversation runs
	NeedsTrust bool   // its skills are untrusted unless Policy.Trusted
	Entries    int    // how many entries were looked at, for the message
}

// State is what became of a skill.
type State string

// The states of a skill.
const (
	Visible   State = "visible"   // the skill of its name
	Shadowed  State = "shadowed"  // another skill of its name comes first
	Untrusted State = "untrusted" // its repository is not trusted; it takes part in nothing
)

// Catalog is what a conversation can use, and what its owner should know.
type Catalog struct {
	// Skills are in order of precedence: of the roots, the nearer collections, and the entries' names.
	Skills      []Skill
	Diagnostics []Diagnostic
}

// Skill is one skill of a catalog.
type Skill struct {
	Name        string // a label and never a path element, see skill.Skill
	Description string // as written, of up to 1024 code points; untrusted text
	Scope       string // RootPolicy.Scope
	OnHost      bool   // RootPolicy.OnHost
	Root        int    // the root's index in Policy.Roots
	Path        string // the absolute path of its directory, as found: it may be, or lie behind, a link
	Real        string // its real path
	State       State
	ShadowedBy  string       // the Path of the visible skill of its name, where it is Shadowed
	Warnings    []Diagnostic // what is wrong with its SKILL.md; in Catalog.Diagnostics too
}

// The machines of a conversation that does not run on the host.
const (
	OnHost        = "host"
	InEnvironment = "environment"
)

// Diagnostic is one thing that a person should know.
type Diagnostic struct {
	Severity skill.Severity `json:"severity"`
	Code     string         `json:"code"`              // a Code or a skill.Code
	Machine  string         `json:"machine,omitempty"` // where Path is, OnHost or InEnvironment; "" where there is one machine
	Path     string         `json:"path"`              // what it is about: an absolute path, not quoted
	Line     int            `json:"line,omitempty"`    // of a SKILL.md; 0 for none
	Message  string         `json:"message"`           // what is wrong, on one line that can be shown
	Hint     string         `json:"hint,omitempty"`    // what mends it; "" when the message says it all
}

// Visible returns the visible skill of a name, nil where there is none.
func (c *Catalog) Visible(name string) *Skill {
	for i := range c.Skills {
		if s := &c.Skills[i]; s.Name == name && s.State == Visible {
			return s
		}
	}
	return nil
}

// Worst returns the greatest severity among the diagnostics, skill.Ignore where there are none.
func (c *Catalog) Worst() skill.Severity {
	worst := skill.Ignore
	for _, d := range c.Diagnostics {
		worst = max(worst, d.Severity)
	}
	return worst
}
