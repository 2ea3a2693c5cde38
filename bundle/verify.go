package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// Damage is one way in which a stored bundle is not what its digest names.
type Damage struct {
	Path string // relative to the directory named by the digest; must be quoted before it is shown
	What string // a clause for people
}

// DamagedError says how a stored bundle differs from what its digest names.
type DamagedError struct {
	Digest Digest
	Damage []Damage // at least one, in the order of paths
}

// Error names the first difference, and how many others there are.
func (e *DamagedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bundle %s is damaged: %s: %s", e.Digest.Short(), display.Quote(e.Damage[0].Path), e.Damage[0].What)
	if n := len(e.Damage) - 1; n > 0 {
		fmt.Fprintf(&b, " (and %d more)", n)
	}
	return b.String()
}

// Verify reads the whole bundle that d names and compares it with its digest: content, names,
// types and modes. The error is nil, a *DamagedError, fs.ErrNotExist by errors.Is, or ctx's.
func (s *Store) Verify(ctx context.Context, d Digest) error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("verify bundle %s: %w", d.Short(), err)
	}
	defer root.Close()
	if err := s.verify(ctx, root, d); err != nil {
		if _, ok := errors.AsType[*DamagedError](err); ok {
			return err
		}
		return fmt.Errorf("verify bundle %s: %w", d.Short(), err)
	}
	return nil
}

func (s *Store) verify(ctx context.Context, root *os.Root, d Digest) error {
	b, err := openBundle(root, d)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.verify(ctx, s.limits.FileBytes)
}

// verify compares the bundle with its manifest. A file over max bytes is damaged unread.
func (b *Bundle) verify(ctx context.Context, max int64) error {
	c := comparison{root: b.root, want: b.Manifest, max: max, seen: make(map[string]bool, len(b.Manifest.entries))}
	info, err := b.root.Lstat(".")
	if err != nil {
		return err
	}
	c.mode(".", info.Mode(), Dir)
	if err := c.dir(ctx, "."); err != nil {
		return err
	}
	for _, e := range b.Manifest.entries {
		if !c.seen[e.Path] {
			c.damage(e.Path, "it is missing")
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	slices.SortStableFunc(c.found, func(a, b Damage) int { return strings.Compare(a.Path, b.Path) })
	return &DamagedError{Digest: b.Manifest.Digest(), Damage: c.found}
}

// comparison holds what a copy is compared with, and the differences found so far.
type comparison struct {
	root  *os.Root
	want  *Manifest
	max   int64 // bytes that a file can have
	seen  map[string]bool
	found []Damage
}

func (c *comparison) damage(p, format string, args ...any) {
	c.found = append(c.found, Damage{p, fmt.Sprintf(format, args...)})
}

// dir compares the directory at p, which was seen to be one. What does not belong is named and not
// entered, so that a copy cannot make verifying it cost more than the bundle is worth.
func (c *comparison) dir(ctx context.Context, p string) error {
	f, err := c.root.OpenFile(p, readFlags, 0)
	if err != nil {
		return c.unread(p, err)
	}
	names, err := f.Readdirnames(len(c.want.entries) + 2)
	f.Close()
	if err != nil && len(names) == 0 {
		names = nil
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := path.Join(p, name)
		if p == "." && name == manifestName(c.want.Name()) { // openBundle has held it to the digest
			if info, err := c.root.Lstat(name); err == nil {
				c.mode(name, info.Mode(), File)
			}
			continue
		}
		e, ok := c.want.lookup(at)
		if !ok {
			c.damage(at, "it does not belong there")
			continue
		}
		c.seen[at] = true
		if err := c.entry(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// mode compares the permission, set-id and sticky bits of what is at p with those of its kind.
func (c *comparison) mode(p string, got fs.FileMode, k Kind) {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	if hasExecBits && got&bits != k.Perm() {
		c.damage(p, "its mode is %v, not %v", got, got.Type()|k.Perm())
	}
}

// unread makes an error of reading p damage, where it is the fault of what is there.
func (c *comparison) unread(p string, err error) error {
	if !errors.Is(err, errChanged) && !ofThePath(err) {
		return err
	}
	c.damage(p, "%s", unreadable(p, err).Detail)
	return nil
}

func (c *comparison) entry(ctx context.Context, e Entry) error {
	info, err := c.root.Lstat(e.Path)
	if err != nil {
		return c.unread(e.Path, err)
	}
	mode := info.Mode()
	switch {
	case e.Kind == Dir && !mode.IsDir():
		c.damage(e.Path, "it is not a directory")
		return nil
	case e.Kind != Dir && !mode.IsRegular():
		c.damage(e.Path, "it is not a regular file")
		return nil
	}
	c.mode(e.Path, mode, e.Kind)
	if e.Kind == Dir {
		return c.dir(ctx, e.Path)
	}
	if info.Size() > c.max {
		c.damage(e.Path, "it is larger than %s, as no file of a bundle here is", formatBytes(c.max))
		return nil
	}
	sum := sha256.New()
	if err := copyStable(ctx, sum, local{c.root}, e.Path, info); err != nil {
		return c.unread(e.Path, err)
	}
	if [32]byte(sum.Sum(nil)) != e.SHA256 {
		c.damage(e.Path, "its content is not what was pinned")
	}
	return nil
}
