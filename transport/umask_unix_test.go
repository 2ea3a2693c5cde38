//go:build unix

package transport

import (
	"syscall"
	"testing"
)

// umask sets the process's umask for a test.
func umask(t *testing.T, mask int) {
	t.Helper()
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}
