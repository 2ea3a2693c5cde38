package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

const adviceNoSpace = "free some space on the target, for instance with punnet prune"

// failed says what was being done on the target when err came, or returns nil for nil. An error
// that says so already, and one that ended the way to the target, are left to speak for themselves.
func (c *sftpCache) failed(doing string, err error) error {
	if err == nil || isOver(err) {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Op: c.op, Err: fmt.Errorf("%s: %w", doing, err)}
}

// notWritten explains a failure to make or move what has or should have the name p, or returns nil
// for nil.
func (c *sftpCache) notWritten(p string, err error) error {
	if err == nil || isOver(err) {
		return err
	}
	e := &Error{Op: c.op, Path: p, Err: err}
	dir := display.Quote(path.Dir(p))
	switch {
	case errors.Is(err, transport.ErrNoSpace):
		e.Kind, e.Advice = ErrNoSpace, adviceNoSpace
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Kind, e.Advice = ErrReadOnly, "make "+dir+" writable for the account"
	case isUnnamed(err):
		// OpenSSH has the same word for a read-only file system, a quota and a broken disk.
		e.Advice = "the target gave no reason: see there whether " + dir +
			" is on a file system that can be written to, and within the account's quota"
	}
	return e
}

// notBegun explains why the first thing there could not be made. A server that gives no reason has
// at least said that this account cannot write there.
func (c *sftpCache) notBegun(p string, err error) error {
	err = c.notWritten(p, err)
	if e, ok := err.(*Error); ok && e.Kind == nil {
		e.Kind = ErrReadOnly
	}
	return err
}

// ended gives the error that a call returns its operation, where it does not say that itself.
func (c *sftpCache) ended(err error) error {
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", c.op, err)
}

// hereDamaged says of a bundle that could not be read that the target has no part in it.
func hereDamaged(op string, err error) error { return fmt.Errorf("%s: on this machine: %w", op, err) }
