package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/session"
)

func (a *app) storeGcCommand() *cobra.Command {
	var days int
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc --keep-days N",
		Short: "Remove pinned bundles that no conversation refers to",
		Long: `Gc removes the bundles that no conversation here refers to, anywhere in its history, and that were last
pinned more than N days ago; with 0 all that no conversation refers to. It reads the conversations
of all profiles, and removes nothing when one of them cannot be read. Loads and pushes that are
going on are waited for. A harness that keeps its conversations itself is not asked: keep as many
days as its conversations last.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 0 {
				return &cliError{code: "usage", exit: exitUsage, err: errors.New("--keep-days is negative")}
			}
			return a.storeGc(cmd.Context(), days, dryRun)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().IntVar(&days, "keep-days", 0, "keep what was pinned in the last `N` days")
	cmd.MarkFlagRequired("keep-days")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "say what would go, and remove nothing")
	return cmd
}

type collectedJSON struct {
	Digest  string    `json:"digest"`
	Name    string    `json:"name"`
	Files   int       `json:"files"`
	Bytes   int64     `json:"bytes"`
	Pinned  time.Time `json:"pinned"`
	Removed bool      `json:"removed"`
}

// maxKeepDays is as good as for ever, and few enough to count back from any date.
const maxKeepDays = 100_000

func (a *app) storeGc(ctx context.Context, days int, dryRun bool) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	files, err := a.conversations()
	if err != nil {
		return err
	}
	kept := 0
	// Asked while nobody is between a pin and the record of it.
	pick := func(ctx context.Context, all []bundle.Info) ([]bundle.Info, error) {
		refs, err := session.References(ctx, files)
		if err != nil {
			return nil, err
		}
		before := time.Now().AddDate(0, 0, -min(days, maxKeepDays))
		var picked []bundle.Info
		for _, i := range all {
			if !refs[i.Digest] && (days == 0 || i.Pinned.Before(before)) {
				picked = append(picked, i)
			}
		}
		kept = len(all) - len(picked)
		return picked, nil
	}
	var gone []bundle.Info
	if dryRun {
		var all []bundle.Info
		if all, err = store.List(ctx); err == nil {
			gone, err = pick(ctx, all)
		}
	} else {
		done := a.progress("waiting for the store")
		gone, err = store.Collect(ctx, pick)
		done()
	}
	if errors.Is(err, session.ErrDamaged) || errors.Is(err, session.ErrNewer) {
		e := describeError(err)
		return &cliError{code: e.Code, err: fmt.Errorf("%w; nothing was removed, for nobody knows what it refers to", err), hint: e.Hint}
	}
	if err != nil && (a.json || len(gone) == 0) {
		return err
	}
	a.showCollected(store, gone, kept, dryRun)
	return err
}

// showCollected tells what went, or would go.
func (a *app) showCollected(store *bundle.Store, gone []bundle.Info, kept int, dryRun bool) {
	out := struct {
		SchemaVersion int             `json:"schemaVersion"`
		Store         string          `json:"store"`
		Bundles       []collectedJSON `json:"bundles"`
		Bytes         int64           `json:"bytes"`
		Kept          int             `json:"kept"`
	}{SchemaVersion: schemaVersion, Store: store.Dir(), Bundles: []collectedJSON{}, Kept: kept}
	word := "removed"
	if dryRun {
		word = "would remove"
	}
	for _, i := range gone {
		out.Bytes += i.Bytes
		out.Bundles = append(out.Bundles, collectedJSON{i.Digest.String(), i.Name, i.Files, i.Bytes, i.Pinned.UTC().Truncate(time.Second), !dryRun})
		if !a.json {
			name := display.Quote(i.Name)
			if i.Err != nil {
				name = "(damaged)"
			}
			fmt.Fprintf(a.stdout, "%s %s %s (%s, pinned %s)\n", word, i.Digest.Short(), name, size(i.Bytes), i.Pinned.Local().Format(time.DateTime))
		}
	}
	if a.json {
		a.printJSON(out)
		return
	}
	a.note(fmt.Sprintf("%s %s, %s; %d kept", word, plural(len(gone), "bundle"), size(out.Bytes), kept))
}
