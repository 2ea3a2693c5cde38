//go:build unix

package bundle

import (
	"os"
	"syscall"
)

// readFlags open a file that may have become something else since it was seen: a FIFO must not
// block the opening.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// hasExecBits says whether this system keeps execute bits.
const hasExecBits = true
