//go:build linux || solaris || aix

package ask

import "golang.org/x/sys/unix"

const (
	getTermios   = unix.TCGETS
	setTermios   = unix.TCSETS
	flushTermios = unix.TCSETSF // with what was typed and not read thrown away
)
