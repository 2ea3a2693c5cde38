package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

const lockSuffix = ".lock"

// lockPause is how long a process waits before it tries a lock again.
const lockPause = 5 * time.Millisecond

// lock gets the conversation's lock, and returns what gives it up. The lock has a file of its own: on
// some systems a locked file cannot be read, and reading needs no lock.
func (s *Files) lock(ctx context.Context, id string) (func(), error) {
	at := s.lockPath(id)
	for {
		// Made here, since the umask may leave a file that not even its owner can open.
		if f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			f.Chmod(0o600) // on Windows it cannot be, and is not needed
			f.Close()
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock the conversation: %w", err)
		}
		lock := flock.New(at)
		if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
			lock.Close()
			return nil, fmt.Errorf("lock the conversation: %w", err)
		}
		// Who removed the conversation removed the file that was waited for, and the next may have another.
		got, err := lock.Stat()
		is, gone := os.Stat(at)
		if err == nil && gone == nil && os.SameFile(got, is) {
			return func() { lock.Close() }, nil
		}
		lock.Close()
	}
}

func (s *Files) lockPath(id string) string { return filepath.Join(s.dir, "."+id+lockSuffix) }

// dropLock removes a lock that is held and gives it up. No file that somebody holds is ever removed: on
// Windows an open one cannot be, elsewhere it goes while it is ours.
func (s *Files) dropLock(id string, unlock func()) {
	if runtime.GOOS == "windows" {
		unlock()
		os.Remove(s.lockPath(id))
		return
	}
	os.Remove(s.lockPath(id))
	unlock()
}
