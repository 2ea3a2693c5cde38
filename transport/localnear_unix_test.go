//go:build unix

package transport

import (
	"syscall"
	"testing"
	"time"
)

func TestTheStartOfAFIFOIsNotWaitedFor(t *testing.T) {
	files, dir := localFiles(t)
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan int, 1)
	go func() {
		n, _ := files.ReadStart(dir+"/fifo", make([]byte, 10))
		done <- n
	}()
	select {
	case n := <-done:
		if n != 0 {
			t.Errorf("%d bytes", n)
		}
	case <-time.After(time.Minute):
		t.Fatal("it is still waited for")
	}
}
