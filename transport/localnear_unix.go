//go:build unix

package transport

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// readStart asks the system itself. An os.File is made for files that are waited for: it costs as many
// calls again, and as much memory as most of what is read here.
func readStart(name string, buf []byte) (n int, err error) {
	fd := -1
	if err := again(func() (err error) {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		return err
	}); err != nil {
		return 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	for n < len(buf) {
		got := 0
		if err := again(func() (err error) {
			got, err = unix.Read(fd, buf[n:])
			return err
		}); err != nil {
			return n, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n, nil
}

// again calls f until no signal is in its way.
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}
