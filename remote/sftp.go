package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// Names in a cache that are not copies. They are hidden from lists, and taken away when they are
// older than staleAfter.
const (
	sftpStagePrefix = ".tmp-"   // a copy in the making
	sftpLockPrefix  = ".stage-" // and a digest: its damaged copy is being replaced
	sftpTrashPrefix = ".trash-" // what was taken out of the way, to be deleted
)

// recent is how old the record of a copy's last use may be.
const recent = 10 * time.Minute

// Bounds on what a target can make an operation hold.
const (
	maxStart        = 2048                 // bytes of the start directory's path, so that what is below fits
	maxCacheEntries = 10_000               // names in a cache that are looked at
	maxCopyEntries  = 10_000               // entries of a copy whose manifest is not known
	maxCopyLevels   = 4 * bundle.MaxLevels // and how deep it may be
	maxCopyBytes    = 4 * bundle.MaxBytes  // and how much of its content is read
)

// sftpWay reaches a cache by file operations alone. Every one of them waits for at least one round
// trip, so the work is cut into phases that do not depend on one another's answers, and what
// belongs to one phase is in flight together, for all bundles of a call.
//
// A call costs, on a channel that is open and with OpenSSH's server: a round trip for the start
// directory, once in a way's life; one for everything on the path to the cache, and beside it two
// for the listing of all directories of the copies asked about (open; read to the end); one to set
// the time of last use, where the time that is there is not recent. A new copy costs one for all
// directories, two for all files (create; write, complete and look), and one for the rename.
type sftpWay struct {
	conn  transport.Conn
	dir   string // below the start directory's .cache
	log   *slog.Logger
	modes bool // the target has the permissions and owners of POSIX

	start string                    // the start directory, once it is known
	known map[bundle.Digest]*wanted // bundles that were published through this way
}

func newSFTPWay(conn transport.Conn, o Options) *sftpWay {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	windows := strings.Contains(conn.Server(), "for_Windows") || conn.Server() == "" && runtime.GOOS == "windows"
	return &sftpWay{
		conn: conn, dir: o.Dir, log: log, modes: !windows,
		known: make(map[bundle.Digest]*wanted),
	}
}

func (*sftpWay) name() string { return "sftp" }

// sftpCache is a target's cache during one call.
type sftpCache struct {
	conn  transport.Conn
	fs    transport.FS // lasts as long as the call
	op    string       // for errors
	log   *slog.Logger
	modes bool
	start string
	shown string // where the cache is, by the name that the account would use
	root  string // the same; without links once survey has returned
	gate  *gate

	walked chan struct{} // closed once path is known
	path   approach
	clock  atomic.Int64 // the target's time in Unix seconds, as far as files made there have shown it
}

// open learns where the cache is. That the names below it are not looked at yet saves a round trip:
// survey does it together with what the call is about.
func (w *sftpWay) open(ctx context.Context, op string) (*sftpCache, error) {
	files, err := w.conn.Files(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	c := &sftpCache{conn: w.conn, fs: files, op: op, log: w.log, modes: w.modes, gate: newGate(width), walked: make(chan struct{})}
	if w.start == "" {
		start, err := files.RealPath(".")
		if err != nil {
			return nil, c.failed("ask where the account starts", err)
		}
		if err := checkStart(op, start); err != nil {
			return nil, err
		}
		w.start = start
	}
	c.start, c.shown = w.start, path.Join(w.start, ".cache", w.dir)
	c.root = c.shown
	return c, nil
}

// check compares the copies of bundles that this way has published with their manifests, as every
// use does, and reads the others whole.
func (w *sftpWay) check(ctx context.Context, digests []bundle.Digest) ([]Copy, error) {
	c, err := w.open(ctx, "check")
	if err != nil {
		return nil, err
	}
	copies := make([]Copy, len(digests))
	err = c.survey(ctx, len(digests), func(i int) error {
		var err error
		copies[i], err = c.look(ctx, digests[i], w.known[digests[i]])
		return err
	})
	if err != nil {
		return nil, c.ended(err)
	}
	err = each(ctx, len(copies), func(i int) error {
		if copies[i].State == Whole {
			copies[i].Used = c.touch(copies[i].Digest, copies[i].Used)
		}
		return nil
	})
	return copies, c.ended(err)
}

// list reads every copy whole. An edit that left a file's size and time as they were is found here.
func (w *sftpWay) list(ctx context.Context) (string, []Copy, error) {
	c, err := w.open(ctx, "list")
	if err != nil {
		return "", nil, err
	}
	names, _, err := c.surveyNames(ctx)
	if err != nil || c.path.absent() {
		return c.shown, nil, c.ended(err)
	}
	copies := make([]Copy, len(names))
	err = eachOf(ctx, copyWidth, len(names), func(i int) error {
		d, err := bundle.ParseDigest(names[i].Name())
		if err != nil {
			copies[i] = Copy{Name: names[i].Name(), State: Foreign, Used: names[i].ModTime()}
			return nil
		}
		copies[i], err = c.look(ctx, d, nil)
		return err
	})
	copies = slices.DeleteFunc(copies, func(k Copy) bool { return k.State == Absent || k.State == "" })
	return c.shown, copies, c.ended(err)
}

// surveyNames lists the cache beside the survey. What is under way there is returned apart.
func (c *sftpCache) surveyNames(ctx context.Context) (names, underWay []fs.FileInfo, err error) {
	var all []fs.FileInfo
	err = c.survey(ctx, 1, func(int) error {
		var err error
		all, err = c.readDir(c.root, maxCacheEntries)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return c.failed("list the cache", err)
	})
	seen := make(map[string]bool)
	for _, fi := range all {
		switch {
		case seen[fi.Name()]:
		case !hidden(fi.Name()):
			names = append(names, fi)
		case c.isPlain(fi.Name()):
			underWay = append(underWay, fi)
		}
		seen[fi.Name()] = true
	}
	slices.SortFunc(names, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return names, underWay, err
}

// hidden reports whether a name in a cache is of something under way.
func hidden(name string) bool {
	return strings.HasPrefix(name, sftpStagePrefix) || strings.HasPrefix(name, sftpLockPrefix) ||
		strings.HasPrefix(name, sftpTrashPrefix)
}

// look says what stands under a digest: by comparison where the bundle is known, else by reading it.
func (c *sftpCache) look(ctx context.Context, d bundle.Digest, w *wanted) (Copy, error) {
	if w == nil {
		return c.recompute(ctx, d)
	}
	f, err := c.compare(ctx, path.Join(c.root, d.String()), w)
	k := Copy{Digest: d, State: f.state}
	if err == nil && f.state != Absent {
		k.Name, k.Path, k.Used = w.manifest.Name(), c.pathOf(d, w.manifest.Name()), f.info.ModTime()
	}
	if f.state == Whole {
		k.Files, k.Bytes = w.manifest.Files(), w.bytes
	}
	return k, err
}

// pathOf returns where a skill directory is, as a person or a prompt is told.
func (c *sftpCache) pathOf(d bundle.Digest, name string) string {
	return path.Join(c.shown, d.String(), name)
}

// touch sets a copy's last use and returns it. One that is recorded and recent is left, for a round
// trip on every use is more than its exactness is worth. A target that does not let itself be
// written to keeps its copies usable, so a failure is no more than logged.
func (c *sftpCache) touch(d bundle.Digest, before time.Time) time.Time {
	now := c.now()
	if age := now.Sub(before); 0 <= age && age < recent {
		return before
	}
	if err := c.fs.Chtimes(path.Join(c.root, d.String()), now); err != nil {
		c.log.Debug("a copy's last use was not recorded", "digest", d.Short(), "error", err)
		return before
	}
	return now
}

// now is the target's time as well as it can be told. Where something was made there in this call,
// it is that thing's time. Else making something for the purpose would cost round trips on every
// use, so it is the later of this machine's time and the cache's own: the cache directory changes
// by the target's clock whenever a copy appears. A clock behind the target's is corrected by that
// to the last publish at least, and one ahead of it keeps a copy too long rather than too short.
func (c *sftpCache) now() time.Time {
	if s := c.clock.Load(); s != 0 {
		return time.Unix(s, 0)
	}
	now := time.Now().Truncate(time.Second)
	if at := c.path.changed; at.After(now) {
		return at
	}
	return now
}

// saw takes the time of something that was made there a moment ago.
func (c *sftpCache) saw(fi fs.FileInfo) {
	for s := fi.ModTime().Unix(); ; {
		old := c.clock.Load()
		if s <= old || c.clock.CompareAndSwap(old, s) {
			return
		}
	}
}

// readDir lists a directory of at most max entries.
func (c *sftpCache) readDir(dir string, max int) (list []fs.FileInfo, err error) {
	err = c.gate.use(func() error {
		list, err = c.fs.ReadDir(dir, max)
		return err
	}, nil)
	return list, err
}
