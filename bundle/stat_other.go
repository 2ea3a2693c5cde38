//go:build !unix

package bundle

import "os"

// readFlags open a file that may have become something else since it was seen.
const readFlags = os.O_RDONLY

// hasExecBits says whether this system keeps execute bits.
const hasExecBits = false
