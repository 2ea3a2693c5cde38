package remote

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

// approach is what was passed on the way to a cache: whoever can change any of it decides what the
// cache holds.
type approach struct {
	op      string // for errors
	passed  []passed
	mode    fs.FileMode // the cache directory's
	missing []string    // directories that are yet to be made, outermost first
	user    uint32      // who this account is on the target
	named   bool        // whether the target says who owns what
	changed time.Time   // the cache directory's own time; zero where it does not exist
}

// passed is one directory or link on the way.
type passed struct {
	path string
	info fs.FileInfo
}

// absent reports whether there is no cache yet.
func (a *approach) absent() bool { return len(a.missing) > 0 }

// checkStart refuses a start directory that could be misread by whoever is shown a path below it.
func checkStart(op, p string) error {
	drive := len(p) >= 3 && p[1] == ':' && p[2] == '/'
	if (path.IsAbs(p) || drive) && path.Clean(p) == p && len(p) <= maxStart && !strings.ContainsFunc(p, display.Hidden) {
		return nil
	}
	return &Error{Op: op, Kind: ErrReply, Said: p, Err: errors.New("the directory where the account starts is no plain absolute path")}
}

// survey walks to the cache and makes sure that nobody else can change it, and calls also for 0 to
// n-1 beside that, to save its round trip. What also does must change nothing on the target, and
// counts only if the error is nil. After surveyed it may use c.path.
func (c *sftpCache) survey(ctx context.Context, n int, also func(i int) error) error {
	var root string
	var walkErr error
	err := each(ctx, n+1, func(i int) error {
		if i > 0 {
			return also(i - 1)
		}
		defer close(c.walked)
		c.path = approach{op: c.op}
		root, walkErr = c.path.walk(ctx, c)
		return walkErr
	})
	if walkErr != nil {
		return walkErr
	}
	if err != nil {
		return err
	}
	c.root = root
	return nil
}

// surveyed waits until it is known who this account is.
func (c *sftpCache) surveyed(ctx context.Context) error {
	select {
	case <-c.walked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// walk follows the path to the cache name by name, links included, and returns it without links.
// Names are looked at all at once, which takes one round trip, and two more for each link.
func (a *approach) walk(ctx context.Context, c *sftpCache) (string, error) {
	if !c.modes {
		// Owners and modes mean nothing here, so that only what is missing is of interest.
		return c.root, a.find(ctx, c, levels(c.root, c.start))
	}
	seen := make(map[string]fs.FileInfo)
	p, to := c.root, ""
	for hops := 0; ; hops++ {
		if hops > bundle.MaxLinkHops {
			return "", &Error{Op: a.op, Path: c.root, Err: errors.New("its path leads through too many links")}
		}
		link, err := a.step(ctx, c, levels(p, "/"), seen)
		if err != nil {
			return "", err
		}
		if link == "" {
			if a.absent() && len(a.missing[0]) <= len(to) {
				return "", &Error{Op: a.op, Path: to, Err: errors.New("a link on the cache's path leads there, and it does not exist")}
			}
			a.identify(c.start, seen[c.start])
			return p, a.judge(p)
		}
		if to, err = c.fs.ReadLink(link); err != nil {
			return "", c.failed("follow the cache's path", err)
		}
		// The part before the link holds no link, so that leading ".." may be resolved by text.
		if inner := strings.TrimLeft(to, "./"); to == "" || strings.Contains(inner+"/", "/../") {
			return "", &Error{Op: a.op, Kind: ErrUnsafe, Path: link, Err: errors.New("it is a link of a form that is not followed")}
		}
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(link), to)
		}
		p = path.Join(to, strings.TrimPrefix(p, link))
	}
}

// step looks at the names of a path, and returns the first of them that is a link. Without one it
// records what is missing.
func (a *approach) step(ctx context.Context, c *sftpCache, names []string, seen map[string]fs.FileInfo) (string, error) {
	infos, err := c.lstatAll(ctx, names)
	if err != nil {
		return "", err
	}
	a.missing, a.changed = nil, time.Time{}
	for i, name := range names {
		info := infos[i]
		if info == nil {
			a.missing = names[i:]
			return "", nil
		}
		if seen[name] == nil {
			seen[name] = info
			a.passed = append(a.passed, passed{name, info})
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			return name, nil
		case !info.IsDir():
			return "", &Error{Op: a.op, Path: name, Err: errors.New("it is not a directory, and the cache's path leads through it")}
		}
		a.changed, a.mode = info.ModTime(), info.Mode()
	}
	return "", nil
}

// find records what is missing of a path, and no more.
func (a *approach) find(ctx context.Context, c *sftpCache, names []string) error {
	infos, err := c.lstatAll(ctx, names)
	if err != nil {
		return err
	}
	for i, info := range infos {
		if info == nil {
			a.missing, a.changed = names[i:], time.Time{}
			return nil
		}
		a.changed, a.mode = info.ModTime(), info.Mode()
	}
	return nil
}

// lstatAll looks at names in one flight. What does not exist is nil.
func (c *sftpCache) lstatAll(ctx context.Context, names []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(names))
	err := each(ctx, len(names), func(i int) error {
		info, err := c.fs.Lstat(names[i])
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return c.failed("look at the cache's path", err)
		}
		infos[i] = info
		return nil
	})
	return infos, err
}

// levels returns the directories from below top down to p, and "/" first where that is top.
func levels(p, top string) []string {
	var up []string
	for ; p != top && p != path.Dir(p); p = path.Dir(p) {
		up = append(up, p)
	}
	if top == "/" {
		up = append(up, top)
	}
	out := make([]string, len(up))
	for i, name := range up {
		out[len(up)-1-i] = name
	}
	return out
}

// identify says who this account is, which SFTP has no question for: the owner of the directory
// where it starts. An account that is confined starts in / and sees a root that is not its own, so
// there it is the owner of the innermost directory that exists, which only root can have given
// away. The first thing made there shows whether this is right, and judge is asked again then.
func (a *approach) identify(start string, info fs.FileInfo) {
	if info == nil {
		return
	}
	a.user, _, a.named = transport.Owner(info)
	if start == "/" && a.user == 0 && info.Mode().Perm()&0o022 == 0 {
		a.user, _, a.named = transport.Owner(a.passed[len(a.passed)-1].info)
	}
}

// judge refuses a way to the cache that somebody other than this account and root can change.
func (a *approach) judge(root string) error {
	for _, p := range a.passed {
		uid, gid, named := transport.Owner(p.info)
		foreign := uid != a.user && (uid != 0 || p.path == root)
		mode := p.info.Mode()
		// A group that has its owner's number is the owner's own: this is as much as can be seen.
		open := mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && (uid != gid || !named)
		switch {
		case named && foreign:
			return unsafeError(a.op, p.path, true)
		case open && mode&(fs.ModeSymlink|fs.ModeSticky) == 0:
			return unsafeError(a.op, p.path, false)
		}
	}
	return nil
}

// owns reports whether something belongs to this account, as far as the target says.
func (a *approach) owns(info fs.FileInfo) bool {
	uid, _, named := transport.Owner(info)
	return !named || !a.named || uid == a.user
}

// made holds what is known of the account to something that this call made itself.
func (c *sftpCache) made(info fs.FileInfo) error {
	c.saw(info)
	if !c.modes || c.path.owns(info) {
		return nil
	}
	a := c.path
	a.user, _, _ = transport.Owner(info)
	if err := a.judge(c.root); err != nil {
		return err
	}
	return unsafeError(c.op, c.root, true)
}

// exists returns the cache's directory, or the innermost one above it that is there.
func (a *approach) exists(root string) string {
	if a.absent() {
		return path.Dir(a.missing[0])
	}
	return root
}

// makePrivate gives a cache that is there the mode of its own. Nothing above it is changed.
func (c *sftpCache) makePrivate() error {
	if c.path.absent() || !c.modes || c.path.mode.Perm() == 0o700 && c.path.mode&fs.ModeSetgid == 0 {
		return nil
	}
	return c.notWritten(c.root, c.fs.Chmod(c.root, 0o700))
}

// madeRoot takes note of a cache that has just been made. Where another process made some of the
// directories on the way, they are looked at as if they had been there before.
func (c *sftpCache) madeRoot(ctx context.Context, alone bool) error {
	if alone {
		c.path.missing = nil
		return nil
	}
	a := approach{op: c.op}
	root, err := a.walk(ctx, c)
	if err != nil {
		return err
	}
	if a.absent() || root != c.root {
		return &Error{Op: c.op, Path: root, Err: errors.New("it was changed while it was made")}
	}
	c.path = a
	return nil
}
