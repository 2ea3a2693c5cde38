package transport

import (
	"io/fs"
	"os"
)

// isFile reports whether name is a regular file, or a link to one. Nothing else is opened: a FIFO
// would block.
func isFile(name string) (bool, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return false, err
	}
	if !fi.Mode().IsRegular() {
		return false, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return true, nil
}
