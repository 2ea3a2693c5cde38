package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/punnet/punnet/bundle"
)

// tree is a copy that is being read without its manifest.
type tree struct {
	cache *sftpCache
	dir   string // the digest's directory
	name  string // the first directory in it, as a rule the only one

	mu      sync.Mutex
	entries []treeEntry
	why     string // the first thing that makes it no bundle
}

// treeEntry is one entry of a copy.
type treeEntry struct {
	path string // from the top directory on
	kind bundle.Kind
	size int64
	sum  [32]byte
}

func (t *tree) damage(p, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why == "" {
		t.why = p + ": " + what
	}
}

func (t *tree) damaged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why != ""
}

// recompute reads a copy whole and computes its digest anew: level by level, since what a level
// holds is known only once the one above it was listed, and then all files in flight. Names that the
// target sends become part of a path only when they could stand in a bundle, and what is larger than
// any bundle is given up.
func (c *sftpCache) recompute(ctx context.Context, d bundle.Digest) (Copy, error) {
	k := Copy{Digest: d, State: Absent}
	t := &tree{cache: c, dir: path.Join(c.root, d.String())}
	var info fs.FileInfo
	var top listing // asked for beside, before it is known that there is a directory
	err := each(ctx, 2, func(i int) (err error) {
		if i == 0 {
			info, err = c.fs.Lstat(t.dir)
			return err
		}
		top = c.listing(t.dir, maxCopyEntries)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, c.failed("look at a copy", err)
	}
	if err := c.surveyed(ctx); err != nil {
		return k, err
	}
	k.State, k.Used = Damaged, info.ModTime()
	if !info.IsDir() || !c.exact(info, bundle.Dir) {
		t.damage("", "it is not a directory of its own mode")
	}
	if info.IsDir() {
		if err := t.walk(ctx, top); err != nil {
			return k, err
		}
	}
	if t.name != "" {
		k.Name, k.Path = t.name, c.pathOf(d, t.name)
	}
	if err := t.read(ctx); err != nil {
		return k, err
	}
	t.describe(&k)
	if k.State == Damaged {
		// It may have been taken away under our hands, which is no damage.
		if _, err := c.fs.Lstat(t.dir); errors.Is(err, fs.ErrNotExist) {
			return Copy{Digest: d, State: Absent}, nil
		}
		c.log.Debug("a copy is damaged", "digest", d.Short(), "why", t.why)
	}
	return k, nil
}

// describe fills in what was read, and the state it shows.
func (t *tree) describe(k *Copy) {
	for _, e := range t.entries {
		if e.kind != bundle.Dir {
			k.Files++
			k.Bytes += e.size
		}
	}
	if t.damaged() {
		return
	}
	m, err := bundle.ParseManifest(t.manifest())
	switch {
	case err != nil:
		t.damage("", err.Error())
	case m.Digest() != k.Digest:
		t.damage("", "its content is not what its name says")
	default:
		k.State = Whole
	}
}

// manifest returns the text that the bundle format defines for what was read.
func (t *tree) manifest() []byte {
	lines := make([]string, len(t.entries))
	for i, e := range t.entries {
		lines[i] = fmt.Sprintf("%c %x  ./%s\n", e.kind, e.sum, e.path)
		if e.kind == bundle.Dir {
			lines[i] = "d ./" + e.path + "\n"
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// walk lists what is below the top. What is no bundle's is noted and not entered.
func (t *tree) walk(ctx context.Context, top listing) error {
	level, lists := []string{""}, []listing{top}
	for depth := 0; ; depth++ {
		var below []string
		for i, l := range lists {
			if isOver(l.err) {
				return t.cache.failed("list a copy", l.err)
			}
			below = append(below, t.take(level[i], l)...)
		}
		room := maxCopyEntries - len(t.entries)
		switch level = below; {
		case len(level) == 0:
			return nil
		case depth > maxCopyLevels:
			t.damage(level[0], "it is deeper than any bundle")
			return nil
		case room <= 0:
			t.damage("", "it holds more than any bundle")
			return nil
		}
		lists = make([]listing, len(level))
		err := each(ctx, len(level), func(i int) error {
			lists[i] = t.cache.listing(path.Join(t.dir, level[i]), room)
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// take records what one directory holds, and returns the directories in it.
func (t *tree) take(dir string, l listing) []string {
	if l.err != nil {
		t.damage(dir, l.err.Error())
	}
	if dir == "" && (len(l.entries) != 1 || !l.entries[0].IsDir()) {
		t.damage(dir, "it does not hold one directory")
	}
	var dirs []string
	for _, info := range l.entries {
		if err := bundle.CheckName(info.Name()); err != nil {
			t.damage(dir, err.Error())
			continue
		}
		if dir == "" && t.name == "" && info.IsDir() {
			t.name = info.Name()
		}
		e := treeEntry{path: path.Join(dir, info.Name()), size: info.Size()}
		switch {
		case info.IsDir() && t.cache.exact(info, bundle.Dir):
			e.kind, e.size = bundle.Dir, 0
			dirs = append(dirs, e.path)
		case info.Mode().IsRegular() && !t.cache.modes:
			e.kind = bundle.File // what it starts with says more
		case info.Mode().IsRegular() && t.cache.exact(info, bundle.File):
			e.kind = bundle.File
		case info.Mode().IsRegular() && t.cache.exact(info, bundle.Exec):
			e.kind = bundle.Exec
		default:
			t.damage(e.path, "its type or mode is no bundle's")
			continue
		}
		t.entries = append(t.entries, e)
	}
	return dirs
}

// read hashes all files, unless it is clear already that this is no bundle.
func (t *tree) read(ctx context.Context) error {
	if len(t.entries) > maxCopyEntries {
		t.damage("", "it holds more than any bundle")
	}
	var total int64
	for _, e := range t.entries {
		if e.size < 0 || e.size > maxCopyBytes-total {
			t.damage(e.path, "its content is larger than any bundle's")
			return nil
		}
		total += e.size
	}
	if t.damaged() {
		return nil
	}
	return each(ctx, len(t.entries), func(i int) error {
		e := &t.entries[i]
		if e.kind == bundle.Dir || t.damaged() {
			return nil
		}
		err := t.hash(e)
		if isOver(err) {
			return t.cache.failed("read a copy", err)
		}
		if err != nil {
			t.damage(e.path, err.Error())
		}
		return nil
	})
}

// hash reads one file. Where the target keeps no execute bits, a file that starts with #! has one,
// as the bundle format says of a host without them.
func (t *tree) hash(e *treeEntry) error {
	sum, head, err := t.cache.sum(path.Join(t.dir, e.path), e.size)
	e.sum = sum
	if !t.cache.modes && head == "#!" {
		e.kind = bundle.Exec
	}
	return err
}
