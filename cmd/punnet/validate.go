package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/skill"
)

func (a *app) validateCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Check skills, as a CI job would",
		Long: `Validate checks the skill at each PATH, or the directory of skills that PATH is: that
each SKILL.md is as the standard and the profile want it, that each directory can become
a bundle, and that no skill hides another where the profile minds. Without PATH it checks
all collections of the profile on this machine, those of the working directory's project
included. It exits with 5 when it found an error, with 3 when some PATHs hold no skill,
and with 1 when none does.

--strict is for authors: it exits with 5 for warnings too, and warns of whatever the
standard has a rule for and the profile lets pass. So it refuses what the standard's
reference validator refuses: a frontmatter key that the standard does not have, a name
that is not the directory's, a value that had to be quoted before it could be read, a
key that is there twice, an optional field of the wrong form or length.`,
		Example: "  punnet validate ./release\n  punnet validate --strict .agents/skills\n  punnet validate",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.validate(cmd.Context(), args, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "mind warnings too, and every rule of the standard")
	return cmd
}

type validatedJSON struct {
	Name string `json:"name"`
	Path string `json:"path"`
	OK   bool   `json:"ok"`
}

type validateJSON struct {
	SchemaVersion int             `json:"schemaVersion"`
	Error         *errorJSON      `json:"error,omitempty"`
	Skills        []validatedJSON `json:"skills"`
	Diagnostics   []diagnostic    `json:"diagnostics"`
	Failed        []failedPath    `json:"failed,omitempty"`
}

// failedPath is a PATH that holds no skill.
type failedPath struct {
	Path string `json:"path"`
	errorJSON
}

// validation is one run of validate.
type validation struct {
	*app
	severities skill.Severities // the profile's, or stricter
	worst      skill.Severity
	out        validateJSON
}

func (a *app) validate(ctx context.Context, args []string, strict bool) error {
	v := &validation{app: a, severities: a.profile.Severities}
	v.out = validateJSON{SchemaVersion: schemaVersion, Skills: []validatedJSON{}, Diagnostics: []diagnostic{}}
	if strict {
		v.severities = strictSeverities(v.severities)
	}
	if err := v.check(ctx, args); err != nil {
		return err
	}
	exit := exitDone
	switch {
	case v.worst == skill.Error || strict && v.worst == skill.Warning:
		exit = exitProblems
	case len(v.out.Failed) > 0 && len(v.out.Skills) > 0:
		exit = exitSome
	case len(v.out.Failed) > 0:
		exit, v.out.Error = exitFailed, &v.out.Failed[0].errorJSON
	}
	if a.json {
		a.printJSON(v.out)
	} else if !a.quiet {
		bad := len(slices.DeleteFunc(slices.Clone(v.out.Skills), func(s validatedJSON) bool { return s.OK }))
		line := fmt.Sprintf("%s checked, %d with errors", plural(len(v.out.Skills), "skill"), bad)
		if len(args) == 0 && len(v.out.Skills) == 0 {
			line += "; looked in " + a.collectionPlaces()
		}
		fmt.Fprintln(a.stderr, line)
	}
	if exit != exitDone {
		return found(exit)
	}
	return nil
}

// strictSeverities returns a profile's severities, in which nothing is ignored that the standard has a
// rule for.
func strictSeverities(s skill.Severities) skill.Severities {
	strict := skill.Severities{}
	for _, c := range skill.Codes() {
		if strict[c.Code] = s.Of(c.Code); strict[c.Code] == skill.Ignore {
			strict[c.Code] = max(c.Default, skill.Warning)
		}
	}
	return strict
}

// check goes through all that is to be checked. Its error is for what is no fault of a path's.
func (v *validation) check(ctx context.Context, args []string) error {
	if len(args) == 0 {
		listing, qerr, err := v.readBoth(ctx, "")
		if err != nil {
			return err
		}
		return v.checkCollections(ctx, listing, v.profile.Policy(true), qerr)
	}
	for _, arg := range args {
		if err := v.checkPath(ctx, arg); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e := describeError(err)
			v.out.Failed = append(v.out.Failed, failedPath{absolute(arg), e})
			if !v.json {
				v.complain("validate", e.Message, e.Hint)
			}
		}
	}
	return nil
}

// checkPath checks what one PATH argument stands for: a skill, or a directory of them.
func (v *validation) checkPath(ctx context.Context, arg string) error {
	at, err := filepath.Abs(arg)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(at, skill.FileName)); err == nil {
		return v.checkSkill(ctx, at, nil)
	}
	if info, err := os.Stat(at); err != nil {
		return &cliError{err: fmt.Errorf("%s: %w", display.Quote(arg), fault.Bare(err)), hint: "give the path of a skill directory, or of a directory of them"}
	} else if !info.IsDir() {
		return &cliError{code: "not-a-directory", err: fmt.Errorf("%s: it is not a directory", display.Quote(arg)), hint: "give the path of a skill directory, or of a directory of them"}
	}
	before := len(v.out.Skills)
	q := discovery.Query{Roots: []discovery.Root{{Path: filepath.ToSlash(at), Entries: discovery.MaxListed}}}
	policy := v.profile.Policy(true)
	policy.Roots, policy.Skills = []discovery.RootPolicy{{Entries: discovery.MaxListed}}, 0
	listing, err := environment.ReadHere(ctx, q)
	if err != nil {
		return err
	}
	if err := v.checkCollections(ctx, listing, policy, nil); err != nil {
		return err
	}
	if len(v.out.Skills) == before {
		return noSkillIn(arg, at)
	}
	return nil
}

// checkCollections checks the skills of collections, and the collections themselves.
func (v *validation) checkCollections(ctx context.Context, listing *discovery.Listing, policy discovery.Policy, qerr error) error {
	c := v.build(policy, qerr, listing)
	about, rest := sortFindings(c.Diagnostics, listing)
	listed := map[string]bool{}
	policy.Skills = 0 // what a catalog has no room for is checked too
	for _, s := range v.build(policy, nil, listing).Skills {
		listed[s.Path] = true
	}
	done := map[string]bool{} // a collection that two roots name counts once
	for dir := range entryPaths(listing) {
		if done[dir] || !listed[dir] && about[dir] == nil {
			continue // listed elsewhere, under its own name
		}
		done[dir] = true
		if err := v.checkSkill(ctx, filepath.FromSlash(dir), about[dir]); err != nil {
			return err
		}
	}
	for _, d := range rest {
		v.worst = max(v.worst, d.Severity)
	}
	v.out.Diagnostics = append(v.out.Diagnostics, rest...)
	if !v.json {
		v.showFindings("", rest)
	}
	return nil
}

// entryPaths yields the paths of all that a machine has listed, in order.
func entryPaths(l *discovery.Listing) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range l.Collections {
			for _, e := range c.Entries {
				if !yield(path.Join(c.Path, e.Name)) {
					return
				}
			}
		}
	}
}

// sortFindings tells diagnostics that are about one entry, by its path, from those about collections.
func sortFindings(ds []diagnostic, l *discovery.Listing) (about map[string][]diagnostic, rest []diagnostic) {
	entry := map[string]bool{}
	for dir := range entryPaths(l) {
		entry[dir] = true
	}
	about = map[string][]diagnostic{}
	for _, d := range ds {
		switch dir := path.Dir(d.Path); {
		case d.Code == string(discovery.Misnamed):
			rest = append(rest, d) // no skill, only meant to be one
		case entry[d.Path]:
			about[d.Path] = append(about[d.Path], d)
		case entry[dir]:
			about[dir] = append(about[dir], d)
		default:
			rest = append(rest, d)
		}
	}
	return about, rest
}

// again reports whether reading a skill directory whole finds a problem that discovery has found.
func again(d diagnostic) bool {
	for _, c := range discovery.Codes() {
		if string(c.Code) == d.Code {
			return c.Fatal && c.Code != discovery.ListingFull // of which the skill knows nothing
		}
	}
	return true
}

// checkSkill checks one skill directory, of which discovery has found some things already. The error
// is for what is no fault of the skill's.
func (v *validation) checkSkill(ctx context.Context, dir string, known []diagnostic) error {
	one := validatedJSON{Name: filepath.Base(dir), Path: dir, OK: true}
	src, err := bundle.OpenSource(dir)
	var ds []diagnostic
	switch {
	case err == nil:
		defer src.Close()
		var name string
		if ds, name, err = v.findings(ctx, src); err != nil {
			return err
		}
		one.Name = cmp.Or(name, one.Name)
		known = slices.DeleteFunc(known, again)
	case len(known) == 0:
		known = []diagnostic{{Severity: skill.Error, Code: errorCode(err), Path: dir, Message: fault.Bare(err).Error()}}
	}
	ds = append(ds, known...)
	for _, d := range ds {
		one.OK = one.OK && d.Severity != skill.Error
		v.worst = max(v.worst, d.Severity)
	}
	v.out.Skills = append(v.out.Skills, one)
	v.out.Diagnostics = append(v.out.Diagnostics, ds...)
	if !v.json {
		v.showValidated(one, ds)
	}
	return nil
}

// findings reads a skill directory whole and returns what there is to say about it, and its name.
func (v *validation) findings(ctx context.Context, src *bundle.Source) ([]diagnostic, string, error) {
	data, err := src.ReadSkillFile(ctx, v.profile.Rules)
	if err != nil && ctx.Err() != nil {
		return nil, "", err
	}
	var ds []diagnostic
	name := ""
	if err == nil { // else the scan says the same, with everything else
		p := judge(data, filepath.Join(src.Path, skill.FileName), src.Name, v.severities)
		ds = p.diagnostics
		if p.skill != nil {
			name = p.skill.Name
		}
	}
	_, report, err := src.Scan(ctx, v.profile.Rules)
	if rejected, ok := errors.AsType[*bundle.RejectedError](err); ok {
		more := scanDiagnostics(src, rejected.Findings, skill.Error)
		return append(ds, slices.DeleteFunc(more, func(d diagnostic) bool { // the file itself is judged already
			return slices.ContainsFunc(ds, func(k diagnostic) bool { return k.Code == d.Code && k.Path == d.Path })
		})...), name, nil
	}
	if err != nil {
		return nil, "", err
	}
	return append(ds, ownerWarnings(src, report)...), name, nil
}
