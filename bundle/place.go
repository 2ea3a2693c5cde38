package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/internal/display"
)

// TakenError is a name in a collection that belongs to something of other content.
type TakenError struct {
	Path string // what has the name: an absolute path, not quoted
}

// Error names the path.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is there already, with other content", display.Quote(e.Path))
}

// Placed is a skill that a collection holds, whole.
type Placed struct {
	Path string // its directory, absolute
	New  bool   // it was not there before
}

// Place copies a skill directory into the collection at dir, an absolute path, under its own name, as
// it was at one moment and with the modes of a bundle. The copy has its name whole or not at all, also
// after a crash, and what already has the name stays as it is: something of the same content is
// success, anything else a *TakenError. Of several processes that place skills in one collection each
// waits for the others.
//
// accept, where it is not nil, is shown each scan before anything is written, and its error ends the
// placing. The other errors, and the report, are those of Store.Pin.
func Place(ctx context.Context, dir string, src *Source, rules Rules, accept func(*Tree, *Report) error) (Placed, *Report, error) {
	var placed Placed
	report, err := scanAccepted(ctx, src, rules, accept, func(t *Tree) (err error) {
		placed, err = place(ctx, dir, t, rules)
		return err
	})
	return placed, report, err
}

// place gives the collection the tree, unless it has it.
func place(ctx context.Context, dir string, t *Tree, rules Rules) (Placed, error) {
	if err := atomicfile.MkdirAll(dir); err != nil {
		return Placed{}, fmt.Errorf("copy skill: %w", err)
	}
	// The lock lies beside the collection: what is in it is looked at for skills.
	lock := flock.New(filepath.Clean(dir) + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return Placed{}, fmt.Errorf("lock the collection: %w", err)
	}
	defer lock.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Placed{}, fmt.Errorf("copy skill: %w", err)
	}
	defer root.Close()
	sweep(root) // whoever left something unfinished is gone
	name := t.Manifest.Name()
	placed := Placed{Path: filepath.Join(dir, name)}
	if _, err := root.Lstat(name); err == nil {
		return placed, sameContent(ctx, placed.Path, t, rules)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return placed, fmt.Errorf("copy skill: %w", err)
	}
	// The copy is made a level deeper than skills are: one that is not finished is none.
	stage := atomicfile.TempName(stagePrefix)
	defer removeTree(root, stage)
	if err := makeDir(root, stage); err != nil {
		return placed, fmt.Errorf("copy skill: %w", err)
	}
	in, err := root.OpenRoot(stage)
	if err != nil {
		return placed, fmt.Errorf("copy skill: %w", err)
	}
	defer in.Close()
	if err := t.copyTo(ctx, in); err != nil {
		return placed, fmt.Errorf("copy skill: %w", err)
	}
	if err := root.Rename(filepath.Join(stage, name), name); err != nil {
		return placed, fmt.Errorf("copy skill: %w", err)
	}
	placed.New = true
	return placed, atomicfile.SyncDir(root, ".")
}

// sameContent returns nil where the directory at path has the content of a tree, and a *TakenError
// where it is anything else.
func sameContent(ctx context.Context, path string, t *Tree, rules Rules) error {
	taken := &TakenError{Path: path}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return taken
	}
	src, err := OpenSource(path)
	if err != nil {
		return taken
	}
	defer src.Close()
	there, report, err := src.Scan(ctx, rules)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w (%w)", taken, err)
	}
	for _, f := range report.LeftOut() {
		if f.Reason != LeftOutByName {
			return taken // it has what a copy has not
		}
	}
	if there.Manifest.Digest() != t.Manifest.Digest() {
		return taken
	}
	return nil
}
