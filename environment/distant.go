package environment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// Distant is a skill directory on a target, as a bundle.SourceFS. All its directories and links are
// looked at once, many at a time, when it is opened; files are read when they are asked for.
type Distant struct {
	files transport.Reader
	dir   string                 // its real path
	infos map[string]fs.FileInfo // by the path beneath dir
	names map[string][]string    // of a directory
	links map[string]linkTarget  // by the path beneath dir
	fails map[string]error       // why a directory was not listed
	cut   map[string]bool        // a directory has more names than were listed

	mu   sync.Mutex
	lost error // an error that says nothing about a file
}

type linkTarget struct {
	path string
	err  error
}

// distantAtOnce is how much of a target is looked at in one go.
const distantAtOnce = 64

// OpenSkill opens the skill directory at an absolute path on a target. It looks no further than the
// rules let a skill reach. The Source reads from the Distant, which says after a failure whether that
// was the target's.
func OpenSkill(files transport.Reader, at string, rules bundle.Rules) (*bundle.Source, *Distant, error) {
	at = path.Clean(at)
	d := &Distant{files: files, infos: map[string]fs.FileInfo{}, names: map[string][]string{}, links: map[string]linkTarget{}, fails: map[string]error{}, cut: map[string]bool{}}
	var info fs.FileInfo
	var missing, err error
	var g errgroup.Group
	g.Go(func() error {
		info, missing = files.Lstat(at)
		return nil
	})
	g.Go(func() error {
		d.dir, err = files.RealPath(at)
		return nil
	})
	g.Wait()
	if missing != nil {
		return nil, nil, missing // the same from every server, where RealPath's error is not
	}
	linked := info.Mode()&fs.ModeSymlink != 0
	if err == nil && d.dir != at {
		info, err = files.Lstat(d.dir)
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return nil, nil, errors.New("it is not a directory")
	}
	d.infos["."] = info
	d.look(rules)
	return bundle.NewSource(path.Base(at), at, linked, d), d, nil
}

// look lists the directories level by level, until there is more than a skill may have.
func (d *Distant) look(rules bundle.Rules) {
	entries, levels := rules.Entries, rules.Levels
	if entries == 0 {
		entries = bundle.MaxEntries
	}
	if levels == 0 {
		levels = bundle.MaxLevels
	}
	most := entries + len(rules.LeaveOut) + 1
	level := []string{"."}
	for depth, seen := 0, 0; len(level) > 0 && depth <= levels && seen <= entries; depth++ {
		found := make([][]fs.FileInfo, len(level))
		failed := make([]error, len(level))
		d.each(len(level), func(i int) { found[i], failed[i] = d.files.ReadDir(d.path(level[i]), most) })
		var next, links []string
		for i, dir := range level {
			if failed[i] != nil && !errors.Is(failed[i], transport.ErrTooLarge) {
				d.fails[dir] = d.note(failed[i])
				continue
			}
			d.cut[dir] = failed[i] != nil
			for _, info := range found[i] {
				name := strings.Clone(info.Name())
				d.names[dir] = append(d.names[dir], name)
				if bundle.CheckName(name) != nil {
					continue // which is the end of it
				}
				p := path.Join(dir, name)
				d.infos[p] = info
				if slices.Contains(rules.LeaveOut, name) {
					continue // looked at only where a link leads there
				}
				seen++
				switch {
				case info.IsDir():
					next = append(next, p)
				case info.Mode()&fs.ModeSymlink != 0:
					links = append(links, p)
				}
			}
		}
		targets := make([]linkTarget, len(links))
		d.each(len(links), func(i int) { targets[i].path, targets[i].err = d.files.ReadLink(d.path(links[i])) })
		for i, p := range links {
			d.links[p] = linkTarget{targets[i].path, d.note(targets[i].err)}
		}
		level = next
	}
}

func (d *Distant) path(name string) string { return path.Join(d.dir, name) }

// each calls f for 0 to n-1, several at once.
func (d *Distant) each(n int, f func(int)) {
	var g errgroup.Group
	g.SetLimit(distantAtOnce)
	for i := range n {
		g.Go(func() error {
			f(i)
			return nil
		})
	}
	g.Wait()
}

// note returns err, and keeps it where it says nothing about a file.
func (d *Distant) note(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, transport.ErrTooLarge) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = err
	}
	return err
}

// Alive returns why the target does not answer any more, where something failed for a reason that is
// not a file's.
func (d *Distant) Alive() error {
	d.mu.Lock()
	lost := d.lost
	d.mu.Unlock()
	if lost == nil {
		return nil
	}
	if _, err := d.files.Lstat(d.dir); err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return lost
}

// Lstat implements bundle.SourceFS: it describes what was there when the directory was opened.
func (d *Distant) Lstat(name string) (fs.FileInfo, error) {
	name = path.Clean(name)
	if info := d.infos[name]; info != nil {
		return info, nil
	}
	if dir := path.Dir(name); d.names[dir] != nil && !d.cut[dir] {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	info, err := d.files.Lstat(d.path(name))
	return info, d.note(err)
}

// Readlink implements bundle.SourceFS.
func (d *Distant) Readlink(name string) (string, error) {
	name = path.Clean(name)
	if l, ok := d.links[name]; ok {
		return l.path, l.err
	}
	target, err := d.files.ReadLink(d.path(name))
	return target, d.note(err)
}

// Open implements bundle.SourceFS.
func (d *Distant) Open(name string) (bundle.SourceFile, error) {
	name = path.Clean(name)
	info := d.infos[name]
	if info == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err := d.fails[name]; err != nil {
		return nil, err
	}
	return &distantFile{d: d, name: name, info: info}, nil
}

// distantFile is a file or directory of a distant one.
type distantFile struct {
	d    *Distant
	name string
	info fs.FileInfo
	data *bytes.Reader // what is left to read; nil before the first Read
	next int           // of a directory's names
}

// Stat describes a file as it is now, and a directory as it was listed.
func (f *distantFile) Stat() (fs.FileInfo, error) {
	if f.info.IsDir() {
		return f.info, nil
	}
	info, err := f.d.files.Lstat(f.d.path(f.name))
	return info, f.d.note(err)
}

func (f *distantFile) Read(p []byte) (int, error) {
	if f.data == nil {
		data, err := f.d.files.ReadFile(f.d.path(f.name), f.info.Size())
		// One that has grown since reads as nothing, which is not what it was.
		if err != nil && !errors.Is(err, transport.ErrTooLarge) {
			return 0, f.d.note(err)
		}
		f.data = bytes.NewReader(data)
	}
	return f.data.Read(p)
}

func (f *distantFile) Readdirnames(n int) ([]string, error) {
	names := f.d.names[f.name][f.next:]
	if len(names) == 0 {
		return nil, io.EOF
	}
	names = names[:min(n, len(names))]
	f.next += len(names)
	return names, nil
}

func (f *distantFile) Close() error { return nil }
