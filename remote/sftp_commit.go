package remote

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/punnet/punnet/bundle"
)

const (
	// commitTries bounds how often a name is taken from under a commit before it gives up.
	commitTries = 5
	// lockWait is how long a repair waits for another of the same copy, and lockPause how long
	// between looks. The lock only saves a whole copy from being set aside a moment after it came:
	// without it nothing half would be seen, so whoever waits too long goes on.
	lockWait  = 2 * time.Second
	lockPause = 100 * time.Millisecond
)

// commit gives a staged copy its name by one rename. What has the name already decides: a whole
// copy stays, and is as good as ours; a damaged one is set aside. An error of the rename means
// little, for servers differ in it and replies get lost, so what stands there is looked at.
func (c *sftpCache) commit(ctx context.Context, j *job, left *leftovers) error {
	outcome, locked := Published, false
	for range commitTries {
		if j.found.state == Damaged && !locked {
			locked = true
			defer c.lock(ctx, j.digest)()
			// Whoever held the lock before has changed what was found.
			var err error
			if j.found, err = c.compare(ctx, j.final, j.want); err != nil {
				return err
			}
		}
		if j.found.state == Whole {
			j.outcome = Present
			return nil
		}
		if j.found.state == Damaged {
			outcome = Repaired
			if err := c.setAside(ctx, j, left); err != nil {
				return err
			}
		}
		if err := c.fill(ctx, j, func(int) bool { return true }); err != nil {
			return err
		}
		err := c.fs.Rename(j.stage, j.final)
		if err == nil {
			left.drop(j.stage)
			j.outcome = outcome
			return nil
		}
		if isOver(err) {
			return c.failed("give a copy its name", err)
		}
		found, cerr := c.compare(ctx, j.final, j.want)
		if cerr != nil {
			return cerr
		}
		if found.state == Absent && !errors.Is(err, fs.ErrExist) {
			return c.notWritten(j.final, err)
		}
		j.found = found
	}
	return &Error{Op: c.op, Path: j.final, Err: errors.New("others take the name again and again")}
}

// setAside takes a damaged copy's name away, and moves what is intact in it to the staging
// directory. From here to the commit the bundle is absent. What cannot be moved, or is not what it
// was when it was looked at, is left for fill to send.
func (c *sftpCache) setAside(ctx context.Context, j *job, left *leftovers) error {
	aside := c.temp(sftpTrashPrefix, left)
	err := c.fs.Rename(j.final, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody else has done so
	}
	if err != nil {
		return c.notWritten(j.final, err)
	}
	entries := j.want.manifest.Entries()
	return each(ctx, len(entries), func(i int) error {
		if !j.found.intact[i] || j.staged[i] {
			return nil
		}
		at := path.Join(j.stage, entries[i].Path)
		if err := c.fs.Rename(path.Join(aside, entries[i].Path), at); err != nil {
			if isOver(err) {
				return c.failed("move what is intact of a copy", err)
			}
			return nil
		}
		err := c.arrived(j, i)
		switch {
		case isOver(err):
			return err
		case err != nil:
			return c.removeAll(ctx, []string{at})
		}
		j.staged[i] = true
		return nil
	})
}

// lock keeps other repairs of one copy waiting, by either way to the cache. What it returns ends
// that. A lock that nobody holds any more is reaped with the rest.
func (c *sftpCache) lock(ctx context.Context, d bundle.Digest) (unlock func()) {
	name := path.Join(c.root, sftpLockPrefix+d.String())
	for waited := time.Duration(0); waited <= lockWait; waited += lockPause {
		err := c.fs.Mkdir(name, 0o700)
		if err == nil {
			return func() { c.unlock(ctx, name) }
		}
		if !errors.Is(err, fs.ErrExist) {
			c.unlock(ctx, name) // it may be there all the same, and nobody else would remove it
			break
		}
		select {
		case <-ctx.Done():
			return func() {}
		case <-time.After(lockPause):
		}
	}
	return func() {}
}

func (c *sftpCache) unlock(ctx context.Context, name string) {
	own, done := c.lasting(ctx)
	defer done()
	err := own.fs.RemoveDir(name)
	if isUnnamed(err) {
		err = own.fs.RemoveDir(name) // a lock that stays makes others wait for a day
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Debug("a lock could not be removed", "path", name, "error", err)
	}
}
