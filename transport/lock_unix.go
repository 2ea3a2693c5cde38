//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package transport

import (
	"os"
	"syscall"
)

// lockFile waits for the exclusive lock on f, which closing f gives up.
func lockFile(f *os.File) error {
	return retryEINTR(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) })
}
