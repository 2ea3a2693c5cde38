package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/skill"
)

// openSkill opens the skill directory at a path, as locate returns it.
func (a *app) openSkill(arg string) (*bundle.Source, error) {
	if !isPath(arg) {
		hint := "names are looked up in " + a.collectionPlaces() + "; a path has a slash in it"
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			hint = fmt.Sprintf("for the directory of that name here, write ./%s", display.Quote(arg))
		}
		return nil, notNamed(a.named, arg, hint)
	}
	src, err := bundle.OpenSource(arg)
	if err != nil {
		ce := &cliError{err: fmt.Errorf("%s: %w", display.Quote(arg), fault.Bare(err))}
		if errors.Is(err, fs.ErrNotExist) {
			ce.hint = "give the path of a directory that holds a SKILL.md"
		}
		return nil, ce
	}
	return src, nil
}

// notNamed is the error of a name that means nothing in a catalog: why its directory is kept out, where
// there is one, or the hint.
func notNamed(c *discovery.Catalog, name, hint string) error {
	if d, ok := why(c, name); ok {
		return &cliError{code: d.Code, err: fmt.Errorf("%s: %s: %s", display.Quote(name), display.Quote(d.Path), diagnosticText(d)), hint: d.Hint}
	}
	return &cliError{code: "not-found", err: fmt.Errorf("%s: no skill of that name", display.Quote(name)), hint: hint}
}

// isPath reports whether a SKILL argument is a path, and not a name in a catalog.
func isPath(arg string) bool {
	return arg == "." || arg == ".." || strings.ContainsRune(arg, '/') || strings.ContainsRune(arg, filepath.Separator)
}

// named makes the words of an error safe to show, and keeps the path that it is about.
func named(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", display.Quote(pe.Path), pe.Err)
	}
	return err
}

// parsed is a skill's file as the profile judges it.
type parsed struct {
	skill       *skill.Skill
	diagnostics []diagnostic
	bad         *diagnostic // the first that is an error
}

// judge parses a skill's file. path is where it lies and dir its directory's name.
func (a *app) judge(data []byte, path, dir string) parsed {
	return judge(data, path, dir, a.profile.Severities)
}

func judge(data []byte, path, dir string, severities skill.Severities) parsed {
	s, problems := skill.Parse(data, dir)
	p := parsed{skill: s}
	for _, problem := range problems {
		severity := severities.Of(problem.Code)
		if severity == skill.Ignore {
			continue
		}
		p.diagnostics = append(p.diagnostics, diagnostic{
			Severity: severity, Code: string(problem.Code), Path: path,
			Line: problem.Line, Message: problem.Message, Hint: problem.Hint,
		})
	}
	for i, d := range p.diagnostics {
		if d.Severity == skill.Error {
			p.bad = &p.diagnostics[i]
			break
		}
	}
	return p
}

// err returns why the skill cannot be used, or nil.
func (p parsed) err() error {
	if p.bad == nil {
		return nil
	}
	return &cliError{code: p.bad.Code, err: fmt.Errorf("%s: %s", skill.FileName, diagnosticText(*p.bad)), hint: p.bad.Hint}
}

// scanSkill reads a whole skill directory and its skill file. What the directory's owner should
// know is among the diagnostics, also with an error.
func (a *app) scanSkill(ctx context.Context, src *bundle.Source) (*bundle.Tree, *bundle.Report, parsed, error) {
	tree, report, err := src.Scan(ctx, a.profile.Rules)
	if err != nil {
		return nil, report, parsed{}, err
	}
	p := a.judge(tree.SkillFile, filepath.Join(src.Path, skill.FileName), src.Name)
	return tree, report, p, p.err()
}

// aboutSkill names the skill that an error is about.
func aboutSkill(src *bundle.Source, err error) error {
	out := &cliError{code: errorCode(err), err: fmt.Errorf("%s: %w", display.Quote(src.Name), err)}
	if ce, ok := errors.AsType[*cliError](err); ok {
		out.hint = ce.hint
	} else if errors.Is(err, bundle.NoSkillFile) {
		out.hint = "give the path of a directory that holds a SKILL.md"
	} else if _, ok := errors.AsType[*bundle.RejectedError](err); ok {
		out.hint = fmt.Sprintf("punnet validate %s lists everything that stands in the way", display.Quote(src.Path))
	}
	return out
}
