//go:build unix

package remote

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// nobody is a user without rights, for what root may do and others may not.
const nobody = 65534

// needRoot ends the test where it may not give files to other users or mount.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, "root")
	}
}

// newPlainConn returns a connection to an account that is not root's, even where the tests are.
func newPlainConn(t testing.TB) (*shellConn, string) {
	t.Helper()
	conn, home := newShellConn(t)
	if os.Getuid() != 0 {
		return conn, home
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		testenv.Missing(t, "setpriv")
	}
	id := strconv.Itoa(nobody)
	conn.login = append([]string{setpriv, "--reuid=" + id, "--regid=" + id, "--clear-groups"}, conn.login...)
	must(t, os.Chown(home, nobody, nobody))
	return conn, home
}

func TestExecKeepsThePromisesOfBothWays(t *testing.T) {
	testWay(t, func(t *testing.T) (transport.Conn, string) {
		conn, home := newPlainConn(t)
		// The test damages copies as root, and what root makes is another's.
		conn.fix = func(*transport.Cmd) { give(t, home) }
		return conn, home
	}, Options{})
}

// give makes everything in a home the ordinary account's.
func give(t testing.TB, home string) {
	if os.Getuid() != 0 {
		return
	}
	err := filepath.WalkDir(home, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		if err := os.Lchown(p, nobody, nobody); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		return os.Chmod(p, info.Mode()) // chown takes set-id bits away
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
