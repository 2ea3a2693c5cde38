package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/skill"
)

func (a *app) enableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "enable ROOT",
		Short: "Trust a directory of skills, for profiles that ask for it",
		Long: `Enable records a directory of skills, by its absolute path, in the profile's file of
enabled roots. Sessions that begin later look for skills there before anywhere else.
Entries and keys of that file that others wrote stay as they are.`,
		Example: "  punnet --profile headlesscode enable .agents/skills",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.enable(cmd.Context(), args[0]) },
	}
}

func (a *app) disableCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "disable ROOT",
		Short: "Take back what enable did",
		Long: `Disable takes a directory out of the profile's file of enabled roots. The directory need
not exist any more; nothing in it is touched.`,
		Example: "  punnet --profile headlesscode disable .agents/skills",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.disable(cmd.Context(), args[0]) },
	}
}

// enabledFile returns where the profile's file of enabled roots is.
func (a *app) enabledFile() (string, error) {
	file, err := a.profile.EnabledFile(a.env)
	if errors.Is(err, profile.ErrNoRoot) {
		return "", &cliError{code: "no-root", err: fmt.Errorf("the profile %s has no roots that are enabled one by one", display.Quote(a.profile.Name)),
			hint: "skills go to " + a.collectionPlaces() + "; --profile headlesscode has such roots"}
	}
	return file, err
}

func (a *app) enable(ctx context.Context, arg string) error {
	file, err := a.enabledFile()
	if err != nil {
		return err
	}
	root, err := filepath.Abs(arg)
	if err != nil {
		return err
	}
	info, err := os.Stat(root)
	if err != nil {
		return &cliError{err: fmt.Errorf("%s: %w", display.Quote(root), fault.Bare(err)), hint: "give the path of a directory that exists and holds skills"}
	}
	if !info.IsDir() {
		return &cliError{code: "not-a-directory", err: fmt.Errorf("%s: it is not a directory", display.Quote(root)), hint: "give the path of a directory that holds skills"}
	}
	if _, err := os.Lstat(filepath.Join(root, skill.FileName)); err == nil {
		return &cliError{code: "not-a-collection", err: fmt.Errorf("%s: it is a skill, not a directory of skills", display.Quote(root)), hint: "enable the directory that it is in, or import it"}
	}
	added, err := profile.Enable(ctx, file, root)
	if err != nil {
		return notChanged(err)
	}
	a.sayEnabled(root, file, true, added)
	return nil
}

func (a *app) disable(ctx context.Context, arg string) error {
	file, err := a.enabledFile()
	if err != nil {
		return err
	}
	root, err := filepath.Abs(arg)
	if err != nil {
		return err
	}
	removed, err := profile.Disable(ctx, file, root)
	if err != nil {
		return notChanged(err)
	}
	a.sayEnabled(root, file, false, removed)
	return nil
}

// notChanged is the error of a file of enabled roots that stays as it is.
func notChanged(err error) error {
	if errors.Is(err, profile.ErrNotRoots) {
		return &cliError{err: err, hint: profile.MendEnabled}
	}
	return named(err)
}

func (a *app) sayEnabled(root, file string, enabled, changed bool) {
	if a.json {
		a.printJSON(struct {
			SchemaVersion int    `json:"schemaVersion"`
			Root          string `json:"root"`
			Enabled       bool   `json:"enabled"`
			Changed       bool   `json:"changed"`
			File          string `json:"file"`
		}{schemaVersion, root, enabled, changed, file})
		return
	}
	what := "disabled"
	if enabled {
		what = "enabled"
	}
	switch {
	case changed:
		what = a.paint(a.stdout, green, what)
	case enabled:
		what = "enabled already"
	default:
		what = "was not enabled"
	}
	fmt.Fprintf(a.stdout, "%s %s\n", what, display.Quote(root))
	a.log.Debug("enabled roots", "file", file)
}
