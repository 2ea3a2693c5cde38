//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ask

import "golang.org/x/sys/unix"

const (
	getTermios   = unix.TIOCGETA
	setTermios   = unix.TIOCSETA
	flushTermios = unix.TIOCSETAF // with what was typed and not read thrown away
)
