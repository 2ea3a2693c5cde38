package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/punnet/punnet/internal/atomicfile"
)

// Hold keeps Collect from the store until release is called: what is pinned meanwhile stays at least
// until then. Whoever pins a bundle to refer to it holds the store from before the pin until the
// reference is where Collect's caller looks for it. Any number may hold a store at once. Hold waits for a
// Collect that is under way, and creates the store where there is none.
func (s *Store) Hold(ctx context.Context) (release func(), err error) {
	_, done, err := s.writable(ctx)
	if err != nil {
		return nil, fmt.Errorf("hold the store: %w", err)
	}
	return done, nil
}

// Collect removes the bundles that pick returns, of all that there are, and returns those that went. It
// waits until nobody holds the store or adds to it, and nobody does while pick runs: what pick does not
// find referred to, nobody is about to refer to. Each bundle is whole or gone, also after a crash. With
// an error of pick nothing goes.
func (s *Store) Collect(ctx context.Context, pick func(context.Context, []Info) ([]Info, error)) ([]Info, error) {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	defer root.Close()
	lock, err := s.lock(root, lockName)
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return nil, fmt.Errorf("collect: lock the store: %w", err)
	}
	sweep(root)
	all, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	picked, err := pick(ctx, all)
	if err != nil {
		return nil, err
	}
	return discard(ctx, root, picked)
}

// discard takes bundles' names from them, and then removes what they were. The caller has the store to
// itself.
func discard(ctx context.Context, root *os.Root, picked []Info) (gone []Info, err error) {
	var trash []string
	for _, i := range picked {
		if err = ctx.Err(); err != nil {
			break
		}
		name := atomicfile.TempName(trashPrefix)
		if err = root.Rename(i.Digest.String(), name); err != nil {
			err = fmt.Errorf("collect bundle %s: %w", i.Digest.Short(), err)
			break
		}
		trash, gone = append(trash, name), append(gone, i)
	}
	if len(gone) > 0 {
		err = errors.Join(err, atomicfile.SyncDir(root, "."))
	}
	for _, name := range trash {
		removeTree(root, name) // what cannot be removed is left for the next sweep
	}
	return gone, err
}
