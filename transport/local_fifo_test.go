//go:build unix

package transport

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestWhatBlocksIsNotWaitedForHere has a FIFO and a device where the caller saw a file or a directory.
func TestWhatBlocksIsNotWaitedForHere(t *testing.T) {
	c := Local()
	defer c.Close()
	fsys := view(t, c)
	fifo := tempDir(t) + "/fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range []string{fifo, os.DevNull} {
			wantIs(t, "open", second(fsys.Open(name)), fs.ErrInvalid)
			wantIs(t, "read", second(fsys.ReadFile(name, 10)), fs.ErrInvalid)
			wantIs(t, "readdir", second(fsys.ReadDir(name, 10)), syscall.ENOTDIR)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a FIFO is waited for")
		w, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0) // frees who waits
		if err == nil {
			w.Close()
		}
	}
}
