package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
)

func (a *app) inspectCommand() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "inspect SKILL [TARGET]",
		Short: "Show what a skill says of itself and what its bundle would hold",
		Long: `Inspect reads a skill directory and shows the fields of its SKILL.md, the files that
its bundle would hold, the bundle's digest, what is left out, and what to look at before
it is copied anywhere. It writes nothing. SKILL is a name in this machine's catalog, or a
path, which has a slash in it or is a dot.

With TARGET it is what a conversation there would use: a name in its catalog, where a
skill of the target's own is read on the target, or an absolute path there.
` + targetHelp,
		Example:           "  punnet inspect ./release\n  punnet inspect release devbox",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completeSkills(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := ""
			if len(args) > 1 {
				target = args[1]
			}
			return a.inspect(cmd.Context(), args[0], target, cwd)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "working `DIR` in which names are looked up (default here the working directory, on a target the home directory)")
	return cmd
}

type inspectJSON struct {
	SchemaVersion      int           `json:"schemaVersion"`
	Name               string        `json:"name"`
	Description        string        `json:"description"`
	Digest             string        `json:"digest"`
	Path               string        `json:"path"`
	Files              []fileJSON    `json:"files"`
	Bytes              int64         `json:"bytes"`
	InstructionsSHA256 string        `json:"instructionsSha256"`
	Instructions       *string       `json:"instructions,omitempty"`
	Omitted            []omittedJSON `json:"omitted"`
	Warnings           []diagnostic  `json:"warnings"`
}

type fileJSON struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Mode   string `json:"mode"`
	SHA256 string `json:"sha256"`
}

type omittedJSON struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
}

func (a *app) inspect(ctx context.Context, arg, target, cwd string) error {
	ask, err := parseAsk(target, cwd)
	if err != nil {
		return err
	}
	if ask.target.Local() {
		return a.inspectHere(ctx, arg, ask)
	}
	if isPath(arg) && !path.IsAbs(arg) {
		return &cliError{code: "usage", exit: exitUsage, err: fmt.Errorf("%s: not an absolute path on the target", display.Quote(arg)), hint: "a path on a target starts with a slash"}
	}
	done := a.progress("asking " + display.Quote(target))
	out, err := a.inspectThere(ctx, arg, target, ask)
	done()
	if err != nil {
		return err
	}
	a.sayInspect(out)
	return nil
}

// inspectThere describes what a name or path means to a conversation on a target.
func (a *app) inspectThere(ctx context.Context, arg, target string, ask catalogAsk) (inspectJSON, error) {
	var err error
	if ask.reached, err = a.reach(ctx, ask.target); err != nil {
		return inspectJSON{}, aboutTarget(target, err)
	}
	defer ask.reached.conn.Close()
	if isPath(arg) {
		return a.describeDistant(ctx, target, ask.reached, arg)
	}
	c, err := a.catalog(ctx, ask)
	if err != nil {
		return inspectJSON{}, aboutTarget(target, err)
	}
	s := pick(c, arg)
	if s == nil {
		return inspectJSON{}, notNamed(c, arg, "punnet list "+display.Quote(target)+" shows the names that there are")
	}
	if !s.OnHost {
		a.noteUntrusted(s)
		return a.describeDistant(ctx, target, ask.reached, s.Path)
	}
	src, err := a.openSkill(filepath.FromSlash(s.Path))
	if err != nil {
		return inspectJSON{}, err
	}
	defer src.Close()
	return a.describe(ctx, src)
}

// inspectHere shows a skill of this machine.
func (a *app) inspectHere(ctx context.Context, arg string, ask catalogAsk) error {
	if ask.dir != "" && !isPath(arg) {
		c, err := a.catalog(ctx, ask)
		if err != nil {
			return err
		}
		a.named = c
	}
	paths, err := a.locate(ctx, []string{arg})
	if err != nil {
		return err
	}
	return a.inspectPath(ctx, paths[0])
}

func (a *app) inspectPath(ctx context.Context, path string) error {
	src, err := a.openSkill(path)
	if err != nil {
		return err
	}
	defer src.Close()
	out, err := a.describe(ctx, src)
	if err != nil {
		return err
	}
	a.sayInspect(out)
	return nil
}

// describe reads a skill, wherever it is.
func (a *app) describe(ctx context.Context, src *bundle.Source) (inspectJSON, error) {
	tree, report, p, err := a.scanSkill(ctx, src)
	if err != nil {
		return inspectJSON{}, aboutSkill(src, err)
	}
	sum := sha256.Sum256(tree.SkillFile)
	out := inspectJSON{
		SchemaVersion: schemaVersion,
		Name:          p.skill.Name, Description: p.skill.Description,
		Digest: tree.Manifest.Digest().String(), Path: src.Path,
		Files: []fileJSON{}, Bytes: tree.Bytes,
		InstructionsSHA256: hex.EncodeToString(sum[:]),
		Omitted:            []omittedJSON{}, Warnings: []diagnostic{},
	}
	if a.profile.Rules.TextOnly { // what a session captures is the text itself
		body := string(p.skill.Body)
		out.Instructions = &body
	}
	for _, e := range tree.Manifest.Entries() {
		if e.Kind != bundle.Dir {
			out.Files = append(out.Files, fileJSON{
				Path: strings.TrimPrefix(e.Path, src.Name+"/"), Size: tree.Size(e.Path),
				Mode: fmt.Sprintf("%04o", e.Kind.Perm()), SHA256: hex.EncodeToString(e.SHA256[:]),
			})
		}
	}
	for _, f := range report.LeftOut() {
		out.Omitted = append(out.Omitted, omittedJSON{f.Path, string(f.Reason), f.Detail})
	}
	out.Warnings = append(out.Warnings, p.diagnostics...)
	// What was left out is told by itself.
	out.Warnings = append(out.Warnings, ownerWarnings(src, &bundle.Report{Warnings: report.Warnings})...)
	return out, nil
}

func (a *app) sayInspect(out inspectJSON) {
	if a.json {
		a.printJSON(out)
	} else {
		a.showInspect(out)
	}
}

func (a *app) showInspect(o inspectJSON) {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "name\t%s\n", display.Quote(o.Name))
	fmt.Fprintf(w, "description\t%s\n", display.Quote(o.Description))
	fmt.Fprintf(w, "digest\t%s\n", o.Digest)
	fmt.Fprintf(w, "path\t%s\n", display.Quote(o.Path))
	fmt.Fprintf(w, "size\t%s, %s\n", plural(len(o.Files), "file"), size(o.Bytes))
	fmt.Fprintf(w, "instructions\tsha256 %s\n", o.InstructionsSHA256)
	w.Flush()
	fmt.Fprintln(a.stdout, "\nfiles")
	w = tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, f := range o.Files {
		fmt.Fprintf(w, "  %s\t%s\t  %s\n", f.Mode, size(f.Size), display.Quote(f.Path))
	}
	w.Flush()
	if len(o.Omitted) > 0 {
		fmt.Fprintln(a.stdout, "\nleft out")
		for _, f := range o.Omitted {
			fmt.Fprintf(a.stdout, "  %s: %s\n", display.Quote(f.Path), f.Detail)
		}
	}
	if o.Instructions != nil {
		// Markdown goes to the terminal line by line, each made safe on its own.
		fmt.Fprintln(a.stdout, "\ninstructions")
		for line := range strings.Lines(*o.Instructions) {
			fmt.Fprintf(a.stdout, "  %s\n", display.Quote(strings.TrimRight(line, "\r\n")))
		}
	}
	if len(o.Warnings) > 0 && !a.quiet {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint(a.stdout, yellow, "warnings"))
		for _, d := range o.Warnings {
			fmt.Fprintf(a.stdout, "  %s: %s\n", display.Quote(d.Path), diagnosticText(d))
		}
	}
}

// describeDistant reads a skill that is on a target.
func (a *app) describeDistant(ctx context.Context, target string, r *reached, at string) (inspectJSON, error) {
	files, err := r.conn.Files(ctx)
	if err != nil {
		return inspectJSON{}, aboutTarget(target, err)
	}
	src, d, err := environment.OpenSkill(files, at, a.profile.Rules)
	if err != nil {
		ce := &cliError{code: errorCode(err), exit: connectionExit(err), err: fmt.Errorf("%s: %s: %w", display.Quote(target), display.Quote(at), fault.Bare(err))}
		if errors.Is(err, fs.ErrNotExist) {
			ce.hint = "give the path of a directory on the target that holds a SKILL.md"
		}
		return inspectJSON{}, ce
	}
	out, err := a.describe(ctx, src)
	if lost := d.Alive(); lost != nil {
		return inspectJSON{}, aboutTarget(target, lost)
	}
	if err != nil { // with another hint than for a directory here
		return inspectJSON{}, &cliError{code: errorCode(err), err: &targetError{target, err}}
	}
	return out, nil
}
