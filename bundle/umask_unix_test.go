//go:build unix

package bundle

import "syscall"

func umask(mask int) int { return syscall.Umask(mask) }
