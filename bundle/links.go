package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// linkError is why a link cannot be followed.
type linkError struct {
	reason Reason
	detail string
}

func (e *linkError) Error() string { return e.detail }

// resolution is a link on its way to what it points to.
type resolution struct {
	root SourceFS
	cur  []string // resolved so far: real directories, then what was reached
	rest []string // elements still to go
	hops []string // the links followed
	seen func(name string, info fs.FileInfo)
}

// resolveLink follows the link at name, whose parent directories are real, one element at a time,
// and returns the real path inside root it ends at and what is there. It never asks the system to
// follow a link, so each step can be held to the skill directory and the reason told. seen is
// called for everything that was looked at on the way, for checking afterwards that it stayed so.
func resolveLink(root SourceFS, name string, seen func(string, fs.FileInfo)) (string, fs.FileInfo, error) {
	r := &resolution{root: root, seen: seen}
	if dir := path.Dir(name); dir != "." {
		r.cur = strings.Split(dir, "/")
	}
	if err := r.follow(name); err != nil {
		return "", nil, err
	}
	info, err := root.Lstat(r.path())
	for err == nil && len(r.rest) > 0 {
		info, err = r.step()
	}
	if err != nil {
		return "", nil, err
	}
	return r.path(), info, nil
}

func (r *resolution) path() string {
	if len(r.cur) == 0 {
		return "."
	}
	return strings.Join(r.cur, "/")
}

// follow puts what the link at name points to before the rest of the way.
func (r *resolution) follow(name string) error {
	r.hops = append(r.hops, name)
	if len(r.hops) > MaxLinkHops {
		if slices.Contains(r.hops[:MaxLinkHops], name) {
			return &linkError{LinkCycles, "the link leads back to itself"}
		}
		return &linkError{LinkTooLong, fmt.Sprintf("more than %d links lead from one to the next", MaxLinkHops)}
	}
	raw, err := r.root.Readlink(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errChanged, err)
	}
	target := filepath.ToSlash(raw)
	if path.IsAbs(target) || filepath.IsAbs(raw) || filepath.VolumeName(raw) != "" {
		return &linkError{LinkEscapes, fmt.Sprintf("the link is absolute (to %s), and links must stay inside the skill; make it relative or a copy", display.Quote(raw))}
	}
	r.rest = append(strings.Split(target, "/"), r.rest...)
	return nil
}

// step takes the next element of the way and returns what the way so far leads to.
func (r *resolution) step() (fs.FileInfo, error) {
	elem := r.rest[0]
	r.rest = r.rest[1:]
	switch elem {
	case "", ".":
		return r.look(r.path())
	case "..":
		if len(r.cur) == 0 {
			return nil, &linkError{LinkEscapes, "the link leaves the skill; make it a copy"}
		}
		r.cur = r.cur[:len(r.cur)-1]
		return r.look(r.path())
	}
	name := path.Join(r.path(), elem)
	info, err := r.look(name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if err := r.follow(name); err != nil {
			return nil, err
		}
		return info, nil
	}
	r.cur = append(r.cur[:len(r.cur):len(r.cur)], elem)
	if !info.IsDir() && len(r.rest) > 0 {
		return nil, &linkError{LinkDangles, fmt.Sprintf("the link needs %s to be a directory", display.Quote(name))}
	}
	return info, nil
}

func (r *resolution) look(name string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &linkError{LinkDangles, fmt.Sprintf("the link points to %s, which does not exist", display.Quote(name))}
	}
	if err != nil {
		return nil, err
	}
	r.seen(name, info)
	return info, nil
}
