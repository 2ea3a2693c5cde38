package remote

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// graceTime is how long a call that was ended may take to see what is under way to its end, and
	// again to remove what it had begun.
	graceTime = 5 * time.Second
	// staleAfter is the age, by the target's clock, from which nobody can be working on something.
	staleAfter = 24 * time.Hour
	// maxReaped is how many stale things one call takes away; the next takes more.
	maxReaped = 16
	// maxRemoved is how many entries one round of removal looks at.
	maxRemoved = 50_000
	// removeRounds is how often removal starts over for what was added meanwhile: by requests that
	// a server had yet to carry out, or by a script that still writes there.
	removeRounds = 3
)

// lasting returns the cache for changing it. Its calls go on for a while when ctx has ended, so that
// what is under way then comes to its end, no request is left that a server may yet carry out, and
// what was begun can be removed. That nothing new is begun is for the caller to see to.
func (c *sftpCache) lasting(ctx context.Context) (own *sftpCache, done func()) {
	own = &sftpCache{
		conn: c.conn, op: c.op, log: c.log, modes: c.modes, start: c.start, shown: c.shown, root: c.root,
		gate: newGate(width), walked: c.walked, path: c.path,
	}
	own.clock.Store(c.clock.Load())
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, cancel) })
	files, err := c.conn.Files(longer)
	if err != nil {
		files = c.fs // whose calls will fail: the target is out of reach
	}
	own.fs = files
	return own, cancel
}

// clean removes what a call has left, whether it came to its end or not.
func (c *sftpCache) clean(ctx context.Context, left *leftovers) {
	paths := left.list()
	if len(paths) == 0 {
		return
	}
	own, done := c.lasting(ctx) // whatever time is left, this has its own
	defer done()
	if err := own.removeAll(context.WithoutCancel(ctx), paths); err != nil {
		c.log.Debug("something was left in the cache", "error", err)
	}
}

// removeAll removes files, links and whole trees, all of them in the same flights: what is below is
// listed level by level, then everything goes at once, what is in a directory before the directory.
// No link is followed. A name that could lead elsewhere is left, and with it what holds it.
func (c *sftpCache) removeAll(ctx context.Context, paths []string) error {
	var err error
	for range removeRounds {
		if err = c.removeOnce(ctx, paths); err == nil || isOver(err) {
			return err
		}
	}
	return err
}

func (c *sftpCache) removeOnce(ctx context.Context, paths []string) error {
	infos, err := c.lstatAll(ctx, paths)
	if err != nil {
		return err
	}
	var found removal
	for i, info := range infos {
		if info != nil {
			found.add(paths[i], info)
		}
	}
	for len(found.below) > 0 {
		level := found.below
		found.dirs, found.below = append(found.dirs, level), nil
		lists := make([][]fs.FileInfo, len(level))
		err := each(ctx, len(level), func(i int) (err error) {
			lists[i], err = c.listToRemove(level[i])
			return err
		})
		if err != nil {
			return err
		}
		for i, list := range lists {
			for _, info := range list {
				if c.isPlain(info.Name()) {
					found.add(path.Join(level[i].path, info.Name()), info)
				}
			}
		}
	}
	return c.removeFound(ctx, &found)
}

// removal is what one round is to remove.
type removal struct {
	files []string
	below []removable   // directories that are yet to be listed
	dirs  [][]removable // those that were, level by level
	seen  int
}

// removable is a directory to be removed, with what it holds.
type removable struct {
	path string
	info fs.FileInfo
}

func (r *removal) add(p string, info fs.FileInfo) {
	if r.seen++; r.seen > maxRemoved {
		return
	}
	if info.IsDir() {
		r.below = append(r.below, removable{p, info})
	} else {
		r.files = append(r.files, p)
	}
}

// listToRemove lists a directory, after making it one that lets its owner in.
func (c *sftpCache) listToRemove(d removable) ([]fs.FileInfo, error) {
	if c.modes && d.info.Mode().Perm()&0o700 != 0o700 {
		if err := c.fs.Chmod(d.path, 0o700); isOver(err) {
			return nil, err
		}
	}
	list, err := c.readDir(d.path, maxCopyEntries)
	if isOver(err) {
		return nil, err
	}
	return list, nil // whatever else it is, removing the directory will tell
}

// removeFound removes files, then directories, innermost first, in one flight. A directory that
// could not be removed, most often because what was in it was yet to go, is tried again as long as
// others go. It goes on past what cannot be removed and returns a reason.
func (c *sftpCache) removeFound(ctx context.Context, found *removal) error {
	todo, files := found.files, len(found.files)
	for _, level := range slices.Backward(found.dirs) {
		for _, d := range level {
			todo = append(todo, d.path)
		}
	}
	var reason error
	for {
		errs := make([]error, len(todo))
		inOrder(len(todo), func(i int) {
			switch {
			case ctx.Err() != nil:
				errs[i] = ctx.Err()
			case i < files:
				errs[i] = c.fs.Remove(todo[i])
			default:
				errs[i] = c.fs.RemoveDir(todo[i])
			}
		})
		var again []string
		var last error
		for i, err := range errs {
			switch {
			case isOver(err):
				return err
			case err == nil || errors.Is(err, fs.ErrNotExist):
			case i < files:
				reason = err
			default:
				again, last = append(again, todo[i]), err
			}
		}
		switch len(again) {
		case 0:
			return reason
		case len(todo):
			return last
		}
		todo, files = again, 0
	}
}

// isPlain reports whether a name from a listing stands for an entry of that directory.
func (c *sftpCache) isPlain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") &&
		(c.modes || !strings.Contains(name, `\`))
}

// reap removes what calls that came to no end left behind, a bounded part of it each time. Age is
// counted on the target's clock alone.
func (c *sftpCache) reap(ctx context.Context, names []fs.FileInfo) {
	if c.clock.Load() == 0 {
		return // nothing was made that would show the time there
	}
	var stale []string
	for _, fi := range names {
		if c.now().Sub(fi.ModTime()) > staleAfter && len(stale) < maxReaped {
			stale = append(stale, path.Join(c.root, fi.Name()))
		}
	}
	if len(stale) == 0 {
		return
	}
	if err := c.removeAll(ctx, stale); err != nil {
		c.log.Debug("something old was left in the cache", "error", err)
	}
}
