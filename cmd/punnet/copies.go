package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/remote"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status TARGET",
		Short: "List the copies on a target, each of them checked",
		Long: `Status lists what is in the target's cache. Every copy is read there and compared with its
digest. "pinned" copies can be repaired from this machine's store; "foreign" entries are
not of Punnet's making and are never touched. It exits with 5 when a copy is damaged.

` + targetHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.status(cmd.Context(), args[0]) },
	}
}

type copyJSON struct {
	Digest string `json:"digest,omitempty"`
	Name   string `json:"name"`
	State  string `json:"state"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Pinned bool   `json:"pinned"`
	Used   string `json:"used,omitempty"`
}

func (a *app) status(ctx context.Context, target string) error {
	dir, copies, err := a.listCopies(ctx, target)
	if err != nil {
		return err
	}
	store, err := a.store()
	if err != nil {
		return err
	}
	out := struct {
		SchemaVersion int        `json:"schemaVersion"`
		Target        string     `json:"target"`
		Cache         string     `json:"cache"`
		Bundles       []copyJSON `json:"bundles"`
	}{schemaVersion, target, dir, []copyJSON{}}
	damaged := false
	for _, c := range copies {
		j := copyJSON{Name: c.Name, State: string(c.State), Files: c.Files, Bytes: c.Bytes}
		if c.State != remote.Foreign {
			j.Digest = c.Digest.String()
			if b, err := store.Open(c.Digest); err == nil {
				j.Pinned = true
				b.Close()
			}
		}
		if !c.Used.IsZero() {
			j.Used = c.Used.UTC().Format(time.RFC3339)
		}
		damaged = damaged || c.State == remote.Damaged
		out.Bundles = append(out.Bundles, j)
	}
	if a.json {
		a.printJSON(out)
	} else {
		a.showStatus(dir, out.Bundles)
	}
	if damaged {
		return found(exitProblems)
	}
	return nil
}

func (a *app) showStatus(dir string, copies []copyJSON) {
	fmt.Fprintf(a.stderr, "cache %s: %s\n", display.Quote(dir), plural(len(copies), "item"))
	if len(copies) == 0 {
		return
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STATE\tSKILL\tDIGEST\tFILES\tSIZE\tPINNED HERE\tLAST USED")
	for _, c := range copies {
		if c.State == string(remote.Foreign) {
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\n", c.State, display.Quote(c.Name))
			continue
		}
		pinned := "no"
		if c.Pinned {
			pinned = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", c.State, display.Quote(c.Name), c.Digest[:12], c.Files, size(c.Bytes), pinned, c.Used)
	}
	w.Flush()
}

// listCopies returns everything in a target's cache.
func (a *app) listCopies(ctx context.Context, target string) (string, []remote.Copy, error) {
	t, err := parseTarget(target)
	if err != nil {
		return "", nil, err
	}
	done := a.progress("checking the copies on " + display.Quote(target))
	defer done()
	r, err := a.reach(ctx, t)
	if err != nil {
		return "", nil, aboutTarget(target, err)
	}
	defer r.conn.Close()
	dir, copies, err := r.cache.List(ctx)
	if err != nil {
		return "", nil, aboutTarget(target, err)
	}
	return dir, copies, nil
}

func (a *app) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [TARGET] [DIGEST...]",
		Short: "Read copies in full and compare them with their digests",
		Long: `Verify reads every copy on the target, or those named, and compares names, types, modes and
content with their digests. Without a TARGET it verifies the host store. It exits with 5 when
one is damaged, or when one that was named is absent.

` + targetHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.storeVerify(cmd.Context(), nil)
			}
			if _, err := bundle.ParseDigest(args[0]); err == nil {
				return a.storeVerify(cmd.Context(), args)
			}
			return a.verifyTarget(cmd.Context(), args[0], args[1:])
		},
	}
}

func (a *app) verifyTarget(ctx context.Context, target string, digests []string) error {
	named := make([]bundle.Digest, len(digests))
	for i, s := range digests {
		var err error
		if named[i], err = bundle.ParseDigest(s); err != nil {
			return &cliError{code: "usage", exit: exitUsage, err: err, hint: "punnet status --json shows the digests in full"}
		}
	}
	_, copies, err := a.listCopies(ctx, target)
	if err != nil {
		return err
	}
	if len(named) > 0 {
		copies = only(copies, named)
	}
	out := struct {
		SchemaVersion int            `json:"schemaVersion"`
		Target        string         `json:"target"`
		Bundles       []verifiedJSON `json:"bundles"`
	}{schemaVersion, target, []verifiedJSON{}}
	bad := 0
	for _, c := range copies {
		if c.State == remote.Foreign {
			continue
		}
		v := verifiedJSON{Digest: c.Digest.String(), Name: c.Name, State: string(c.State)}
		if c.State != remote.Whole {
			bad++
		}
		out.Bundles = append(out.Bundles, v)
		if !a.json {
			a.showVerified(v)
		}
	}
	if a.json {
		a.printJSON(out)
	} else {
		fmt.Fprintf(a.stderr, "%s verified on %s, %d not whole\n", plural(len(out.Bundles), "bundle"), display.Quote(target), bad)
		if bad > 0 {
			fmt.Fprintln(a.stderr, "hint: push the skill again to repair its copy")
		}
	}
	if bad > 0 {
		return found(exitProblems)
	}
	return nil
}

// only returns the copies of the named digests, those that are not there as absent.
func only(copies []remote.Copy, named []bundle.Digest) []remote.Copy {
	byDigest := map[bundle.Digest]remote.Copy{}
	for _, c := range copies {
		if c.State != remote.Foreign {
			byDigest[c.Digest] = c
		}
	}
	var out []remote.Copy
	for _, d := range named {
		c, ok := byDigest[d]
		if !ok {
			c = remote.Copy{Digest: d, State: remote.Absent}
		}
		out = append(out, c)
	}
	return out
}

func (a *app) pruneCommand() *cobra.Command {
	var all, dryRun bool
	var olderThan string
	cmd := &cobra.Command{
		Use:   "prune TARGET",
		Short: "Remove copies from a target that were not used for a while",
		Long: `Prune removes copies from the target's cache that nobody has used for 30 days, or as long as
--older-than says, by the target's clock. They can be published again from the host store.
Foreign entries stay. A conversation that still works with a copy there would miss it.

` + targetHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			age, err := parseAge(olderThan)
			if err != nil {
				return &cliError{code: "usage", exit: exitUsage, err: err, hint: "write it as 30d, 12h or 90m"}
			}
			if all {
				if cmd.Flags().Changed("older-than") {
					return &cliError{code: "usage", exit: exitUsage, err: errors.New("--all and --older-than exclude each other")}
				}
				age = 0
			}
			return a.prune(cmd.Context(), args[0], remote.PruneOptions{OlderThan: age, DryRun: dryRun})
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "30d", "remove copies not used for this `AGE`: 30d, 12h")
	cmd.Flags().BoolVar(&all, "all", false, "remove every copy")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "say what would be removed, and remove nothing")
	return cmd
}

// parseAge reads a duration that may be in days.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("--older-than %q is not an age", s)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--older-than %q is not an age", s)
	}
	return d, nil
}

type removedJSON struct {
	Digest  string     `json:"digest"`
	Name    string     `json:"name"`
	Removed bool       `json:"removed"`
	Error   *errorJSON `json:"error,omitempty"`
}

func (a *app) prune(ctx context.Context, target string, o remote.PruneOptions) error {
	t, err := parseTarget(target)
	if err != nil {
		return err
	}
	r, err := a.reach(ctx, t)
	if err != nil {
		return aboutTarget(target, err)
	}
	defer r.conn.Close()
	removed, err := r.cache.Prune(ctx, o)
	if err != nil {
		return aboutTarget(target, err)
	}
	out := struct {
		SchemaVersion int           `json:"schemaVersion"`
		Target        string        `json:"target"`
		DryRun        bool          `json:"dryRun,omitempty"`
		Bundles       []removedJSON `json:"bundles"`
	}{schemaVersion, target, o.DryRun, []removedJSON{}}
	failed := 0
	for _, c := range removed {
		j := removedJSON{Digest: c.Digest.String(), Name: c.Name, Removed: c.Err == nil && !o.DryRun}
		if c.Err != nil {
			failed++
			e := describeError(c.Err)
			j.Error = &e
		}
		out.Bundles = append(out.Bundles, j)
	}
	if a.json {
		a.printJSON(out)
	} else {
		a.showRemoved(out.Bundles, o.DryRun)
	}
	switch {
	case failed == 0:
		return nil
	case failed < len(removed):
		return found(exitSome)
	}
	return found(exitFailed)
}

func (a *app) showRemoved(bundles []removedJSON, dryRun bool) {
	what := "removed"
	if dryRun {
		what = "would remove"
	}
	for _, b := range bundles {
		if b.Error != nil {
			a.complain("prune", fmt.Sprintf("%s: %s", b.Digest, b.Error.Message), b.Error.Hint)
			continue
		}
		fmt.Fprintf(a.stdout, "%s %s %s\n", what, b.Digest, display.Quote(b.Name))
	}
	if len(bundles) == 0 && !a.quiet {
		fmt.Fprintln(a.stderr, "nothing to remove")
	}
}
