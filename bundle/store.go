package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/punnet/punnet/internal/atomicfile"
)

// Names in a store that are not bundles. They start with a dot, so that no digest meets them.
const (
	lockName        = ".lock"    // shared by all who add or hold, exclusive for one who sweeps or collects
	replaceLockName = ".replace" // exclusive for one who replaces a damaged bundle
	stagePrefix     = ".tmp-"
	trashPrefix     = ".trash-"
)

// lockPause is how long a process waits before it tries a lock again.
const lockPause = 20 * time.Millisecond

// maxManifestBytes bounds what is read as a manifest: what the largest bundle of the default
// limits can have, several times over.
const maxManifestBytes = 16 << 20

// Store keeps bundles on this machine. Several processes may use one store at once.
type Store struct {
	dir    string
	limits Limits
}

// OpenStore returns the store in a directory, which need not exist: the first pin creates it. dir
// must be absolute. limits are those of the bundles that are put there; they bound what is imported,
// and how much of something damaged is read before it is known for that.
func OpenStore(dir string, limits Limits) (*Store, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("store %s: the path is not absolute", dir)
	}
	return &Store{dir: filepath.Clean(dir), limits: limits.withDefaults()}, nil
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// Path returns the absolute path of a bundle's skill directory in the store, whether or not it is
// there.
func (s *Store) Path(d Digest, name string) string { return filepath.Join(s.dir, d.String(), name) }

// manifestName returns the name of a bundle's manifest beside its top directory: "manifest",
// unless the skill itself has that name on some file system.
func manifestName(top string) string {
	if foldName(top) == "manifest" {
		return ".manifest"
	}
	return "manifest"
}

// Bundle is a bundle in a store, opened for reading. Its content is checked as it is read.
type Bundle struct {
	Manifest *Manifest
	root     *os.Root // the directory named by the digest
}

// Close gives the bundle up.
func (b *Bundle) Close() error { return b.root.Close() }

// Open opens the bundle that d names. errors.Is tells fs.ErrNotExist where the store has none, and
// *DamagedError where it has something else under that name. The content of files is not read.
func (s *Store) Open(d Digest) (*Bundle, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, fmt.Errorf("open bundle %s: %w", d.Short(), err)
	}
	defer root.Close()
	b, err := openBundle(root, d)
	if err != nil {
		return nil, fmt.Errorf("open bundle %s: %w", d.Short(), err)
	}
	return b, nil
}

func openBundle(store *os.Root, d Digest) (*Bundle, error) {
	info, err := store.Lstat(d.String())
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &DamagedError{Digest: d, Damage: []Damage{{".", "it is " + describe(info.Mode()) + ", not a directory"}}}
	}
	root, err := store.OpenRoot(d.String())
	if err != nil {
		return nil, unreadableBundle(d, ".", err)
	}
	m, err := readManifest(root, d)
	if err != nil {
		root.Close()
		return nil, err
	}
	return &Bundle{Manifest: m, root: root}, nil
}

// readManifest reads the manifest beside a bundle's top directory and holds it to the digest, which
// makes it as good as the digest is.
func readManifest(root *os.Root, d Digest) (*Manifest, error) {
	for _, name := range []string{"manifest", ".manifest"} {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		text, err := readStable(local{root}, name, info, maxManifestBytes)
		if err != nil {
			return nil, unreadableBundle(d, name, err)
		}
		m, err := ParseManifest(text)
		if err != nil {
			return nil, &DamagedError{Digest: d, Damage: []Damage{{name, err.Error()}}}
		}
		if m.Digest() != d {
			return nil, &DamagedError{Digest: d, Damage: []Damage{{name, "it is another bundle's"}}}
		}
		return m, nil
	}
	return nil, &DamagedError{Digest: d, Damage: []Damage{{"manifest", "it is missing"}}}
}

// unreadableBundle makes an error of reading a bundle damage, where it is the bundle's fault.
func unreadableBundle(d Digest, p string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || !ofThePath(err) {
		return err
	}
	return &DamagedError{Digest: d, Damage: []Damage{{p, unreadable(p, err).Detail}}}
}

// Info describes one bundle of a store.
type Info struct {
	Digest Digest
	Name   string    // the skill directory's
	Files  int       // regular files in it
	Bytes  int64     // of content
	Pinned time.Time // when it was last put there, or found there already
	Err    error     // why the rest is not known: a *DamagedError
}

// List returns the store's bundles in the order of their digests, without reading their content. A
// store that does not exist yet has none.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list store: %w", err)
	}
	defer root.Close()
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list store: %w", err)
	}
	var infos []Info
	for _, e := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := ParseDigest(e.Name())
		if err != nil {
			continue
		}
		info, err := describeBundle(root, d)
		if errors.Is(err, fs.ErrNotExist) {
			continue // collected meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list store: bundle %s: %w", d.Short(), err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func describeBundle(store *os.Root, d Digest) (Info, error) {
	info := Info{Digest: d}
	st, err := store.Lstat(d.String())
	if err != nil {
		return info, err
	}
	info.Pinned = st.ModTime()
	b, err := openBundle(store, d)
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		info.Err = damaged
		return info, nil
	}
	if err != nil {
		return info, err
	}
	defer b.Close()
	info.Name, info.Files = b.Manifest.Name(), b.Manifest.Files()
	for _, e := range b.Manifest.Entries() {
		if st, err := b.root.Lstat(e.Path); err == nil && e.Kind != Dir {
			info.Bytes += st.Size()
		}
	}
	return info, nil
}

// writable opens the store for adding to it, creating it first where need be, and returns a
// function that ends the use. While it lasts no other process sweeps the store or collects from it.
func (s *Store) writable(ctx context.Context) (*os.Root, func(), error) {
	if err := atomicfile.MkdirAll(s.dir); err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, nil, err
	}
	lock, err := s.lock(root, lockName)
	if err != nil {
		root.Close()
		return nil, nil, err
	}
	// Alone in the store, nothing unfinished is anybody's any more.
	if alone, err := lock.TryLock(); err == nil && alone {
		sweep(root)
		lock.Unlock()
	}
	if _, err := lock.TryRLockContext(ctx, lockPause); err != nil {
		lock.Close()
		root.Close()
		return nil, nil, fmt.Errorf("lock the store: %w", err)
	}
	return root, func() {
		lock.Close()
		root.Close()
	}, nil
}

// lock returns the lock of that name, not held. Its file is made here because the umask may leave
// one that not even its owner can open.
func (s *Store) lock(root *os.Root, name string) (*flock.Flock, error) {
	if f, err := createFile(root, name, File); err == nil {
		f.Close()
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err := root.Lstat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() { // opening it could wait for ever, or lead elsewhere
		return nil, fmt.Errorf("lock the store: %s is %s, not a file; remove it", name, describe(info.Mode()))
	}
	return flock.New(filepath.Join(s.dir, name)), nil
}

// sweep removes what ended processes left unfinished. What cannot be removed is left for the next.
func sweep(root *os.Root) {
	names, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range names {
		if atomicfile.IsTemp(e.Name(), stagePrefix) || atomicfile.IsTemp(e.Name(), trashPrefix) {
			removeTree(root, e.Name())
		}
	}
}

// removeTree removes what is at name and below it. A directory that its owner may not write to is
// made writable first; nothing is done through a link.
func removeTree(root *os.Root, name string) {
	if root.RemoveAll(name) == nil {
		return
	}
	open := func(p string) {
		if info, err := root.Lstat(p); err == nil && info.IsDir() {
			root.Chmod(p, 0o700)
		}
	}
	open(name)
	fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			open(p)
		}
		return nil
	})
	root.RemoveAll(name)
}
