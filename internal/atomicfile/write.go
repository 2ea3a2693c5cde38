package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write gives the file at path the content data, private to the user, by one rename: who reads it,
// also after a crash, finds the old content or the new. Directories that are missing are made as
// MkdirAll does.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := MkdirAll(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	temp := TempName(".tmp-")
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if err := root.Rename(temp, filepath.Base(path)); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return SyncDir(root, ".")
}
