//go:build unix

package remote

import (
	"syscall"
	"testing"
)

func makeFIFO(t testing.TB, name string) { must(t, syscall.Mkfifo(name, 0o600)) }
