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
	"github.com/punnet/punnet/skill"
)

func (a *app) validateCommand() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check skills, as a CI job would",
		Long: `Validate checks the skill at each PATH, or each immediate subdirectory that holds a
SKILL.md where PATH itself does not: that SKILL.md is as the standard and the profile
want it, and that the directory can become a bundle. It exits with 5 when it found an
error, with --strict also for a warning.`,
		Example: "  punnet validate ./release\n  punnet validate --strict ~/.config/berry/skills",
		Args:    some("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.validate(cmd.Context(), args, strict)
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 5 for warnings too")
	return cmd
}

type validatedJSON struct {
	Name string `json:"name"`
	Path string `json:"path"`
	OK   bool   `json:"ok"`
}

func (a *app) validate(ctx context.Context, args []string, strict bool) error {
	out := struct {
		SchemaVersion int             `json:"schemaVersion"`
		Skills        []validatedJSON `json:"skills"`
		Diagnostics   []diagnostic    `json:"diagnostics"`
	}{schemaVersion, []validatedJSON{}, []diagnostic{}}
	worst := skill.Ignore
	for _, arg := range args {
		dirs, err := skillDirs(arg)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			v, ds, err := a.validateSkill(ctx, dir)
			if err != nil {
				return err
			}
			for _, d := range ds {
				if d.Severity == skill.Error.String() {
					v.OK = false
					worst = skill.Error
				}
				worst = max(worst, skill.Warning)
			}
			out.Skills = append(out.Skills, v)
			out.Diagnostics = append(out.Diagnostics, ds...)
			if !a.json {
				a.showValidated(v, ds)
			}
		}
	}
	if a.json {
		a.printJSON(out)
	}
	if worst == skill.Error || strict && worst == skill.Warning {
		return found(exitProblems)
	}
	return nil
}

// skillDirs returns the skill directories that a PATH argument of validate stands for.
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
		return nil, &cliError{err: fmt.Errorf("%s: %w", display.Quote(arg), quoted(err)), hint: "give the path of a skill directory, or of a directory of them"}
	}
	var dirs []string
	misnamed := ""
	for _, e := range entries {
		dir := filepath.Join(path, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, skill.FileName)); err == nil {
			dirs = append(dirs, dir)
		}
		if e.Name() == "skill.md" || e.Name() == "Skill.md" {
			misnamed = e.Name()
		}
	}
	if len(dirs) == 0 {
		ce := &cliError{code: "no-skill-file", err: fmt.Errorf("%s: there is no skill here: neither it nor a directory in it holds a SKILL.md", display.Quote(arg))}
		if misnamed != "" {
			ce.hint = fmt.Sprintf("rename %s to SKILL.md: the name is exactly that", misnamed)
		}
		return nil, ce
	}
	return dirs, nil
}

// validateSkill checks one skill directory. The error is for what is no fault of the skill's.
func (a *app) validateSkill(ctx context.Context, dir string) (validatedJSON, []diagnostic, error) {
	v := validatedJSON{Name: filepath.Base(dir), Path: dir, OK: true}
	file := filepath.Join(dir, skill.FileName)
	src, err := bundle.OpenSource(dir)
	if err != nil {
		return v, []diagnostic{{Severity: skill.Error.String(), Code: errorCode(err), Path: dir, Message: quoted(err).Error()}}, nil
	}
	defer src.Close()
	data, err := src.ReadSkillFile(ctx, a.profile.Rules)
	if err != nil && ctx.Err() != nil {
		return v, nil, err
	}
	var ds []diagnostic
	if err == nil { // else the scan says the same, with everything else
		p := a.judge(data, file, src.Name)
		ds = p.diagnostics
		if p.skill != nil {
			v.Name = p.skill.Name
		}
	}
	_, report, err := src.Scan(ctx, a.profile.Rules)
	if rejected, ok := errors.AsType[*bundle.RejectedError](err); ok {
		return v, append(ds, scanDiagnostics(src, rejected.Findings, skill.Error)...), nil
	}
	if err != nil {
		return v, nil, err
	}
	return v, append(ds, ownerWarnings(src, report)...), nil
}

func (a *app) showValidated(v validatedJSON, ds []diagnostic) {
	mark := a.paint(a.stdout, green, "ok  ")
	if !v.OK {
		mark = a.paint(a.stdout, red, "FAIL")
	}
	fmt.Fprintf(a.stdout, "%s %s\n", mark, display.Quote(v.Path))
	for _, d := range ds {
		color := yellow
		if d.Severity == skill.Error.String() {
			color = red
		} else if a.quiet {
			continue
		}
		at := ""
		if rel, err := filepath.Rel(v.Path, d.Path); err == nil && rel != "." {
			at = display.Quote(rel) + ": "
		}
		fmt.Fprintf(a.stdout, "     %s %s%s [%s]\n", a.paint(a.stdout, color, d.Severity+":"), at, d.text(), d.Code)
		if d.Hint != "" {
			fmt.Fprintf(a.stdout, "       hint: %s\n", d.Hint)
		}
	}
}
