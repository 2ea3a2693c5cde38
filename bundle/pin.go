package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/internal/atomicfile"
)

// copiers is how many files are copied into the store and synced at once. Syncing waits for the
// disk, and a file system that is asked for several at once writes them together.
const copiers = 8

// Pinned is a bundle that is in a store, whole.
type Pinned struct {
	Digest Digest
	Name   string // the skill directory's
	Path   string // the skill directory in the store, absolute
	Files  int    // regular files in it
	Bytes  int64  // of content
	New    bool   // it was not there before
	Mended bool   // it was there, damaged, and was replaced
}

// Pin scans a skill directory and puts it into the store as it was at that moment. accept, where it
// is not nil, is shown each scan before anything is written, and its error ends the pin: a harness
// judges the skill file there that it will use. A bundle that is in the store already is verified
// and, if it is damaged, replaced. The report accounts for the directory and is returned with every
// error.
//
// The error is a *RejectedError where the directory cannot become a bundle, accept's, ctx's, or one
// from the system (errors.Is tells syscall.ENOSPC and the like). After any of them, as after a
// crash, the store holds the bundle as it did before.
func (s *Store) Pin(ctx context.Context, src *Source, rules Rules, accept func(*Tree) error) (Pinned, *Report, error) {
	var pinned Pinned
	judge := func(t *Tree, _ *Report) error {
		if accept == nil {
			return nil
		}
		return accept(t)
	}
	report, err := scanAccepted(ctx, src, rules, judge, func(t *Tree) (err error) {
		pinned, err = s.put(ctx, t)
		return err
	})
	if err != nil {
		return Pinned{}, report, err
	}
	return pinned, report, nil
}

// scanAccepted scans a skill directory, has accept judge the scan, if it is not nil, and hands it to use.
// Where the directory changes meanwhile it starts over, a few times, and then is a *RejectedError.
func scanAccepted(ctx context.Context, src *Source, rules Rules, accept func(*Tree, *Report) error, use func(*Tree) error) (*Report, error) {
	var report *Report
	err := retryChanging(ctx, func() error {
		tree, r, err := src.Scan(ctx, rules)
		report = r
		if err != nil {
			return err
		}
		if accept != nil {
			if err := accept(tree, r); err != nil {
				return err
			}
		}
		return use(tree)
	})
	if errors.Is(err, errChanged) {
		f := changing(".")
		report.Findings = append(report.Findings, f)
		err = &RejectedError{Name: src.Name, Findings: []Finding{f}}
	}
	return report, err
}

// Import puts a packed bundle into the store, from a stream that may come from anywhere: before it
// gets its name it is held to the store's limits and to the digest it is packed as, as Unpack says, and the
// errors are Unpack's and the system's.
func (s *Store) Import(ctx context.Context, r io.Reader) (Pinned, error) {
	root, done, err := s.writable(ctx)
	if err != nil {
		return Pinned{}, fmt.Errorf("import bundle: %w", err)
	}
	defer done()
	pinned, err := s.place(ctx, root, func(stage *os.Root) (*Manifest, error) {
		return Unpack(ctx, r, stage, s.limits)
	})
	if err != nil {
		return Pinned{}, fmt.Errorf("import bundle: %w", err)
	}
	return pinned, nil
}

// put makes sure that the store holds the tree, whole, and writes no content if it does.
func (s *Store) put(ctx context.Context, t *Tree) (Pinned, error) {
	root, done, err := s.writable(ctx)
	if err != nil {
		return Pinned{}, fmt.Errorf("pin: %w", err)
	}
	defer done()
	err = s.verify(ctx, root, t.Manifest.Digest())
	if err == nil {
		now := time.Now()
		root.Chtimes(t.Manifest.Digest().String(), now, now) // for Info.Pinned; where it cannot be, no harm is done
		return s.pinned(root, t.Manifest, present)
	}
	if _, damaged := errors.AsType[*DamagedError](err); !damaged && !errors.Is(err, fs.ErrNotExist) {
		return Pinned{}, fmt.Errorf("pin: %w", err)
	}
	pinned, err := s.place(ctx, root, func(stage *os.Root) (*Manifest, error) {
		return t.Manifest, t.copyTo(ctx, stage)
	})
	if err != nil {
		return Pinned{}, fmt.Errorf("pin: %w", err)
	}
	return pinned, nil
}

// place has fill write a bundle's top directory into a staging directory, and gives it its name.
func (s *Store) place(ctx context.Context, root *os.Root, fill func(stage *os.Root) (*Manifest, error)) (Pinned, error) {
	stage := atomicfile.TempName(stagePrefix)
	defer removeTree(root, stage) // after the rename it is gone already
	m, err := writeStage(root, stage, fill)
	if err != nil {
		return Pinned{}, err
	}
	how, err := s.commit(ctx, root, stage, m.Digest())
	if err != nil {
		return Pinned{}, err
	}
	return s.pinned(root, m, how)
}

func (s *Store) pinned(root *os.Root, m *Manifest, how arrival) (Pinned, error) {
	info, err := describeBundle(root, m.Digest())
	if err == nil {
		err = info.Err
	}
	return Pinned{
		Digest: m.Digest(), Name: m.Name(), Path: s.Path(m.Digest(), m.Name()),
		Files: info.Files, Bytes: info.Bytes, New: how == arrived, Mended: how == replaced,
	}, err
}

// writeStage makes a staging directory, has fill write into it, and adds the manifest. All of it is
// synced when it returns.
func writeStage(root *os.Root, stage string, fill func(*os.Root) (*Manifest, error)) (*Manifest, error) {
	if err := makeDir(root, stage); err != nil {
		return nil, err
	}
	in, err := root.OpenRoot(stage)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m, err := fill(in)
	if err != nil {
		return nil, err
	}
	f, err := createFile(in, manifestName(m.Name()), File)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(m.text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return m, atomicfile.SyncDir(in, ".")
}

// arrival is how a bundle came to have its name.
type arrival int

const (
	arrived  arrival = iota // nothing had the name
	replaced                // something damaged had it
	present                 // the bundle had it already
)

// commitTries bounds how often a name is taken from under a commit before it gives up.
const commitTries = 5

// commit gives a staging directory its name. Where something has the name already, it is verified:
// what is whole stays, and the caller's is not needed; what is not is replaced.
func (s *Store) commit(ctx context.Context, root *os.Root, stage string, d Digest) (arrival, error) {
	var err error
	for range commitTries {
		if err = root.Rename(stage, d.String()); err == nil {
			return arrived, atomicfile.SyncDir(root, ".")
		}
		if _, serr := root.Lstat(d.String()); errors.Is(serr, fs.ErrNotExist) && errors.Is(err, fs.ErrExist) {
			continue // a process that replaces it has just set it aside
		} else if serr != nil {
			return 0, err
		}
		verr := s.verify(ctx, root, d)
		if verr == nil {
			return present, atomicfile.SyncDir(root, ".") // who renamed it may not have come to this
		}
		if _, damaged := errors.AsType[*DamagedError](verr); damaged {
			done, rerr := s.replace(ctx, root, stage, d)
			if rerr != nil {
				return 0, rerr
			}
			if done {
				return replaced, atomicfile.SyncDir(root, ".")
			}
		} else if !errors.Is(verr, fs.ErrNotExist) {
			return 0, verr
		}
	}
	return 0, fmt.Errorf("the name is taken again and again: %w", err)
}

// replace puts a staging directory in the place of a damaged bundle, and reports whether it did. One
// process at a time replaces, and looks again when its turn has come: else the second of two that
// saw the damage would set aside what the first has just mended.
func (s *Store) replace(ctx context.Context, root *os.Root, stage string, d Digest) (bool, error) {
	lock, err := s.lock(root, replaceLockName)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return false, fmt.Errorf("lock the store: %w", err)
	}
	if _, damaged := errors.AsType[*DamagedError](s.verify(ctx, root, d)); !damaged {
		return false, nil
	}
	trash := atomicfile.TempName(trashPrefix)
	if err := root.Rename(d.String(), trash); err != nil {
		return false, err
	}
	defer removeTree(root, trash)
	if err := root.Rename(stage, d.String()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return false, nil // a process that saw the name free was faster
		}
		return false, err
	}
	return true, nil
}

// copyTo writes the tree below dst and syncs it: files first, then directories from the bottom up.
func (t *Tree) copyTo(ctx context.Context, dst *os.Root) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(copiers)
	for _, f := range t.files {
		if f.entry.Kind == Dir {
			if err := makeDir(dst, f.entry.Path); err != nil {
				g.Wait()
				return err
			}
			continue
		}
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			return t.copyFile(gctx, dst, f)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return syncDirs(dst, t.Manifest)
}

// copyFile copies one file, and makes sure that what it copied is what was scanned.
func (t *Tree) copyFile(ctx context.Context, dst *os.Root, f scanned) error {
	out, err := createFile(dst, f.entry.Path, f.entry.Kind)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	if err := copyStable(ctx, io.MultiWriter(out, sum), t.source.files, f.real, f.info); err != nil {
		return err
	}
	if [32]byte(sum.Sum(nil)) != f.entry.SHA256 {
		return errChanged
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return out.Close()
}

// syncDirs makes the names of a tree durable, from the bottom up.
func syncDirs(dst *os.Root, m *Manifest) error {
	for i := len(m.entries) - 1; i >= 0; i-- {
		if e := m.entries[i]; e.Kind == Dir {
			if err := atomicfile.SyncDir(dst, e.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// createFile creates a file that must not exist, with the mode its kind has whatever the umask is.
func createFile(dst *os.Root, name string, k Kind) (*os.File, error) {
	f, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, k.Perm())
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(k.Perm()); err != nil && hasExecBits {
		f.Close()
		return nil, err
	}
	return f, nil
}

// makeDir creates a directory that must not exist, private whatever the umask and its parent are.
func makeDir(dst *os.Root, name string) error {
	if err := dst.Mkdir(name, Dir.Perm()); err != nil {
		return err
	}
	return dst.Chmod(name, Dir.Perm())
}
