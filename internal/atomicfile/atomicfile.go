// Package atomicfile makes changes to directories that survive a crash whole or not at all: what
// is new is made under a name nobody looks for, synced, and given its name by one rename.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TempName returns prefix followed by 26 random characters that are good in a name on every file
// system. Creating it exclusively cannot meet what another process made.
func TempName(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// IsTemp reports whether name is one that TempName can have returned for prefix.
func IsTemp(name, prefix string) bool {
	random, ok := strings.CutPrefix(name, prefix)
	return ok && len(random) == len(rand.Text()) && strings.Trim(random, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// SyncDir makes the names in a directory of root durable: entries created, renamed or removed
// before it returns stay so after a power loss. Where the system cannot sync a directory, as on
// Windows, it does nothing.
func SyncDir(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}

// MkdirAll creates the directory at path and the parents it lacks, each of them private to the
// user and durable. Directories that are there already stay as they are.
func MkdirAll(path string) error {
	info, err := os.Stat(path)
	if err == nil {
		if !info.IsDir() {
			return fmt.Errorf("create directory: %s is a file", path)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(path)
	if err := MkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) { // another process was faster
			return nil
		}
		return err
	}
	// The umask and a parent's set-group-id bit can have made it other than asked for.
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}
