package remote

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/punnet/punnet/bundle"
)

// prune goes by the names and times of copies and does not read them, so their State is not known
// and stays empty, as do Files and Bytes.
func (w *sftpWay) prune(ctx context.Context, o PruneOptions) ([]Removed, error) {
	c, err := w.open(ctx, "prune")
	if err != nil {
		return nil, err
	}
	names, underWay, err := c.surveyNames(ctx)
	if err != nil || c.path.absent() {
		return nil, c.ended(err)
	}
	c, done := c.lasting(ctx)
	defer done()
	var left leftovers
	defer c.clean(ctx, &left)
	if !o.DryRun && (o.OlderThan > 0 || len(underWay) > 0) {
		if err := c.askTime(&left); err != nil {
			return nil, c.ended(err)
		}
		c.reap(ctx, underWay)
	}
	chosen := c.choose(names, o)
	err = each(ctx, len(chosen), func(i int) error {
		return c.nameCopy(&chosen[i].Copy)
	})
	if err != nil || o.DryRun {
		return chosen, c.ended(err)
	}
	return c.take(ctx, chosen, o, &left)
}

// askTime makes a directory to see what time it is on the target.
func (c *sftpCache) askTime(left *leftovers) error {
	dir := c.temp(sftpTrashPrefix, left)
	if err := c.fs.Mkdir(dir, 0o700); err != nil {
		return c.notWritten(dir, err)
	}
	info, err := c.fs.Lstat(dir)
	if err != nil {
		return c.failed("ask for the time", err)
	}
	return c.made(info)
}

// choose returns the copies to be taken away.
func (c *sftpCache) choose(names []fs.FileInfo, o PruneOptions) []Removed {
	var chosen []Removed
	now := c.now()
	for _, fi := range names {
		d, err := bundle.ParseDigest(fi.Name())
		if err != nil || o.Keep[d] || o.OlderThan > 0 && now.Sub(fi.ModTime()) < o.OlderThan {
			continue
		}
		chosen = append(chosen, Removed{Copy: Copy{Digest: d, Used: fi.ModTime()}})
	}
	return chosen
}

// nameCopy fills in a copy's name and path, where its directory holds one name that can be one.
func (c *sftpCache) nameCopy(k *Copy) error {
	list, err := c.readDir(path.Join(c.root, k.Digest.String()), 2)
	if isOver(err) {
		return err
	}
	if err == nil && len(list) == 1 && bundle.CheckName(list[0].Name()) == nil {
		k.Name = list[0].Name()
		k.Path = c.pathOf(k.Digest, k.Name)
	}
	return nil
}

// take gives copies names that nobody looks for, all in one flight; clean deletes them. Where age
// counts it is looked at once more, for a copy that was used meanwhile stays.
func (c *sftpCache) take(ctx context.Context, chosen []Removed, o PruneOptions, left *leftovers) ([]Removed, error) {
	taken := make([]bool, len(chosen))
	err := each(ctx, len(chosen), func(i int) error {
		from := path.Join(c.root, chosen[i].Digest.String())
		if o.OlderThan > 0 {
			if info, err := c.fs.Lstat(from); err == nil && !info.ModTime().Equal(chosen[i].Used) {
				return nil
			}
		}
		err := c.fs.Rename(from, c.temp(sftpTrashPrefix, left))
		if isOver(err) {
			return err
		}
		// What another has taken away meanwhile is not ours to report.
		taken[i] = !errors.Is(err, fs.ErrNotExist)
		chosen[i].Err = c.notWritten(from, err)
		return nil
	})
	var removed []Removed
	for i, r := range chosen {
		if taken[i] {
			removed = append(removed, r)
		}
	}
	return removed, c.ended(err)
}
