package discovery

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Build makes the catalog of what machines said of their collections, a Listing for each machine. It
// does no I/O, and keeps none of the listings' memory.
//
// Roots count in the order of their index, a root's collections in the order of its listing, nearest
// first, and entries in byte order of their names. What needs trust and lacks it is set apart before
// anything else. Then a directory that is reached in several ways counts once, under its own name
// rather than a link's; and the first skill of a name shadows the others.
func Build(p Policy, listings ...*Listing) *Catalog {
	b := builder{policy: p}
	b.two = len(slices.DeleteFunc(slices.Clone(listings), func(l *Listing) bool { return l == nil })) > 1
	for machine, l := range listings {
		if l != nil {
			b.add(machine, l)
		}
	}
	// Each machine's are in order already, and the sort is stable: this merges the machines.
	slices.SortStableFunc(b.candidates, func(x, y *candidate) int { return cmp.Compare(x.root, y.root) })
	slices.SortStableFunc(b.early, func(x, y rooted) int { return cmp.Compare(x.root, y.root) })
	for _, d := range b.early {
		b.catalog.Diagnostics = append(b.catalog.Diagnostics, d.Diagnostic)
	}
	b.refuseLinks()
	b.dropTwice()
	b.parse()
	b.resolve()
	b.findNested()
	return &b.catalog
}

// builder is a catalog in the making.
type builder struct {
	policy     Policy
	two        bool         // there are two machines
	candidates []*candidate // what may still become a skill
	early      []rooted     // about collections as a whole
	catalog    Catalog
}

// noRoot is the root of what is about the working directory: it comes first.
const noRoot = -1

// rooted is a diagnostic and the root it is about.
type rooted struct {
	root int
	Diagnostic
}

// candidate is an entry on its way to become a skill.
type candidate struct {
	Entry
	machine    int
	root       int
	policy     RootPolicy
	collection *Collection
	path       string
	untrusted  bool
}

// place tells directories apart, of which two machines can have the same.
type place struct {
	machine   int
	real      string
	untrusted bool
}

func (b *builder) add(machine int, l *Listing) {
	if l.Problem != "" {
		b.early = append(b.early, rooted{noRoot, b.diagnose(noRoot, l.Problem, l.Dir, "")})
	}
	collections := slices.Clone(l.Collections)
	slices.SortStableFunc(collections, func(x, y Collection) int { return cmp.Compare(x.Root, y.Root) })
	// The home directory's collection is also that of a project there. It counts once, and without
	// trust where another root has it so.
	seen := make(map[string]bool)
	for _, untrusted := range []bool{false, true} {
		for i := range collections {
			c := &collections[i]
			if c.Root < 0 || c.Root >= len(b.policy.Roots) {
				continue // nobody asked for it
			}
			root := b.policy.Roots[c.Root]
			if untrusted != (root.NeedsTrust && !b.policy.Trusted) || c.Real != "" && seen[c.Real] {
				continue
			}
			seen[c.Real] = true
			b.addCollection(c, machine, root, untrusted)
		}
	}
}

func (b *builder) addCollection(c *Collection, machine int, root RootPolicy, untrusted bool) {
	if c.Problem != "" {
		b.early = append(b.early, rooted{c.Root, b.diagnose(c.Root, c.Problem, c.Path, "")})
	}
	if c.More {
		limit := max(root.Entries, 1)
		b.early = append(b.early, rooted{c.Root, b.diagnose(c.Root, TooManyEntries, c.Path,
			fmt.Sprintf("more than %d entries; those past the first %d are not looked at", limit, limit))})
	}
	entries := slices.Clone(c.Entries)
	slices.SortStableFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Name, y.Name) })
	for _, e := range entries {
		if !isName(e.Name) {
			continue
		}
		b.candidates = append(b.candidates, &candidate{
			Entry: e, machine: machine, root: c.Root, policy: root, collection: c,
			path: path.Join(c.Path, e.Name), untrusted: untrusted,
		})
	}
}

// isName reports whether a name that a machine sent is that of a directory's entry.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// keep drops the candidates that keep refuses.
func (b *builder) keep(keep func(*candidate) bool) {
	b.candidates = slices.DeleteFunc(b.candidates, func(c *candidate) bool { return !keep(c) })
}

func (b *builder) refuseLinks() {
	if !b.policy.NoLinks {
		return
	}
	b.keep(func(c *candidate) bool {
		switch {
		case c.Link:
			b.tell(c.root, LinkRefused, c.path, "the skill's directory is a link, and this profile follows none")
		case c.FileLink:
			b.tell(c.root, LinkRefused, c.file(), "SKILL.md is a link, and this profile follows none")
		}
		return !c.Link && !c.FileLink
	})
}

// dropTwice keeps one of the candidates that are the same directory.
func (b *builder) dropTwice() {
	first := make(map[place]*candidate)
	for _, c := range b.candidates {
		at := c.place()
		if kept := first[at]; c.Real != "" && (kept == nil || kept.Link && !c.Link) {
			first[at] = c
		}
	}
	b.keep(func(c *candidate) bool {
		if c.Real == "" {
			return true
		}
		if c.untrusted && first[place{c.machine, c.Real, false}] != nil {
			return false // no secret: another root lists it
		}
		kept := first[c.place()]
		if kept != c {
			b.tell(c.root, LinkedTwice, c.path, fmt.Sprintf("this is the same directory as %s, which is listed", display.Quote(kept.path)))
		}
		return kept == c
	})
}

// parse makes skills of the candidates that are some, in order.
func (b *builder) parse() {
	type result struct {
		skill    *skill.Skill
		problems []skill.Problem
	}
	results := make([]result, len(b.candidates))
	each(len(results), runtime.GOMAXPROCS(0), func(i int) {
		if c := b.candidates[i]; c.Problem == "" {
			results[i].skill, results[i].problems = skill.Parse(c.Head, c.Name)
		}
	})
	for i, c := range b.candidates {
		if c.Problem != "" {
			b.tell(c.root, c.Problem, c.trouble(), "")
			continue
		}
		parsed, problems := results[i].skill, results[i].problems
		found := b.judge(c, problems)
		if parsed == nil || b.policy.SkillSeverities.Worst(problems) == skill.Error {
			continue
		}
		s := Skill{
			Name: parsed.Name, Description: parsed.Description, Scope: c.policy.Scope, OnHost: c.policy.OnHost,
			Root: c.root, Path: c.path, Real: c.Real, State: Visible, Warnings: found,
		}
		if c.untrusted {
			s.State = Untrusted
		}
		b.catalog.Skills = append(b.catalog.Skills, s)
	}
}

// judge tells what is wrong with a candidate's file, and returns it.
func (b *builder) judge(c *candidate, problems []skill.Problem) []Diagnostic {
	var found []Diagnostic
	for _, p := range problems {
		if severity := b.policy.SkillSeverities.Of(p.Code); severity != skill.Ignore {
			found = append(found, Diagnostic{
				Severity: severity, Code: string(p.Code), Machine: b.machine(c.root), Path: c.file(), Line: p.Line, Message: p.Message, Hint: p.Hint,
			})
		}
	}
	b.catalog.Diagnostics = append(b.catalog.Diagnostics, found...)
	return found
}

// resolve finds the visible skill of each name.
func (b *builder) resolve() {
	winners := make(map[string]*Skill)
	over, first := 0, Skill{}
	skills := b.catalog.Skills[:0]
	for _, s := range b.catalog.Skills {
		if s.State == Untrusted {
			skills = append(skills, s)
			continue
		}
		winner := winners[s.Name]
		if winner == nil && b.policy.Skills > 0 && len(winners) >= b.policy.Skills {
			if over++; over == 1 {
				first = s
			}
			continue
		}
		if winner != nil {
			s.State, s.ShadowedBy = Shadowed, winner.Path
			b.tell(s.Root, DuplicateName, s.Path, fmt.Sprintf("the name %s is taken by %s, which comes first",
				display.Quote(s.Name), display.Quote(winner.Path)))
		} else {
			winners[s.Name] = &s
		}
		skills = append(skills, s)
	}
	b.catalog.Skills = skills
	if over > 0 {
		b.tell(first.Root, TooManySkills, first.Path, fmt.Sprintf("more than %d skills; this and others, %d in all, are left out", b.policy.Skills, over))
	}
}

// findNested tells of skills that hold others, as a link to the repository's own root does: all of
// them would travel with it.
func (b *builder) findNested() {
	type at struct {
		machine int
		real    string
	}
	inner := make(map[at]string) // what a directory holds, for the directories of candidates
	for _, c := range b.candidates {
		if c.Real != "" && c.Problem == "" {
			inner[at{c.machine, c.Real}] = ""
		}
	}
	hold := func(machine int, real, what string) {
		for dir := range parents(real) {
			if held, ok := inner[at{machine, dir}]; ok && held == "" {
				inner[at{machine, dir}] = what
			}
		}
	}
	for _, c := range b.candidates {
		hold(c.machine, path.Join(c.collection.Real, "x"), "the collection it is in")
	}
	for _, c := range b.candidates {
		hold(c.machine, c.Real, "another skill, "+display.Quote(c.path))
	}
	for _, c := range b.candidates {
		if held := inner[at{c.machine, c.Real}]; held != "" && c.Problem == "" {
			b.tell(c.root, NestedSkills, c.path, "the skill's directory holds "+held)
		}
	}
}

// parents yields the directories above an absolute path, nearest first.
func parents(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for p != "" && p != "/" {
			if p = p[:max(strings.LastIndexByte(p, '/'), 0)]; !yield(cmp.Or(p, "/")) {
				return
			}
		}
	}
}

// within reports whether a path is a directory or lies in it.
func within(p, dir string) bool {
	rest, ok := strings.CutPrefix(p, dir)
	return ok && dir != "" && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

func (c *candidate) place() place { return place{c.machine, c.Real, c.untrusted} }

func (c *candidate) file() string { return path.Join(c.path, skill.FileName) }

// trouble is the path that the candidate's problem is about.
func (c *candidate) trouble() string {
	switch {
	case c.Problem == Misnamed:
		return path.Join(c.path, strings.ToLower(skill.FileName))
	case c.Real == "":
		return c.path
	}
	return c.file()
}

// tell adds a diagnostic about a root, unless the profile ignores its kind.
func (b *builder) tell(root int, code Code, path, message string) {
	if d := b.diagnose(root, code, path, message); d.Severity != skill.Ignore {
		b.catalog.Diagnostics = append(b.catalog.Diagnostics, d)
	}
}

// diagnose makes a diagnostic; without a message it has that of the code.
func (b *builder) diagnose(root int, code Code, path, message string) Diagnostic {
	if message == "" {
		info, _ := lookup(code)
		message = cmp.Or(info.Meaning, "it cannot be read")
	}
	return Diagnostic{
		Severity: b.policy.Severities.Of(code), Code: string(code), Machine: b.machine(root), Path: path, Message: message, Hint: hint(code),
	}
}

// machine names the machine that a root is on, where that can be in doubt.
func (b *builder) machine(root int) string {
	switch {
	case !b.two:
		return ""
	case root != noRoot && b.policy.Roots[root].OnHost:
		return OnHost
	}
	return InEnvironment
}

// hint says what mends a problem of discovery's own.
func hint(code Code) string {
	switch code {
	case NoDirectory:
		return "name a working directory that exists on that machine"
	case LinkDangles:
		return "mend or remove the link"
	case LinkEscapes:
		return "put a copy of the file there, or make the whole directory the link"
	case LinkRefused:
		return "put a copy there in place of the link"
	case TooLarge:
		return "move long sections into files beside SKILL.md and refer to them"
	case TooManyEntries, TooManySkills:
		return "remove what is not used"
	case DuplicateName:
		return "rename one of them, its directory and its name field"
	case Misnamed:
		return "rename it to SKILL.md: the name is exactly that"
	case NestedSkills:
		return "move the skill's own files to a directory of their own"
	}
	return ""
}
