package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// noSkillIn is the error of a directory that neither is a skill nor holds one.
func noSkillIn(arg, path string) error {
	ce := &cliError{code: "no-skill-file", err: fmt.Errorf("%s: there is no skill here: neither it nor a directory in it holds a SKILL.md", display.Quote(arg))}
	for _, misnamed := range []string{"skill.md", "Skill.md"} {
		if _, err := os.Lstat(filepath.Join(path, misnamed)); err == nil {
			ce.hint = fmt.Sprintf("rename %s to SKILL.md: the name is exactly that", misnamed)
		}
	}
	return ce
}

func (a *app) showValidated(v validatedJSON, ds []diagnostic) {
	mark := a.paint(a.stdout, green, "ok  ")
	if !v.OK {
		mark = a.paint(a.stdout, red, "FAIL")
	}
	fmt.Fprintf(a.stdout, "%s %s\n", mark, display.Quote(v.Path))
	a.showFindings(v.Path, ds)
}

// showFindings prints diagnostics, with paths below dir as such.
func (a *app) showFindings(dir string, ds []diagnostic) {
	for _, d := range ds {
		if a.quiet && d.Severity != skill.Error {
			continue
		}
		at := display.Quote(d.Path) + ": "
		if rel, err := filepath.Rel(dir, d.Path); err == nil && dir != "" {
			if at = display.Quote(rel) + ": "; rel == "." {
				at = ""
			}
		}
		fmt.Fprintf(a.stdout, "     %s %s%s [%s]\n", a.paintSeverity(a.stdout, d.Severity), at, diagnosticText(d), d.Code)
		if d.Hint != "" {
			fmt.Fprintf(a.stdout, "       hint: %s\n", d.Hint)
		}
	}
}
