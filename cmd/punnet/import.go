package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/skill"
)

func (a *app) importCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "import DIR",
		Short: "Copy skills into the profile's own collection",
		Long: `Import copies the skill at DIR, or each immediate subdirectory that holds a SKILL.md
where DIR itself does not, into the collection that the profile has for it: berry's own
collection on this machine, or the root that headlesscode manages. Each skill is copied
whole or not at all, with its execute bits and without what the profile leaves out by
name. The same content again changes nothing. What is there of other content stays as it
is, and the import of that skill fails. Nothing of a skill is run.`,
		Example: "  punnet import ./release\n  punnet --profile headlesscode import ~/downloads/skills",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.importSkills(cmd.Context(), args[0]) },
	}
}

// importedJSON is one skill that the collection has now.
type importedJSON struct {
	Name     string       `json:"name"`
	Path     string       `json:"path"`
	New      bool         `json:"new"`
	Warnings []diagnostic `json:"warnings,omitempty"`
}

type importJSON struct {
	SchemaVersion int            `json:"schemaVersion"`
	Error         *errorJSON     `json:"error,omitempty"`
	Imported      []importedJSON `json:"imported"`
	Failed        []failedJSON   `json:"failed,omitempty"`
}

func (a *app) importSkills(ctx context.Context, arg string) error {
	root, err := a.profile.ImportRoot(a.env)
	if errors.Is(err, profile.ErrNoRoot) {
		return &cliError{code: "no-root", err: fmt.Errorf("the profile %s has no collection for imports", display.Quote(a.profile.Name)),
			hint: "copy the skill to one of " + a.collectionPlaces()}
	}
	if err != nil {
		return err
	}
	dirs, err := skillDirs(arg)
	if err != nil {
		return err
	}
	out := importJSON{SchemaVersion: schemaVersion, Imported: []importedJSON{}}
	for _, dir := range dirs {
		done, err := a.importSkill(ctx, root, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f := failedJSON{dir, describeError(err)}
			out.Failed = append(out.Failed, f)
			if !a.json {
				a.complain("import", f.Message, f.Hint)
			}
			continue
		}
		out.Imported = append(out.Imported, done)
		a.warn(done.Warnings)
		if !a.json {
			what := "present"
			if done.New {
				what = "imported"
			}
			fmt.Fprintf(a.stdout, "%s %s\n  %s\n", a.paint(a.stdout, green, what), display.Quote(done.Name), display.Quote(done.Path))
		}
	}
	return a.endImport(out)
}

// skillDirs returns the skill directories that a DIR argument stands for: itself, or each immediate
// subdirectory with a SKILL.md.
func skillDirs(arg string) ([]string, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(path, skill.FileName)); err == nil {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, &cliError{err: fmt.Errorf("%s: %w", display.Quote(arg), fault.Bare(err)), hint: "give the path of a skill directory, or of a directory of them"}
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, skill.FileName)); err == nil {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, noSkillIn(arg, path)
	}
	return dirs, nil
}

// endImport prints the JSON and returns what the exit code says.
func (a *app) endImport(out importJSON) error {
	var exit int
	exit, out.Error = outcome(len(out.Imported), out.Failed)
	if a.json {
		a.printJSON(out)
	}
	if exit != exitDone {
		return found(exit)
	}
	return nil
}

// importSkill copies one skill directory into the collection at root.
func (a *app) importSkill(ctx context.Context, root, dir string) (importedJSON, error) {
	src, err := bundle.OpenSource(dir)
	if err != nil {
		return importedJSON{}, &cliError{err: fmt.Errorf("%s: %w", display.Quote(dir), fault.Bare(err))}
	}
	defer src.Close()
	var p parsed
	placed, report, err := bundle.Place(ctx, root, src, a.importRules(), func(t *bundle.Tree, report *bundle.Report) error {
		if p = a.judge(t.SkillFile, filepath.Join(src.Path, skill.FileName), src.Name); p.bad != nil {
			return p.err()
		}
		return refuseLinks(src, report)
	})
	if taken, ok := errors.AsType[*bundle.TakenError](err); ok {
		return importedJSON{}, &cliError{code: "name-taken", err: fmt.Errorf("%s: %w", display.Quote(src.Name), err),
			hint: fmt.Sprintf("compare the two, and remove %s to import this one", display.Quote(taken.Path))}
	}
	if err != nil {
		return importedJSON{}, aboutSkill(src, err)
	}
	return importedJSON{
		Name: p.skill.Name, Path: placed.Path, New: placed.New,
		Warnings: append(p.diagnostics, ownerWarnings(src, report)...),
	}, nil
}

// importRules are the profile's rules for a copy of a skill directory. What a session would leave out
// of what it captures is copied all the same: it is the skill's.
func (a *app) importRules() bundle.Rules {
	r := a.profile.Rules
	r.TextOnly = false
	if r.LeaveOutExcess {
		r.LeaveOutExcess = false
		r.Limits = bundle.Limits{Entries: r.Entries, Levels: r.Levels}
	}
	return r
}

// refuseLinks rejects a skill of which a link would be left out.
func refuseLinks(src *bundle.Source, report *bundle.Report) error {
	var links []bundle.Finding
	for _, f := range report.LeftOut() {
		if f.Reason == bundle.LinkRefused {
			f.Outcome = bundle.Rejected
			links = append(links, f)
		}
	}
	if len(links) == 0 {
		return nil
	}
	return &bundle.RejectedError{Name: src.Name, Findings: links}
}
