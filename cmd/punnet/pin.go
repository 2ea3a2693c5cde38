package main

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

func (a *app) pinCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pin SKILL...",
		Short: "Snapshot skills into the host store",
		Long: `Pin puts each skill into the host store as an immutable bundle, named by the digest of
its content. Pinning the same content again changes nothing; a bundle that was damaged
in the store is replaced. SKILL is a name in this machine's catalog, or a path, which
has a slash in it or is a dot.`,
		Example:           "  punnet pin release\n  punnet pin ./release ~/skills/review",
		Args:              some("SKILL"),
		ValidArgsFunction: a.completeSkills(0, maxCompleted),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.pin(cmd.Context(), args)
		},
	}
}

// pinJSON is one pinned skill.
type pinJSON struct {
	Skill    string       `json:"skill"`
	Digest   string       `json:"digest"`
	Path     string       `json:"path"`
	Files    int          `json:"files"`
	Bytes    int64        `json:"bytes"`
	New      bool         `json:"new"`
	Mended   bool         `json:"mended,omitempty"`
	Warnings []diagnostic `json:"warnings,omitempty"`
}

// failedJSON is one skill that failed.
type failedJSON struct {
	Skill string `json:"skill"`
	errorJSON
}

// outcome returns what the exit code and the error say of a verb on several skills.
func outcome(done int, failed []failedJSON) (exit int, err *errorJSON) {
	switch {
	case len(failed) == 0:
		return exitDone, nil
	case done == 0:
		return exitFailed, &failed[0].errorJSON
	}
	return exitSome, nil
}

// pinners is how many skills are pinned at once. Most of a pin is waiting for the disk, and a file
// system that is asked to sync several files at once writes them together.
const pinners = 8

// pinResult is what came of one SKILL argument.
type pinResult struct {
	pin pinJSON
	err error
}

// pinEach pins what each path names, several at once, and yields the results in the order of the
// paths. It must be ranged over to its end.
func (a *app) pinEach(ctx context.Context, store *bundle.Store, paths []string) iter.Seq2[int, pinResult] {
	results := make([]chan pinResult, len(paths))
	for i := range results {
		results[i] = make(chan pinResult, 1)
	}
	go func() {
		var g errgroup.Group
		g.SetLimit(pinners)
		for i, path := range paths {
			g.Go(func() error {
				var r pinResult
				if r.err = ctx.Err(); r.err == nil {
					r.pin, r.err = a.pinSkill(ctx, store, path)
				}
				results[i] <- r
				return nil
			})
		}
	}()
	return func(yield func(int, pinResult) bool) {
		for i := range results {
			if !yield(i, <-results[i]) {
				return
			}
		}
	}
}

func (a *app) pin(ctx context.Context, args []string) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	paths, err := a.locate(ctx, args)
	if err != nil {
		return err
	}
	out := struct {
		SchemaVersion int          `json:"schemaVersion"`
		Error         *errorJSON   `json:"error,omitempty"`
		Pins          []pinJSON    `json:"pins"`
		Failed        []failedJSON `json:"failed,omitempty"`
	}{SchemaVersion: schemaVersion, Pins: []pinJSON{}}
	for i, r := range a.pinEach(ctx, store, paths) {
		if ctx.Err() != nil {
			continue // each pin clears away what it has begun, and is waited for
		}
		if r.err != nil {
			f := failedJSON{args[i], describeError(r.err)}
			out.Failed = append(out.Failed, f)
			if !a.json {
				a.complain("pin", f.Message, f.Hint)
			}
			continue
		}
		out.Pins = append(out.Pins, r.pin)
		a.warn(r.pin.Warnings)
		if !a.json {
			a.showPin(r.pin)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit int
	exit, out.Error = outcome(len(out.Pins), out.Failed)
	if a.json {
		a.printJSON(out)
	}
	if exit != exitDone {
		return found(exit)
	}
	return nil
}

// pinSkill pins what one SKILL argument names. Its error names the skill.
func (a *app) pinSkill(ctx context.Context, store *bundle.Store, arg string) (pinJSON, error) {
	src, err := a.openSkill(arg)
	if err != nil {
		return pinJSON{}, err
	}
	defer src.Close()
	var p parsed
	pinned, report, err := store.Pin(ctx, src, a.profile.Rules, func(t *bundle.Tree) error {
		p = a.judge(t.SkillFile, filepath.Join(src.Path, skill.FileName), src.Name)
		return p.err()
	})
	if err != nil {
		return pinJSON{}, aboutSkill(src, err)
	}
	warnings := append(p.diagnostics, ownerWarnings(src, report)...)
	a.log.Debug("pinned", "skill", src.Name, "digest", pinned.Digest.String(), "new", pinned.New, "mended", pinned.Mended)
	return pinJSON{
		Skill: pinned.Name, Digest: pinned.Digest.String(), Path: pinned.Path,
		Files: pinned.Files, Bytes: pinned.Bytes, New: pinned.New, Mended: pinned.Mended, Warnings: warnings,
	}, nil
}

func (a *app) showPin(p pinJSON) {
	what := "present"
	switch {
	case p.New:
		what = "pinned"
	case p.Mended:
		what = "mended"
	}
	fmt.Fprintf(a.stdout, "%s %s (%s, %s)\n  %s\n", a.paint(a.stdout, green, what), display.Quote(p.Skill),
		plural(p.Files, "file"), size(p.Bytes), display.Quote(p.Path))
}
