//go:build unix

package sshconfig

import (
	"fmt"
	"os"
	"syscall"

	"github.com/punnet/punnet/internal/display"
)

// trusted refuses a file that somebody else may write, as ssh does: what stands in it can name a
// command to run. A file that is not there is no matter here.
func trusted(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && (st.Uid != 0 && int(st.Uid) != os.Getuid() || info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0) {
		return fmt.Errorf("%s may be written by another user, so it is not used; mend it with chmod go-w and chown", display.Quote(name))
	}
	return nil
}
