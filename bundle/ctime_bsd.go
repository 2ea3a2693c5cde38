//go:build darwin || freebsd || netbsd

package bundle

import (
	"io/fs"
	"syscall"
)

// changeTime returns when an inode last changed: an edit that puts the modification time back
// cannot put this one back.
func changeTime(info fs.FileInfo) (sec, nsec int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return int64(st.Ctimespec.Sec), int64(st.Ctimespec.Nsec)
}
