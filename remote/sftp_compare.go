package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// wanted is what a copy of a bundle must be.
type wanted struct {
	manifest *bundle.Manifest
	sizes    []int64                   // of the manifest's entries
	dirs     []string                  // the digest's own directory as "", then the manifest's, parents first
	inside   map[string]map[string]int // for each of dirs, its names and their places in the manifest
	bytes    int64
}

func newWanted(b *bundle.Bundle) (*wanted, error) {
	entries := b.Manifest.Entries()
	w := &wanted{
		manifest: b.Manifest, sizes: make([]int64, len(entries)),
		dirs: []string{""}, inside: map[string]map[string]int{"": {}},
	}
	for i, e := range entries {
		dir, name := path.Split(e.Path)
		w.inside[path.Clean("/" + dir)[1:]][name] = i
		if e.Kind == bundle.Dir {
			w.dirs = append(w.dirs, e.Path)
			w.inside[e.Path] = map[string]int{}
			continue
		}
		size, err := b.Size(e)
		if err != nil {
			return nil, err
		}
		w.sizes[i] = size
		w.bytes += size
	}
	return w, nil
}

// finding is what stands where a copy should be.
type finding struct {
	state  State
	why    string      // the first difference, for the log
	info   fs.FileInfo // what has the digest's name; nil where nothing has
	intact []bool      // of the manifest's entries, the files that are what they must be
}

func (f *finding) damage(p, what string) {
	if f.state != Damaged {
		f.state, f.why = Damaged, p+": "+what
	}
}

// listing is one directory as it was listed.
type listing struct {
	entries []fs.FileInfo
	err     error
}

func (c *sftpCache) listing(dir string, max int) (l listing) {
	l.entries, l.err = c.readDir(dir, max)
	return l
}

// compare compares the copy at dir with its manifest: names, types, sizes, modes and the fixed
// times. A file whose time alone differs is read; if its content is right it gets its time back, so
// that the next use need not read it again. Anything else about a file is damage, without a look at
// its content.
//
// All directories that the manifest names are listed at once, before it is known that they are
// directories. Where one is a link instead, that lists what it leads to, and the result is dropped.
func (c *sftpCache) compare(ctx context.Context, dir string, w *wanted) (finding, error) {
	f := finding{state: Whole, intact: make([]bool, len(w.sizes))}
	lists := make([]listing, len(w.dirs))
	err := each(ctx, len(lists)+1, func(i int) error {
		if i == 0 {
			var err error
			if f.info, err = c.fs.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				f.info, f.state = nil, Absent
				return nil
			}
			return c.failed("look at a copy", err)
		}
		d := w.dirs[i-1]
		lists[i-1] = c.listing(path.Join(dir, d), len(w.inside[d])+2)
		if err := lists[i-1].err; isOver(err) {
			return err
		}
		return nil
	})
	if err != nil || f.state == Absent {
		return f, err
	}
	if err := c.surveyed(ctx); err != nil {
		return f, err
	}
	seen, err := c.match(ctx, dir, w, lists, &f)
	if err != nil {
		return f, err
	}
	return f, c.examine(ctx, dir, w, seen, &f)
}

// match finds the manifest's entries in listings. It goes from the top down, so that only what was
// listed through directories counts.
func (c *sftpCache) match(ctx context.Context, dir string, w *wanted, lists []listing, f *finding) ([]fs.FileInfo, error) {
	seen := make([]fs.FileInfo, len(w.sizes))
	for i, d := range w.dirs {
		self := f.info
		if i > 0 {
			self = seen[w.place(d)]
		}
		if self == nil || !self.IsDir() {
			f.damage(d, "it is not a directory")
			continue
		}
		if !c.exact(self, bundle.Dir) {
			f.damage(d, "its mode is not its own")
		}
		if lists[i].err != nil {
			f.damage(d, lists[i].err.Error())
		}
		for _, info := range lists[i].entries {
			at, ok := w.inside[d][info.Name()]
			switch {
			case !ok:
				f.damage(d, "something in it does not belong there")
			case seen[at] != nil:
				f.damage(d, "a name stands there twice")
			default:
				seen[at] = info
			}
		}
		// A directory that holds more than it should was not listed to its end.
		if errors.Is(lists[i].err, transport.ErrTooLarge) {
			if err := c.find(ctx, dir, w, d, seen); err != nil {
				return nil, err
			}
		}
	}
	return seen, nil
}

// place returns where in the manifest a directory is.
func (w *wanted) place(dir string) int {
	parent, name := path.Split(dir)
	return w.inside[path.Clean("/" + parent)[1:]][name]
}

// find looks for those of a directory's entries that its listing did not come to.
func (c *sftpCache) find(ctx context.Context, dir string, w *wanted, d string, seen []fs.FileInfo) error {
	var unseen []int
	for _, at := range w.inside[d] {
		if seen[at] == nil {
			unseen = append(unseen, at)
		}
	}
	return each(ctx, len(unseen), func(i int) error {
		info, err := c.fs.Lstat(path.Join(dir, w.manifest.Entries()[unseen[i]].Path))
		if err == nil {
			seen[unseen[i]] = info
		}
		if isOver(err) {
			return c.failed("look at a copy", err)
		}
		return nil
	})
}

// examine judges the files that were found, and reads those of which the time alone is wrong.
func (c *sftpCache) examine(ctx context.Context, dir string, w *wanted, seen []fs.FileInfo, f *finding) error {
	entries := w.manifest.Entries()
	var doubtful []int
	for i, e := range entries {
		switch info := seen[i]; {
		case e.Kind == bundle.Dir:
		case info == nil:
			f.damage(e.Path, "it is missing")
		case !c.isFile(info, e.Kind, w.sizes[i]):
			f.damage(e.Path, "its type, size or mode is not its own")
		case info.ModTime().Equal(bundle.PackedTime()):
			f.intact[i] = true
		default:
			doubtful = append(doubtful, i)
		}
	}
	err := each(ctx, len(doubtful), func(k int) error {
		i := doubtful[k]
		p := path.Join(dir, entries[i].Path)
		sum, _, err := c.sum(p, w.sizes[i])
		if isOver(err) {
			return c.failed("read a copy", err)
		}
		f.intact[i] = err == nil && sum == entries[i].SHA256
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range doubtful {
		if !f.intact[i] {
			f.damage(entries[i].Path, "its content is not its own")
		}
	}
	return each(ctx, len(doubtful), func(k int) error {
		if i := doubtful[k]; f.intact[i] {
			c.restoreTime(path.Join(dir, entries[i].Path))
		}
		return nil
	})
}

// restoreTime gives a file its fixed time. Without it the file is read at every use, and no worse.
func (c *sftpCache) restoreTime(p string) {
	if err := c.fs.Chtimes(p, bundle.PackedTime()); err != nil {
		c.log.Debug("a file's time could not be set", "path", p, "error", err)
	}
}

// exact reports whether something belongs to this account and has the mode of its kind, and nothing
// beyond that.
func (c *sftpCache) exact(info fs.FileInfo, k bundle.Kind) bool {
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return !c.modes || info.Mode().Perm() == k.Perm() && info.Mode()&special == 0 && c.path.owns(info)
}

// isFile reports whether something is a regular file with a kind's mode and a size.
func (c *sftpCache) isFile(info fs.FileInfo, k bundle.Kind, size int64) bool {
	return info.Mode().IsRegular() && info.Size() == size && c.exact(info, k)
}

// readBytes is how much of one file is asked for at once.
const readBytes = 1 << 20

// sum hashes size bytes of a file that was seen to be a regular one of that size, and returns the
// first two of them besides. A file that has fewer is an error.
func (c *sftpCache) sum(p string, size int64) (sum [sha256.Size]byte, head string, err error) {
	var file transport.File
	err = c.gate.use(func() error {
		file, err = c.fs.Open(p)
		return err
	}, func() error {
		defer file.Close()
		h := sha256.New()
		var start headWriter
		// What was listed as its size is read and not one byte more: looking for the end would cost
		// a round trip.
		in := struct{ io.Reader }{io.NewSectionReader(file, 0, size)}
		n, err := io.CopyBuffer(io.MultiWriter(h, &start), in, make([]byte, min(size+1, readBytes)))
		if err == nil && n != size {
			err = fmt.Errorf("it has %d bytes, not %d", n, size)
		}
		h.Sum(sum[:0])
		head = string(start)
		return err
	})
	return sum, head, err
}

// headWriter keeps the first two bytes of what is written.
type headWriter []byte

func (h *headWriter) Write(p []byte) (int, error) {
	*h = append(*h, p[:min(len(p), 2-len(*h))]...)
	return len(p), nil
}
