//go:build linux || darwin || freebsd

package transport

import "syscall"

// freeSpace returns what an ordinary user may still write to the file system of name, in bytes.
func freeSpace(name string) (uint64, error) {
	var st syscall.Statfs_t
	if err := retryEINTR(func() error { return syscall.Statfs(name, &st) }); err != nil {
		return 0, err
	}
	// FreeBSD counts what is reserved for root as negative.
	if int64(st.Bavail) < 0 {
		return 0, nil
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}
