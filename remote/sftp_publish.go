package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/transport"
)

// job is the publishing of one bundle.
type job struct {
	b      *bundle.Bundle
	want   *wanted
	digest bundle.Digest
	final  string // where the copy belongs

	found  finding     // what stands there
	stage  string      // where it is made
	staged []bool      // of the manifest's entries, those that are in stage
	made   fs.FileInfo // stage, once all of it was made
	sent   atomic.Int64

	outcome Outcome
	err     error // why the bundle was not published; never one that ended the call
}

// publish makes every bundle stand in the cache. A copy that is there is compared with its
// manifest; the rest are made beside one another, each under a name of its own and private, looked
// at there, and given their names by one rename each.
func (w *sftpWay) publish(ctx context.Context, bundles []*bundle.Bundle) ([]Result, error) {
	jobs := w.jobs(bundles)
	c, err := w.open(ctx, "publish")
	if err != nil {
		return nil, err
	}
	err = c.publish(ctx, jobs)
	for d, j := range jobs {
		if j.want != nil {
			w.known[d] = j.want
		}
	}
	return c.results(bundles, jobs), c.ended(err)
}

// jobs returns a job for each bundle that was not given before.
func (w *sftpWay) jobs(bundles []*bundle.Bundle) map[bundle.Digest]*job {
	jobs := make(map[bundle.Digest]*job, len(bundles))
	for _, b := range bundles {
		d := b.Manifest.Digest()
		if jobs[d] != nil {
			continue
		}
		j := &job{b: b, digest: d, want: w.known[d]}
		if j.want == nil {
			var err error
			if j.want, err = newWanted(b); err != nil {
				j.err = hereDamaged("publish", err)
			}
		}
		jobs[d] = j
	}
	return jobs
}

// results returns what the jobs came to, for those that came to something.
func (c *sftpCache) results(bundles []*bundle.Bundle, jobs map[bundle.Digest]*job) []Result {
	var out []Result
	told := make(map[bundle.Digest]bool)
	for _, b := range bundles {
		d := b.Manifest.Digest()
		j := jobs[d]
		r := Result{Digest: d, Name: b.Manifest.Name(), Outcome: j.outcome, Sent: j.sent.Load(), Err: j.err}
		r.Path = c.pathOf(d, r.Name)
		switch {
		case j.err != nil:
			r.Outcome = Failed
		case j.outcome == "":
			continue
		case told[d]:
			r.Outcome = Present
		}
		if told[d] {
			r.Sent = 0
		}
		told[d] = true
		out = append(out, r)
	}
	return out
}

// publish does the jobs. Its error is for what ended all of them.
func (c *sftpCache) publish(ctx context.Context, jobs map[bundle.Digest]*job) error {
	var todo []*job
	for _, j := range jobs {
		if j.err == nil {
			j.final = path.Join(c.root, j.digest.String())
			todo = append(todo, j)
		}
	}
	err := c.survey(ctx, len(todo), func(i int) (err error) {
		todo[i].found, err = c.compare(ctx, todo[i].final, todo[i].want)
		return err
	})
	if err != nil {
		return err
	}
	var there, lacking []*job
	for _, j := range todo {
		j.final = path.Join(c.root, j.digest.String())
		if j.found.state == Whole {
			j.outcome = Present
			there = append(there, j)
			continue
		}
		if j.found.state == Damaged {
			c.log.Debug("a copy is damaged", "digest", j.digest.Short(), "why", j.found.why)
		}
		lacking = append(lacking, j)
	}
	return each(ctx, len(there)+1, func(i int) error {
		if i < len(there) {
			c.touch(there[i].digest, there[i].found.info.ModTime())
			return nil
		}
		if len(lacking) == 0 {
			return nil
		}
		own, done := c.lasting(ctx)
		defer done()
		return own.publishAll(ctx, lacking)
	})
}

// publishAll makes the copies that lack.
func (c *sftpCache) publishAll(ctx context.Context, jobs []*job) error {
	var left leftovers
	defer c.clean(ctx, &left)
	// Both are asked beside the work, so that they cost no time.
	var stale []fs.FileInfo
	var noRoom error
	var beside, asking sync.WaitGroup
	defer beside.Wait()
	existing := c.path.exists(c.root)
	if !c.path.absent() {
		beside.Go(func() { stale = c.staleNames() })
	}
	asking.Go(func() { noRoom = c.room(existing, jobs) })
	err := c.makeStages(ctx, jobs, &left)
	asking.Wait()
	if err == nil && isOver(noRoom) {
		err = noRoom
	}
	if err != nil {
		return err
	}
	err = each(ctx, len(jobs), func(i int) error {
		j := jobs[i]
		if j.err == nil {
			j.err = noRoom
		}
		if j.err == nil {
			j.err = c.place(ctx, j, &left)
		}
		if isOver(j.err) {
			err := j.err
			j.err = nil // what ended the call says nothing about this bundle
			return err
		}
		return nil
	})
	beside.Wait()
	if err == nil {
		c.reap(ctx, stale)
	}
	return err
}

// room refuses what cannot fit before any of it is sent: a server's word for a disk that fills up
// on the way is no more than "failure".
func (c *sftpCache) room(dir string, jobs []*job) error {
	var need int64
	for _, j := range jobs {
		for i, size := range j.want.sizes {
			if !j.found.intact[i] {
				need += size
			}
		}
	}
	free, err := c.fs.FreeSpace(dir)
	if err == nil && free < uint64(need) {
		err := fmt.Errorf("%d bytes are needed and %d are free", need, free)
		return &Error{Op: c.op, Kind: ErrNoSpace, Path: dir, Err: err, Advice: adviceNoSpace}
	}
	if isOver(err) {
		return err
	}
	return nil
}

// leftovers are names to be removed when a call ends.
type leftovers struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (l *leftovers) add(p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paths == nil {
		l.paths = make(map[string]bool)
	}
	l.paths[p] = true
}

func (l *leftovers) drop(p string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.paths, p)
}

func (l *leftovers) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for p := range l.paths {
		out = append(out, p)
	}
	return out
}

// temp returns a name in the cache that nothing has, and that is removed when the call ends.
func (c *sftpCache) temp(prefix string, left *leftovers) string {
	p := path.Join(c.root, atomicfile.TempName(prefix))
	left.add(p)
	return p
}

// staleNames lists what is under way in the cache. It is not needed for anything else, so a failure
// means no more than that nothing is reaped this time.
func (c *sftpCache) staleNames() []fs.FileInfo {
	names, err := c.readDir(c.root, maxCacheEntries)
	if err != nil && !errors.Is(err, transport.ErrTooLarge) {
		return nil
	}
	var out []fs.FileInfo
	for _, fi := range names {
		if hidden(fi.Name()) && c.isPlain(fi.Name()) {
			out = append(out, fi)
		}
	}
	return out
}
