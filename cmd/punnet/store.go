package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
)

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look after the host store of pinned bundles",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "ls",
		Short: "List the pinned bundles",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.storeLs(cmd.Context()) },
	}, &cobra.Command{
		Use:   "verify [DIGEST...]",
		Short: "Read pinned bundles and compare them with their digests",
		Long: `Verify reads the content, names, types and modes of every bundle in the host store, or
of those named, and compares them with their digests. It exits with 5 when one is
damaged. Pinning the same skill again mends it.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.storeVerify(cmd.Context(), args) },
	}, a.storeGcCommand())
	return cmd
}

type storedJSON struct {
	Digest string    `json:"digest"`
	Name   string    `json:"name"`
	Path   string    `json:"path"`
	Files  int       `json:"files"`
	Bytes  int64     `json:"bytes"`
	Pinned time.Time `json:"pinned"`
	State  string    `json:"state,omitempty"` // "damaged" where so much was seen without reading it
}

func (a *app) storeLs(ctx context.Context) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	infos, err := store.List(ctx)
	if err != nil {
		return err
	}
	out := struct {
		SchemaVersion int          `json:"schemaVersion"`
		Store         string       `json:"store"`
		Bundles       []storedJSON `json:"bundles"`
	}{schemaVersion, store.Dir(), []storedJSON{}}
	for _, i := range infos {
		s := storedJSON{
			Digest: i.Digest.String(), Name: i.Name, Path: store.Path(i.Digest, i.Name),
			Files: i.Files, Bytes: i.Bytes, Pinned: i.Pinned.UTC().Truncate(time.Second),
		}
		if i.Err != nil {
			s.State = stateDamaged
		}
		out.Bundles = append(out.Bundles, s)
	}
	if a.json {
		a.printJSON(out)
		return nil
	}
	if len(out.Bundles) == 0 {
		fmt.Fprintf(a.stderr, "no bundles in %s\n", display.Quote(store.Dir()))
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DIGEST\tSKILL\tFILES\tSIZE\tPINNED")
	for i, s := range out.Bundles {
		name := display.Quote(s.Name)
		if s.State == stateDamaged {
			name = "(damaged)"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", infos[i].Digest.Short(), name, s.Files, size(s.Bytes), s.Pinned.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// The states of a bundle in JSON.
const (
	stateOK      = "ok"
	stateDamaged = "damaged"
)

type verifiedJSON struct {
	Digest string       `json:"digest"`
	Name   string       `json:"name"`
	State  string       `json:"state"`
	Damage []damageJSON `json:"damage,omitempty"`
}

type damageJSON struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

func (a *app) storeVerify(ctx context.Context, args []string) error {
	store, err := a.store()
	if err != nil {
		return err
	}
	infos, err := chosen(ctx, store, args)
	if err != nil {
		return err
	}
	out := struct {
		SchemaVersion int            `json:"schemaVersion"`
		Target        string         `json:"target"`
		Bundles       []verifiedJSON `json:"bundles"`
	}{schemaVersion, "store", []verifiedJSON{}}
	damagedOnes := 0
	for _, i := range infos {
		v := verifiedJSON{Digest: i.Digest.String(), Name: i.Name, State: stateOK}
		err := store.Verify(ctx, i.Digest)
		if damaged, ok := errors.AsType[*bundle.DamagedError](err); ok {
			damagedOnes++
			v.State = stateDamaged
			for _, d := range damaged.Damage {
				v.Damage = append(v.Damage, damageJSON{d.Path, d.What})
			}
		} else if err != nil {
			return err
		}
		out.Bundles = append(out.Bundles, v)
		if !a.json {
			a.showVerified(v)
		}
	}
	if a.json {
		a.printJSON(out)
	} else {
		fmt.Fprintf(a.stderr, "%s verified, %d damaged\n", plural(len(out.Bundles), "bundle"), damagedOnes)
		if damagedOnes > 0 {
			fmt.Fprintln(a.stderr, "hint: pin the skill again to replace its damaged bundle, if its content is still the same")
		}
	}
	if damagedOnes > 0 {
		return found(exitProblems)
	}
	return nil
}

// shortestDigest is how many of a digest's first digits can stand for it.
const shortestDigest = 6

// chosen returns the store's bundles, or those whose digests, or unique beginnings of them, are named.
func chosen(ctx context.Context, store *bundle.Store, digests []string) ([]bundle.Info, error) {
	infos, err := store.List(ctx)
	if err != nil || len(digests) == 0 {
		return infos, err
	}
	var out []bundle.Info
	for _, s := range digests {
		var fit []bundle.Info
		for _, i := range infos {
			if len(s) >= shortestDigest && strings.HasPrefix(i.Digest.String(), s) {
				fit = append(fit, i)
			}
		}
		switch len(fit) {
		case 1:
			out = append(out, fit[0])
		case 0:
			return nil, &cliError{code: "not-found", err: fmt.Errorf("no bundle %s in the store: %w", display.Quote(s), fs.ErrNotExist), hint: "punnet store ls shows them"}
		default:
			return nil, &cliError{code: "usage", exit: exitUsage, err: fmt.Errorf("%d bundles in the store begin with %s", len(fit), display.Quote(s)), hint: "punnet store ls --json shows the digests in full"}
		}
	}
	return out, nil
}

func (a *app) showVerified(v verifiedJSON) {
	mark := a.paint(a.stdout, green, v.State)
	if v.State != stateOK {
		mark = a.paint(a.stdout, red, v.State)
	}
	fmt.Fprintf(a.stdout, "%s %s %s\n", v.Digest, mark, display.Quote(v.Name))
	for _, d := range v.Damage {
		fmt.Fprintf(a.stdout, "  %s: %s\n", display.Quote(d.Path), d.Message)
	}
}
