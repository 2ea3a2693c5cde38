package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
)

// listFlags are the flags of list.
type listFlags struct {
	cwd     string
	all     bool
	trusted bool
}

func (a *app) listCommand() *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:   "list [TARGET]",
		Short: "Show the skills that a conversation would see",
		Long: `List shows the catalog of a conversation that runs on this machine, or on TARGET: each
skill's name, the kind of collection that it comes from, and its description. Of several
skills of one name the first counts, nearest project first; --all shows the others too,
with what shadows them, and the skills of projects that are not trusted. Problems are
told below, on standard error; they keep no other skill out.

` + targetHelp + `
The target is only read from.`,
		Example: "  punnet list\n  punnet list devbox --cwd /home/dev/project --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := ""
			if len(args) > 0 {
				target = args[0]
			}
			return a.list(cmd.Context(), target, flags)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringVar(&flags.cwd, "cwd", "", "working `DIR` of the conversation (default here the working directory, on a target the home directory)")
	f.BoolVar(&flags.all, "all", false, "also show skills that are shadowed, and those of untrusted projects")
	f.BoolVar(&flags.trusted, "trusted", false, "as if the project's repository were trusted")
	return cmd
}

type listJSON struct {
	SchemaVersion int          `json:"schemaVersion"`
	Skills        []listedJSON `json:"skills"`
	Diagnostics   []diagnostic `json:"diagnostics"`
}

type listedJSON struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Scope       string       `json:"scope"`
	Path        string       `json:"path"`
	RealPath    string       `json:"realPath"`
	State       string       `json:"state"`
	ShadowedBy  string       `json:"shadowedBy"`
	Warnings    []diagnostic `json:"warnings"`
}

func (a *app) list(ctx context.Context, target string, flags listFlags) error {
	ask, err := parseAsk(target, flags.cwd)
	if err != nil {
		return err
	}
	ask.trusted = flags.trusted
	done := func() {}
	if !ask.target.Local() {
		done = a.progress("asking " + display.Quote(target))
	}
	c, err := a.catalog(ctx, ask)
	done()
	if err != nil {
		if ask.target.Local() {
			return err
		}
		return aboutTarget(target, err)
	}
	if a.json {
		a.printJSON(listOf(c, flags.all))
		return nil
	}
	a.showList(c, target, flags.all)
	return nil
}

// parseAsk reads a TARGET argument, "" for this machine, and a --cwd flag.
func parseAsk(target, cwd string) (catalogAsk, error) {
	ask := catalogAsk{dir: cwd}
	if target == "" {
		return ask, nil
	}
	var err error
	if ask.target, err = parseTarget(target); err != nil {
		return ask, err
	}
	if !ask.target.Local() && cwd != "" && !path.IsAbs(cwd) {
		return ask, &cliError{code: "usage", exit: exitUsage, err: errors.New("--cwd is not an absolute path on the target"), hint: "a working directory on a target starts with a slash"}
	}
	return ask, nil
}

// listOf returns a catalog for JSON.
func listOf(c *discovery.Catalog, all bool) listJSON {
	out := listJSON{schemaVersion, []listedJSON{}, []diagnostic{}}
	for _, s := range c.Skills {
		if s.State != discovery.Visible && !all {
			continue
		}
		out.Skills = append(out.Skills, listedJSON{
			Name: s.Name, Description: s.Description, Scope: s.Scope, Path: s.Path, RealPath: s.Real,
			State: string(s.State), ShadowedBy: s.ShadowedBy, Warnings: append([]diagnostic{}, s.Warnings...),
		})
	}
	out.Diagnostics = append(out.Diagnostics, c.Diagnostics...)
	return out
}

// showList prints the catalog of a conversation on target for people: skills on standard output,
// problems and counts below.
func (a *app) showList(c *discovery.Catalog, target string, all bool) {
	rows := [][3]string{{"NAME", "SOURCE", "DESCRIPTION"}}
	count := map[discovery.State]int{}
	for _, s := range c.Skills {
		if count[s.State]++; s.State != discovery.Visible && !all {
			continue
		}
		about := display.Quote(oneLine(s.Description))
		switch s.State {
		case discovery.Shadowed:
			about = "shadowed by " + display.Quote(s.ShadowedBy)
		case discovery.Untrusted:
			about = "untrusted: " + about
		}
		rows = append(rows, [3]string{display.Quote(s.Name), display.Quote(s.Scope), about})
	}
	if len(rows) > 1 {
		a.printRows(rows)
	}
	if a.quiet {
		return
	}
	a.showProblems(c.Diagnostics, target)
	fmt.Fprintln(a.stderr, a.countSkills(count, len(c.Diagnostics), all))
}

// oneLine returns s with a single space where it has white space, and none around it.
func oneLine(s string) string {
	after := byte(' ')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == ' ' && after == ' ' {
			return strings.Join(strings.Fields(s), " ")
		}
		after = s[i]
	}
	return strings.TrimSuffix(s, " ")
}

// printRows prints rows in columns. The last is cut where a terminal is too narrow for it.
func (a *app) printRows(rows [][3]string) {
	var wide [2]int
	for _, r := range rows {
		for i := range wide {
			wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
		}
	}
	left := 0
	if width := terminalWidth(a.stdout); width > 0 {
		left = max(width-wide[0]-wide[1]-4, 20)
	}
	b := bufio.NewWriterSize(a.stdout, 32<<10)
	for _, r := range rows {
		for i := range wide {
			b.WriteString(r[i])
			for range wide[i] - utf8.RuneCountInString(r[i]) + 2 {
				b.WriteByte(' ')
			}
		}
		b.WriteString(cut(r[2], left))
		b.WriteByte('\n')
	}
	b.Flush()
}

// cut shortens s to n characters; 0 leaves it as it is.
func cut(s string, n int) string {
	if n <= 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// terminalWidth returns how many columns the terminal w has, 0 where w is none.
func terminalWidth(w io.Writer) int {
	if out, ok := w.(*output); ok {
		w = out.w
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// showProblems prints what a person should know of collections, on standard error. target is the
// machine that the conversation runs on, where that is another.
func (a *app) showProblems(ds []diagnostic, target string) {
	for _, d := range ds {
		where := ""
		switch d.Machine {
		case discovery.OnHost:
			where = "this machine: "
		case discovery.InEnvironment:
			where = display.Quote(target) + ": "
		}
		fmt.Fprintf(a.stderr, "%s %s%s: %s [%s]\n", a.paintSeverity(a.stderr, d.Severity),
			where, display.Quote(d.Path), diagnosticText(d), d.Code)
		if d.Hint != "" {
			fmt.Fprintf(a.stderr, "  hint: %s\n", d.Hint)
		}
	}
}

// countSkills says how many skills there are, and how to see those that are not shown.
func (a *app) countSkills(count map[discovery.State]int, problems int, all bool) string {
	line := plural(count[discovery.Visible], "skill")
	if len(count) == 0 && problems == 0 {
		return line + "; looked in " + a.collectionPlaces()
	}
	var rest []string
	for _, s := range []discovery.State{discovery.Shadowed, discovery.Untrusted} {
		if n := count[s]; n > 0 {
			rest = append(rest, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(rest) > 0 {
		line += "; " + strings.Join(rest, " and ")
		if !all {
			line += ", shown with --all"
		}
	}
	if problems > 0 {
		line += "; " + plural(problems, "problem")
	}
	return line
}

// absolute returns a path of this machine as an absolute one, as it was given where it has no such form.
func absolute(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}
