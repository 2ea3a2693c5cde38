package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/transport"
)

// maxDirBytes bounds Options.Dir, so that a command has room for the digests it asks about.
const maxDirBytes = 200

// Options say where a target's cache is and how it is reached. The zero value is not usable: Dir
// has no default.
type Options struct {
	// Dir is the cache's place below the account's cache directory ($XDG_CACHE_HOME where that is
	// an absolute path, else ~/.cache), with slashes: "berry/skills". Elements are of A-Z a-z 0-9
	// . _ - and none is "." or "..".
	Dir string
	// NoExec keeps to SFTP, for accounts where running a command is unwanted.
	NoExec bool
	// Believed reports whether a bundle was on the target when it was last used, as far as the
	// caller remembers. It is a hint that decides what is sent before the target has answered,
	// never what is done there. Nil remembers nothing.
	Believed func(bundle.Digest) bool
	// Older returns the manifest of an earlier version of a bundle that may be on the target, or
	// nil. Where it is there and whole, only what changed is sent, and the rest is copied from it
	// there. Nil knows of none.
	Older func(*bundle.Manifest) *bundle.Manifest
	// Log receives what is found out and decided on the way; nil discards it.
	Log *slog.Logger
}

// check says why the options cannot be used, or returns nil.
func (o Options) check() error {
	if o.Dir == "" || len(o.Dir) > maxDirBytes {
		return fmt.Errorf("cache directory %q: want 1 to %d bytes", o.Dir, maxDirBytes)
	}
	for _, e := range strings.Split(o.Dir, "/") {
		if e == "" || e == "." || e == ".." {
			return fmt.Errorf("cache directory %q: the element %q is not a name", o.Dir, e)
		}
		for i := range len(e) {
			if c := e[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-", c) >= 0) {
				return fmt.Errorf("cache directory %q: only A-Z a-z 0-9 . _ - are allowed", o.Dir)
			}
		}
	}
	return nil
}

// State is what became of a copy since it was published.
type State string

// The states of what stands in a cache.
const (
	Absent  State = "absent"  // nothing has the digest as its name
	Whole   State = "ok"      // the copy is what its digest names
	Damaged State = "damaged" // something has the digest as its name and is not what it names
	Foreign State = "foreign" // not of our making: its name is no digest
)

// Copy is what stands in a cache under one name.
type Copy struct {
	Digest bundle.Digest // zero where State is Foreign
	Name   string        // the skill directory's; for a Foreign one, its own name, as the target sent it
	Path   string        // the skill directory on the target, absolute; "" where it is not known
	State  State
	Files  int       // regular files in it
	Bytes  int64     // their content
	Used   time.Time // when the copy was last published or found whole, by the target's clock
}

// Outcome is what publishing did about one bundle.
type Outcome string

// The outcomes of publishing a bundle.
const (
	Published Outcome = "published" // it was not there and now is
	Present   Outcome = "present"   // it was there, whole
	Repaired  Outcome = "repaired"  // it was there, damaged, and now is whole
	Failed    Outcome = "failed"    // see Result.Err; the target has what it had
)

// Result is what publishing did about one bundle.
type Result struct {
	Digest  bundle.Digest
	Name    string // the skill directory's
	Path    string // the skill directory on the target, absolute, ready for a prompt
	Outcome Outcome
	Sent    int64 // bytes of payload that were sent for it, packed; a stream of several is shared out
	Err     error // why the outcome is Failed, else nil
}

// Removed is a copy that Prune took away, or would take away.
type Removed struct {
	Copy
	Err error // why it is still there, else nil
}

// PruneOptions choose what Prune takes away. Foreign entries never are.
type PruneOptions struct {
	// OlderThan takes copies not used for so long, by the target's clock. Zero takes every copy.
	OlderThan time.Duration
	// Keep holds bundles that stay whatever their age.
	Keep map[bundle.Digest]bool
	// DryRun removes nothing and returns what would be removed.
	DryRun bool
}

// Cache is the cache of one target and account. Its methods may be called from many goroutines at
// once; they run one after another.
type Cache struct {
	conn transport.Conn
	o    Options
	log  *slog.Logger

	mu  sync.Mutex
	way way // nil until it is known which way the target allows
}

// Open returns the cache that o names on the target that conn leads to. It asks the target nothing;
// the error is about o. The Cache does not close conn.
func Open(conn transport.Conn, o Options) (*Cache, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	c := &Cache{conn: conn, o: o, log: o.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	// Windows has no /bin/sh, and its server says what it is before anything is asked.
	if o.NoExec || strings.Contains(conn.Server(), "for_Windows") {
		c.way = newSFTPWay(conn, o)
	}
	return c, nil
}

// Class returns "exec" or "sftp" for the way the target allows, or "" as long as it is not known.
func (c *Cache) Class() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.way == nil {
		return ""
	}
	return c.way.name()
}

// Publish makes every bundle stand in the cache, whole, and returns a result for each, in order. A
// copy that is whole stays as it is and is in use from now on, a damaged one is replaced, and what
// lacks is sent in one stream. The error is for what ended the whole of it: the results then say
// what had been reached, and Err of the others is that error. A bundle that failed alone has its
// error in its result only.
//
// When ctx ends, what was under way is taken off the target again as far as it can still be reached.
func (c *Cache) Publish(ctx context.Context, bundles ...*bundle.Bundle) ([]Result, error) {
	if len(bundles) == 0 {
		return nil, nil
	}
	var results []Result
	err := c.do(ctx, verbPublish, func(w way) (err error) {
		results, err = w.publish(ctx, bundles)
		return err
	})
	if err != nil && len(results) != len(bundles) {
		results = make([]Result, len(bundles))
	}
	for i, b := range bundles {
		if r := &results[i]; err != nil && r.Err == nil && r.Outcome != Published && r.Outcome != Present && r.Outcome != Repaired {
			*r = Result{Digest: b.Manifest.Digest(), Name: b.Manifest.Name(), Outcome: Failed, Sent: r.Sent, Err: err}
		}
	}
	return results, err
}

// Check says of each digest, in order, what stands under it: an Absent, Whole or Damaged copy. It
// changes nothing but the last use of the copies that are whole, and sends no content. Files, Bytes
// and Used are set where finding them out cost nothing.
func (c *Cache) Check(ctx context.Context, wanted ...bundle.Digest) ([]Copy, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	var copies []Copy
	err := c.do(ctx, verbCheck, func(w way) (err error) {
		copies, err = w.check(ctx, wanted)
		return err
	})
	return copies, err
}

// List returns the cache's absolute path on the target, and everything in it but what is under way,
// every copy checked. A cache that does not exist yet is empty. Nothing is changed.
func (c *Cache) List(ctx context.Context) (dir string, copies []Copy, err error) {
	err = c.do(ctx, verbList, func(w way) (err error) {
		dir, copies, err = w.list(ctx)
		return err
	})
	return dir, copies, err
}

// Prune takes copies away and returns those that it took, or with DryRun would take. Foreign entries
// stay. A copy loses its name by one rename before it is deleted, and a copy that is used between
// the choice and the rename stays. State is not looked at, and may be "".
func (c *Cache) Prune(ctx context.Context, o PruneOptions) ([]Removed, error) {
	var removed []Removed
	err := c.do(ctx, verbPrune, func(w way) (err error) {
		removed, err = w.prune(ctx, o)
		return err
	})
	return removed, err
}

// do runs an operation by the way the target allows. Which one that is shows in the first answer: a
// target on which the script cannot run has changed nothing, and is asked again by SFTP.
func (c *Cache) do(ctx context.Context, op string, f func(way) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.way != nil && c.way.name() == "sftp" {
		return c.only(op, f(c.way))
	}
	exec := newExecWay(c.conn, c.o)
	err := f(exec)
	no, unable := errors.AsType[*noExecError](err)
	if !unable {
		if _, lost := errors.AsType[*transport.Error](err); !lost && !errors.Is(err, ErrReply) && c.way == nil {
			c.log.Debug("the target runs commands")
			c.way = exec
		}
		return err
	}
	c.log.Debug("the target does not run the script, using SFTP", "reason", no)
	files := newSFTPWay(c.conn, c.o)
	if err = f(files); !errors.Is(err, transport.ErrNoFiles) {
		c.way = files
		return err
	}
	return &Error{Op: op, Kind: ErrNoAccess, Err: fmt.Errorf("%w; and by SFTP: %w", no, err),
		Advice: "allow the account to run /bin/sh, or the SFTP subsystem"}
}

// only gives the error of an account without SFTP its kind where nothing else was to be tried.
func (c *Cache) only(op string, err error) error {
	if !errors.Is(err, transport.ErrNoFiles) {
		return err
	}
	e := &Error{Op: op, Kind: ErrNoAccess, Err: err, Advice: "allow the account the SFTP subsystem"}
	if c.o.NoExec {
		e.Advice += ", or do not ask for SFTP alone"
	}
	return e
}

// way is one of the two ways to a cache. A way is used by one goroutine at a time.
type way interface {
	// check says of each bundle what stands under its digest, in the order asked, and sets the last
	// use of those that are whole.
	check(ctx context.Context, wanted []bundle.Digest) ([]Copy, error)
	// publish makes every bundle stand in the cache, whole, and returns a result for each in the
	// order given. The error is for what ended the whole of it; results are those reached by then.
	publish(ctx context.Context, bundles []*bundle.Bundle) ([]Result, error)
	// list returns everything in the cache except what is under way there, every copy checked.
	// dir is the cache's absolute path, also where it does not exist yet.
	list(ctx context.Context) (dir string, copies []Copy, err error)
	// prune takes copies away.
	prune(ctx context.Context, o PruneOptions) ([]Removed, error)
	// collections returns what the machine says of its collections.
	collections(ctx context.Context, q discovery.Query) (*discovery.Listing, error)
	// name is "exec" or "sftp".
	name() string
}

// side wraps an error with the operation and where it failed.
func side(op, where string, err error) error { return fmt.Errorf("%s: %s: %w", op, where, err) }
