// Package proc runs programs of this machine for their answer, bounded in what they may say and how
// long they may take.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"

	"github.com/punnet/punnet/internal/display"
)

// linger is how long a program's children may hold its output once it has ended.
const linger = time.Second

// ErrTooMuch is a program that printed more than it was allowed to.
var ErrTooMuch = errors.New("printed too much")

// Error is a program that could not be started or did not exit with status 0.
type Error struct {
	Name string // the program's, as it was started
	Said string // the beginning of what it wrote to standard error, quoted, or ""
	Err  error  // an *exec.ExitError where it ran
}

// Error names the program and what it said, or else how it ended.
func (e *Error) Error() string {
	if e.Said != "" {
		return fmt.Sprintf("%s: %s (%v)", e.Name, e.Said, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Name, e.Err)
}

// Unwrap returns how the program ended.
func (e *Error) Unwrap() error { return e.Err }

// Output runs cmd, which was made with ctx, and returns what it wrote to standard output, at most max
// bytes of it: more is ErrTooMuch. A standard error that cmd leaves open is kept for the error, which
// is an *Error, or ctx's with its cause when ctx ended first: then cmd and all that it started are
// killed. What it leaves running at its own end is left alone.
func Output(ctx context.Context, cmd *exec.Cmd, max int) ([]byte, error) {
	out, words := &answer{max: max}, &FirstBytes{Max: 2 * display.SaidBytes}
	cmd.Stdout = out
	if cmd.Stderr == nil {
		cmd.Stderr = words
	}
	cmd.WaitDelay = linger
	Group(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it is done; a child of its holds the output
	}
	var start *fs.PathError
	switch {
	case ctx.Err() != nil:
		return nil, Ended(ctx)
	case out.over:
		return nil, &Error{Name: cmd.Args[0], Err: fmt.Errorf("%w: over %d bytes", ErrTooMuch, max)}
	case errors.As(err, &start):
		return nil, &Error{Name: cmd.Args[0], Err: start.Err}
	case err != nil:
		return nil, &Error{Name: cmd.Args[0], Said: display.Said(string(bytes.TrimSpace(words.Bytes()))), Err: err}
	}
	return out.b, nil
}

// answer keeps what it is given and takes no more than max bytes: a program that goes on is ended by
// the closing of its output.
type answer struct {
	max  int
	b    []byte
	over bool
}

func (a *answer) Write(p []byte) (int, error) {
	if len(a.b)+len(p) > a.max {
		a.over = true
		return 0, ErrTooMuch
	}
	a.b = append(a.b, p...)
	return len(p), nil
}

// Ended returns the reason why ctx ended: its cause in the words of the cause, which errors.Is finds to
// be ctx's own error too.
func Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, ctx.Err()) {
		return cause
	}
	return &ended{cause, ctx.Err()}
}

// ended is a context's end by a cause that says more.
type ended struct{ cause, err error }

func (e *ended) Error() string   { return e.cause.Error() }
func (e *ended) Unwrap() []error { return []error{e.cause, e.err} }

// FirstBytes is a writer that keeps the first Max bytes of what it is given and accepts the rest.
type FirstBytes struct {
	Max int // bytes

	b []byte
}

func (f *FirstBytes) Write(p []byte) (int, error) {
	if room := f.Max - len(f.b); room > 0 {
		f.b = append(f.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// Bytes returns what was kept.
func (f *FirstBytes) Bytes() []byte { return f.b }
