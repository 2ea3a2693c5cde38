package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// Kind is what an entry of a bundle is: the first character of its manifest line.
type Kind byte

// The kinds of entries.
const (
	Dir  Kind = 'd' // a directory, mode 0700
	File Kind = 'f' // a file, mode 0600
	Exec Kind = 'x' // an executable file, mode 0700
)

// Perm returns the permission bits an entry of this kind has in every copy.
func (k Kind) Perm() fs.FileMode {
	if k == File {
		return 0o600
	}
	return 0o700
}

// Entry is one directory or file of a bundle.
type Entry struct {
	Path   string // with slashes, from the top directory on: release/SKILL.md
	Kind   Kind
	SHA256 [32]byte // of a file's content; zero for a directory
}

// line returns the entry's line in the manifest, LF included.
func (e Entry) line() string {
	if e.Kind == Dir {
		return "d ./" + e.Path + "\n"
	}
	return string(e.Kind) + " " + hex.EncodeToString(e.SHA256[:]) + "  ./" + e.Path + "\n"
}

// Manifest is the content of a bundle, by name: its entries in the order of their paths' bytes, so
// that a directory comes before what it holds. The first is the top directory. A Manifest does not
// change.
type Manifest struct {
	entries []Entry
	text    []byte
	digest  Digest
}

// newManifest takes entries in any order. They must form one tree; its callers see to that.
func newManifest(entries []Entry) *Manifest {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.line()
	}
	slices.Sort(lines)
	m := &Manifest{entries: entries, text: []byte(strings.Join(lines, ""))}
	m.digest = sha256.Sum256(m.text)
	return m
}

// Name returns the name of the top directory: the skill directory's.
func (m *Manifest) Name() string { return m.entries[0].Path }

// Entries returns the entries in the order of their paths, the top directory first. The caller must
// not change them.
func (m *Manifest) Entries() []Entry { return m.entries }

// Files returns how many entries are files.
func (m *Manifest) Files() int {
	n := 0
	for _, e := range m.entries {
		if e.Kind != Dir {
			n++
		}
	}
	return n
}

// Digest returns the bundle's name: the SHA-256 of Text.
func (m *Manifest) Digest() Digest { return m.digest }

// Text returns the manifest as the package's format defines it.
func (m *Manifest) Text() []byte { return bytes.Clone(m.text) }

// lookup returns the entry at a path.
func (m *Manifest) lookup(p string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(m.entries, p, func(e Entry, p string) int { return strings.Compare(e.Path, p) })
	if !ok {
		return Entry{}, false
	}
	return m.entries[i], true
}

// ParseManifest reads the text of a manifest. It accepts exactly what Text can return for some
// tree: sorted lines, good names without collisions, one top directory, and every parent present.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) == 0 || text[len(text)-1] != '\n' {
		return nil, errors.New("manifest: the last line has no end")
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	entries := make([]Entry, len(lines))
	for i, l := range lines {
		if i > 0 && l <= lines[i-1] {
			return nil, fmt.Errorf("manifest: line %d is not in order", i+1)
		}
		e, err := parseLine(l)
		if err != nil {
			return nil, fmt.Errorf("manifest: line %d: %w", i+1, err)
		}
		entries[i] = e
	}
	m := newManifest(entries)
	if err := m.checkTree(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func parseLine(l string) (Entry, error) {
	kind, rest, _ := strings.Cut(l, " ")
	var e Entry
	switch kind {
	case "d":
		e.Kind = Dir
	case "f", "x":
		e.Kind = Kind(kind[0])
		sum, name, ok := strings.Cut(rest, "  ")
		if !ok {
			return Entry{}, errors.New("no path")
		}
		if err := parseHex(e.SHA256[:], sum); err != nil {
			return Entry{}, err
		}
		rest = name
	default:
		return Entry{}, fmt.Errorf("unknown kind %q", kind)
	}
	p, ok := strings.CutPrefix(rest, "./")
	if !ok {
		return Entry{}, errors.New("the path does not start with ./")
	}
	e.Path = p
	return e, nil
}

// checkTree holds the entries to the format: unique good names below one top directory.
func (m *Manifest) checkTree() error {
	dirs := map[string]siblings{}
	for i, e := range m.entries {
		parent, name := path.Split(e.Path)
		parent = strings.TrimSuffix(parent, "/")
		if err := CheckName(name); err != nil {
			return fmt.Errorf("%s: %w", display.Quote(e.Path), err)
		}
		if !fs.ValidPath(e.Path) {
			return fmt.Errorf("%s: not a path of plain elements", display.Quote(e.Path))
		}
		if i == 0 {
			if parent != "" || e.Kind != Dir {
				return fmt.Errorf("%s: the first path is not a top directory", display.Quote(e.Path))
			}
		} else {
			in, ok := dirs[parent]
			if !ok {
				return fmt.Errorf("%s: its directory is not in the manifest", display.Quote(e.Path))
			}
			if earlier := in.add(name); earlier != "" {
				return fmt.Errorf("%s: collides with %s", display.Quote(e.Path), display.Quote(earlier))
			}
		}
		if e.Kind == Dir {
			dirs[e.Path] = siblings{}
		}
	}
	return nil
}
