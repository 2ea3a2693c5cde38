package remote

import (
	"errors"
	"fmt"
	"strings"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
)

// What went wrong, for errors.Is. Failures to reach the target are package transport's.
var (
	// ErrNoAccess is an account that offers neither commands nor SFTP.
	ErrNoAccess = errors.New("the account allows neither commands nor SFTP")
	// ErrUnsafe is a cache, or a directory above it, that someone else could change.
	ErrUnsafe = errors.New("others could change what is kept there")
	// ErrNoSpace is a full file system, or an account without quota.
	ErrNoSpace = errors.New("no space left")
	// ErrReadOnly is a cache that this account cannot write to.
	ErrReadOnly = errors.New("cannot be written to")
	// ErrTools is a target without a program that the work needs.
	ErrTools = errors.New("a program is missing")
	// ErrReply is an answer that was not understood: a target that is no ordinary machine, or lies.
	ErrReply = errors.New("the answer was not understood")
)

// Error is a failure on the target.
type Error struct {
	Op     string // what was being done: "publish", "check", "list", "prune", "collections" or "probe"
	Kind   error  // one of this package's Err values, or nil
	Path   string // what on the target it is about, or ""
	Said   string // the target's own words as they came, or ""
	Err    error  // the cause, or nil
	Advice string // what a person can do, or ""
}

// Error returns one line: operation, side, path, kind, cause, and the target's words, quoted and
// cut to a bounded length.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op + ": on the target")
	if e.Path != "" {
		b.WriteString(": " + display.Quote(e.Path))
	}
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if words := display.Said(e.Said); words != "" {
		fmt.Fprintf(&b, "; it said: %s", words)
	}
	return b.String()
}

// Unwrap returns Kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Hint returns Advice.
func (e *Error) Hint() string { return e.Advice }

// DamagedError is a bundle that arrived on the target as something else than its digest names, and
// was not put into the cache.
type DamagedError struct {
	Digest bundle.Digest
	Name   string // the skill directory's
	Said   string // what the target said while it unpacked, as it came, or ""
}

// Error names the bundle and quotes the target.
func (e *DamagedError) Error() string {
	s := fmt.Sprintf("publish %s: on the target: bundle %s did not arrive as it was sent",
		display.Quote(e.Name), e.Digest.Short())
	if words := display.Said(e.Said); words != "" {
		s += "; it said: " + words
	}
	return s
}

// failure gives the words of a failed step on the target a kind. The script runs its programs in
// the C locale, so the words of the system's errors are these.
func failure(op, path, words string) *Error {
	e := &Error{Op: op, Path: path, Said: words}
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(words, p) {
				return true
			}
		}
		return false
	}
	switch {
	// A short write is how GNU tar meets a full disk; it gives no other reason.
	case has("No space left", "quota exceeded", "Quota exceeded", "Wrote only"):
		e.Kind, e.Advice = ErrNoSpace, "free some space on the target, for instance with punnet prune"
	case has("Read-only file system", "Permission denied", "Operation not permitted"):
		e.Kind, e.Advice = ErrReadOnly, "make "+display.Quote(path)+" writable for the account, or set XDG_CACHE_HOME on the target to a directory that is"
	}
	return e
}

// unsafeError is a directory or link that makes the cache unsafe, with the command that mends it.
func unsafeError(op, path string, foreign bool) *Error {
	e := &Error{Op: op, Kind: ErrUnsafe, Path: path}
	if foreign {
		e.Err = errors.New("it belongs to another user")
		e.Advice = "have its owner run: chown -h \"$(id -u)\" " + shellQuote(path) + "; or set XDG_CACHE_HOME on the target to a directory of your own"
		return e
	}
	e.Err = errors.New("others may write to it")
	e.Advice = "on the target, run: chmod go-w " + shellQuote(path)
	return e
}

// shellQuote writes a path for a person to paste into a shell.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(display.Quote(s), "'", `'\''`) + "'"
}
