package remote

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// lyingFS is a target whose listings say what a test wants, and that fails the test when it is
// asked about anything that is not a clean path below the start directory or above it.
type lyingFS struct {
	transport.FS
	t    *testing.T
	home string
	list func(dir string, list []fs.FileInfo) []fs.FileInfo
}

func (l lyingFS) asked(name string) {
	if path.Clean(name) != name || strings.ContainsAny(name, "\x00\x1b\n") ||
		!strings.HasPrefix(name, l.home) && !strings.HasPrefix(l.home, name) {
		l.t.Errorf("the target was asked about %q", name)
	}
}

func (l lyingFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	l.asked(name)
	list, err := l.FS.ReadDir(name, max)
	if err != nil {
		return list, err
	}
	list = l.list(name, list)
	if len(list) > max {
		return list[:max], transport.ErrTooLarge
	}
	return list, nil
}

func (l lyingFS) Lstat(name string) (fs.FileInfo, error)   { l.asked(name); return l.FS.Lstat(name) }
func (l lyingFS) Open(name string) (transport.File, error) { l.asked(name); return l.FS.Open(name) }
func (l lyingFS) Remove(name string) error                 { l.asked(name); return l.FS.Remove(name) }
func (l lyingFS) RemoveDir(name string) error              { l.asked(name); return l.FS.RemoveDir(name) }
func (l lyingFS) Rename(a, b string) error                 { l.asked(a); l.asked(b); return l.FS.Rename(a, b) }
func (l lyingFS) Chmod(name string, m fs.FileMode) error   { l.asked(name); return l.FS.Chmod(name, m) }

// lie is what a listing says of one entry.
type lie struct {
	name string
	mode fs.FileMode
	size int64
	fs.FileInfo
}

func (l lie) Name() string       { return l.name }
func (l lie) Mode() fs.FileMode  { return l.mode }
func (l lie) IsDir() bool        { return l.mode.IsDir() }
func (l lie) Size() int64        { return l.size }
func (l lie) ModTime() time.Time { return bundle.PackedTime() }
func (l lie) Sys() any           { return nil }

var hostileNames = []string{
	"..", ".", "", "/", "/etc/passwd", "../../outside", "a/b", "release/SKILL.md", "nul\x00", "esc\x1b[2J", "line\nend",
	"\xff", "bidi\u202e", `back\slash`, strings.Repeat("x", 300), "release", "release",
}

func hostile(mode fs.FileMode) []fs.FileInfo {
	var out []fs.FileInfo
	for _, n := range hostileNames {
		out = append(out, lie{name: n, mode: mode, size: 3})
	}
	return out
}

func TestSFTPHostileListingsLeadNowhere(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, fs.ModeDir | 0o700} {
		s := localTarget(t)
		b := sftpSkill(t, "release", releaseFiles())
		d := b.Manifest.Digest()
		mustPublish(t, s.way(), b)
		must(t, os.WriteFile(filepath.Join(s.home, "outside"), []byte("mine"), 0o600))
		way := func(at string) *sftpWay {
			return wrappedWay(s, func(f transport.FS) transport.FS {
				return lyingFS{f, t, s.home, func(dir string, list []fs.FileInfo) []fs.FileInfo {
					if dir == path.Join(s.cache(), at) {
						list = append(list, hostile(mode)...)
					}
					return list
				}}
			})
		}
		foreign := 0
		for name, state := range states(t, way("")) {
			if state == Foreign {
				foreign++
			} else if name != d.String() || state != Whole {
				t.Errorf("%q is %v", name, state)
			}
		}
		if foreign < 12 {
			t.Errorf("%d foreign entries", foreign)
		}
		for _, at := range []string{d.String(), d.String() + "/release", d.String() + "/release/references"} {
			w := way(at)
			if k := checkOne(t, w, d); k.State != Damaged {
				t.Errorf("%s: %v", at, k.State)
			}
			r, err := w.publish(t.Context(), []*bundle.Bundle{b})
			if err != nil || r[0].Outcome == Present {
				t.Errorf("%s: %+v %v", at, r, err)
			}
		}
		if _, err := way(".trash-x").prune(t.Context(), PruneOptions{}); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(filepath.Join(s.home, "outside")); err != nil || string(data) != "mine" {
			t.Errorf("what is outside: %q %v", data, err)
		}
	}
}

func TestSFTPEndlessAndHugeCopiesAreDamagedAndBounded(t *testing.T) {
	for name, list := range map[string]func(dir string, list []fs.FileInfo) []fs.FileInfo{
		"endless": func(_ string, list []fs.FileInfo) []fs.FileInfo {
			for i := range maxCopyEntries + 5 {
				list = append(list, lie{name: strings.Repeat("x", 1+i%200) + time.Duration(i).String(), mode: 0o600})
			}
			return list
		},
		"bottomless": func(_ string, list []fs.FileInfo) []fs.FileInfo {
			return []fs.FileInfo{lie{name: "d", mode: fs.ModeDir | 0o700}}
		},
		"huge": func(_ string, list []fs.FileInfo) []fs.FileInfo {
			for i, fi := range list {
				if fi.Mode().IsRegular() {
					list[i] = lie{name: fi.Name(), mode: fi.Mode(), size: 1<<63 - 1}
				}
			}
			return list
		},
		"negative": func(_ string, list []fs.FileInfo) []fs.FileInfo {
			for i, fi := range list {
				if fi.Mode().IsRegular() {
					list[i] = lie{name: fi.Name(), mode: fi.Mode(), size: -1}
				}
			}
			return list
		},
		"small": func(_ string, list []fs.FileInfo) []fs.FileInfo {
			for i, fi := range list {
				if fi.Mode().IsRegular() && fi.Size() > 0 {
					list[i] = lie{name: fi.Name(), mode: fi.Mode(), size: 1}
				}
			}
			return list
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := localTarget(t)
			b := sftpSkill(t, "release", releaseFiles())
			d := b.Manifest.Digest()
			mustPublish(t, s.way(), b)
			w := wrappedWay(s, func(f transport.FS) transport.FS {
				return depthFS{lyingFS{f, t, s.home, func(dir string, l []fs.FileInfo) []fs.FileInfo {
					if strings.HasPrefix(dir, s.copyOf(d)) {
						l = list(dir, l)
					}
					return l
				}}}
			})
			if k := checkOne(t, w, d); k.State != Damaged {
				t.Errorf("%v", k.State)
			}
		})
	}
}

// depthFS lists a directory that does not exist as if it were empty.
type depthFS struct{ lyingFS }

func (f depthFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	if _, err := f.FS.Lstat(name); err != nil {
		return f.list(name, nil), nil
	}
	return f.lyingFS.ReadDir(name, max)
}

// shiftedFS is a target whose clock is wrong by off.
type shiftedFS struct {
	transport.FS
	off time.Duration
}

type shiftedInfo struct {
	fs.FileInfo
	at time.Time
}

func (s shiftedInfo) ModTime() time.Time { return s.at }

func (s shiftedFS) info(fi fs.FileInfo) fs.FileInfo {
	if fi == nil || fi.ModTime().Equal(bundle.PackedTime()) {
		return fi
	}
	return shiftedInfo{fi, fi.ModTime().Add(s.off)}
}

func (s shiftedFS) Lstat(name string) (fs.FileInfo, error) {
	fi, err := s.FS.Lstat(name)
	return s.info(fi), err
}

func (s shiftedFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	list, err := s.FS.ReadDir(name, max)
	for i := range list {
		list[i] = s.info(list[i])
	}
	return list, err
}

func (s shiftedFS) Chtimes(name string, at time.Time) error {
	if at.Equal(bundle.PackedTime()) {
		return s.FS.Chtimes(name, at)
	}
	return s.FS.Chtimes(name, at.Add(-s.off))
}

func TestSFTPAgeIsCountedByTheTargetsClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"1970": -55 * 365 * 24 * time.Hour, "2100": 74 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := localTarget(t)
			way := func() *sftpWay {
				return wrappedWay(s, func(f transport.FS) transport.FS { return shiftedFS{f, off} })
			}
			first, second := sftpSkill(t, "first", nil), sftpSkill(t, "second", nil)
			mustPublish(t, way(), first)
			for name, age := range map[string]time.Duration{".tmp-old": 25, ".tmp-new": 23} {
				must(t, os.Mkdir(filepath.Join(s.cache(), name), 0o700))
				at := time.Now().Add(-age * time.Hour)
				must(t, os.Chtimes(filepath.Join(s.cache(), name), at, at))
			}
			mustPublish(t, way(), second)
			d1, d2 := first.Manifest.Digest().String(), second.Manifest.Digest().String()
			nothingBeside(t, s, d1, d2, ".tmp-new")
			if r := mustPublish(t, way(), first); r.Outcome != Present {
				t.Errorf("%v", r.Outcome)
			}
			removed, err := way().prune(t.Context(), PruneOptions{OlderThan: 30 * 24 * time.Hour})
			if err != nil || len(removed) != 0 {
				t.Errorf("copies used a moment ago: %v, %v", removed, err)
			}
		})
	}
}
