//go:build unix && !(linux || darwin || freebsd)

package transport

import "errors"

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }
