//go:build unix

package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(ctx context.Context, script string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", script)
}

func TestAProgramThatIsGivenUpLeavesNoChildren(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if data, _ := os.ReadFile(file); strings.HasSuffix(string(data), "\n") {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	// As ssh does for Match exec: the program waits for a child.
	if _, err := Output(ctx, shell(ctx, "sleep 50 & echo $! >"+file+"; wait"), 10); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the child lives on")
		}
	}
}

// alive reports whether a process runs; one that ended and was not waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestAProgramThatPrintsWithoutEndIsEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := Output(ctx, shell(ctx, "exec yes"), 1000); !errors.Is(err, ErrTooMuch) {
		t.Errorf("got %v", err)
	}
	if out, err := Output(ctx, shell(ctx, "printf 1234567890"), 10); string(out) != "1234567890" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := Output(ctx, shell(ctx, "printf 1234567890+"), 10); !errors.Is(err, ErrTooMuch) {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerIsTakenFromAProgramWhoseChildStays(t *testing.T) {
	cmd := shell(t.Context(), "sleep 50 & echo yes")
	out, err := Output(t.Context(), cmd, 10)
	EndGroup(cmd)
	if string(out) != "yes\n" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestAProgramThatIsNotThereIsNamedOnce(t *testing.T) {
	_, err := Output(t.Context(), exec.CommandContext(t.Context(), "/no/such/program"), 10)
	if err == nil || err.Error() != "/no/such/program: no such file or directory" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfAContextIsToldByItsCause(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Ended(ctx); err == nil || err.Error() != "enough" || !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithTimeoutCause(t.Context(), 0, &itself{"gave up"})
	defer stop()
	<-ctx.Done()
	if err := Ended(ctx); err == nil || err.Error() != "gave up" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// itself is a cause that is the end of a context.
type itself struct{ s string }

func (b *itself) Error() string { return b.s }
func (*itself) Unwrap() error   { return context.DeadlineExceeded }

func TestWhatAProgramSaysIsQuotedAndCut(t *testing.T) {
	_, err := Output(t.Context(), shell(t.Context(), `printf '\033[2Jaway\n' >&2; yes | head -c 100000 >&2; exit 3`), 10)
	var e *Error
	if !errors.As(err, &e) || !strings.Contains(e.Said, "away") || strings.ContainsRune(err.Error(), 0x1b) || len(err.Error()) > 4096 {
		t.Errorf("got %d bytes: %.200q", len(err.Error()), err)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("got %v", err)
	}
}

func TestTheFirstBytesAreKeptAndTheRestIsAccepted(t *testing.T) {
	f := &FirstBytes{Max: 5}
	for _, s := range []string{"abc", "defg", "h"} {
		if n, err := f.Write([]byte(s)); n != len(s) || err != nil {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
	if got := string(f.Bytes()); got != "abcde" {
		t.Errorf("got %q", got)
	}
}
