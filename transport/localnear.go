package transport

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ReadNames is ReadDir where names and kinds are enough: nothing is asked about each entry.
func (l *localFS) ReadNames(name string, max int) ([]fs.DirEntry, error) {
	const op = "readdir"
	p, err := l.path(op, name)
	if err != nil {
		return nil, err
	}
	if max <= 0 {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	d, err := os.Open(p)
	if err != nil {
		return nil, localError(op, name, err)
	}
	defer d.Close()
	// One more than max tells that there are more; the end of an emptier directory is an error.
	list, err := d.ReadDir(max + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, localError(op, name, err)
	}
	if len(list) > max {
		return list[:max], pathError(op, name, ErrTooLarge)
	}
	return list, nil
}

// ReadStart reads the beginning of a file into buf, and returns how much there was: less than len(buf)
// where the file ends. It takes ReadFile's caution.
func (l *localFS) ReadStart(name string, buf []byte) (int, error) {
	p, err := l.path("open", name)
	if err != nil {
		return 0, err
	}
	n, err := readStart(p, buf)
	return n, localError("read", name, err)
}
