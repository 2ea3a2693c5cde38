//go:build unix

package remote

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
)

const hasUmask = true

func setUmask(mask int) (before int) { return syscall.Umask(mask) }

// ownedDir is a directory of some user.
type ownedDir struct {
	lie
	uid uint32
}

func (o ownedDir) Sys() any { return &syscall.Stat_t{Uid: o.uid, Gid: o.uid} }

func dirOf(uid uint32, mode fs.FileMode) fs.FileInfo {
	return ownedDir{lie{name: "x", mode: fs.ModeDir | mode}, uid}
}

func TestSFTPConfinedAccountIsKnownByWhatRootGaveIt(t *testing.T) {
	const root, me, other = 0, 1000, 1001
	for _, c := range []struct {
		name  string
		start string
		dirs  []fs.FileInfo // from / down to the cache, which is the last
		made  uint32        // who owns what this account makes
		safe  bool
	}{
		{"own home", "/h", []fs.FileInfo{dirOf(root, 0o755), dirOf(me, 0o755), dirOf(me, 0o700)}, me, true},
		{"confined", "/", []fs.FileInfo{dirOf(root, 0o755), dirOf(me, 0o700), dirOf(me, 0o700)}, me, true},
		{"confined, to what is another's", "/", []fs.FileInfo{dirOf(root, 0o755), dirOf(other, 0o755), dirOf(other, 0o755)}, me, false},
		{"confined where everybody writes", "/", []fs.FileInfo{dirOf(root, 0o777|fs.ModeSticky), dirOf(other, 0o700), dirOf(other, 0o700)}, me, false},
		{"root in another's home", "/h", []fs.FileInfo{dirOf(root, 0o755), dirOf(me, 0o755), dirOf(me, 0o700)}, root, false},
		{"root, whose cache was given away", "/h", []fs.FileInfo{dirOf(root, 0o755), dirOf(root, 0o700), dirOf(me, 0o700)}, root, false},
	} {
		paths := []string{"/", "/h", "/h/cache"}
		cache := &sftpCache{op: "publish", modes: true, root: paths[2], path: approach{op: "publish"}}
		start := c.dirs[0]
		for i, d := range c.dirs {
			cache.path.passed = append(cache.path.passed, passed{paths[i], d})
			if paths[i] == c.start {
				start = d
			}
		}
		cache.path.identify(c.start, start)
		err := cache.path.judge(cache.root)
		if err == nil {
			err = cache.made(dirOf(c.made, 0o700))
		}
		if c.safe != (err == nil) || err != nil && !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
