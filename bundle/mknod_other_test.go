//go:build unix && !linux

package bundle

import "errors"

// mknod makes no device here; the test that needs one says so.
func mknod(string) error { return errors.ErrUnsupported }
