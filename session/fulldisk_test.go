//go:build linux || darwin

package session

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// A disk is full in the middle of a line: what was written of it is cut off, and the conversation goes on
// as it was.
func TestAFullDiskLeavesTheJournalAsItWas(t *testing.T) {
	ctx := context.Background()
	s := journal(t, 3)
	c, err := Open(ctx, Config{Storage: s}, "talk")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(s.Path("talk"))
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	full := was
	full.Cur = uint64(len(before)) + 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	err = c.ChangeDir(ctx, "/elsewhere")
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); e != nil {
		t.Fatal(e)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("%v", err)
	}
	if after, _ := os.ReadFile(s.Path("talk")); !bytes.Equal(after, before) {
		t.Errorf("%d bytes; there were %d", len(after), len(before))
	}
	if st, err := c.State(ctx, ""); err != nil || st.Place.Dir != "/proj" {
		t.Errorf("it is in %s, %v", st.Place.Dir, err)
	}
	if err := c.ChangeDir(ctx, "/elsewhere"); err != nil {
		t.Fatal(err)
	}
	again, err := Open(ctx, Config{Storage: s}, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if st, _ := again.State(ctx, ""); st.Place.Dir != "/elsewhere" {
		t.Errorf("it is in %s", st.Place.Dir)
	}
}
