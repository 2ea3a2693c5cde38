package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
)

// How an error reads: "punnet: ", the verb, what it was about, what happened, in lower case and
// without a full stop; then "hint: " and what mends it, where something does. Text that punnet did
// not write has gone through display.Quote.

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitSome        = 3 // some skills failed, others not
	exitAccess      = 4 // authentication or host key
	exitProblems    = 5 // problems or damage found
	exitInterrupted = 130
)

// schemaVersion stands in every JSON object; it changes when a field changes its meaning.
const schemaVersion = 1

// cliError is an error with what the command line adds to it.
type cliError struct {
	code string // stable, for programs; "" to take it from err
	exit int    // 0 stands for exitFailed
	err  error  // nil where all was said already
	hint string // what mends it, or ""
}

func (e *cliError) Error() string { return e.err.Error() }
func (e *cliError) Unwrap() error { return e.err }

// found ends a verb that has said all it has to say: problems were found.
func found(exit int) error { return &cliError{exit: exit} }

// fail reports err, once, and returns the exit code.
func (a *app) fail(ctx context.Context, cmd *cobra.Command, err error) int {
	exit, code, hint := exitFailed, errorCode(err), ""
	if ce, ok := errors.AsType[*cliError](err); ok {
		hint = ce.hint
		if ce.exit != 0 {
			exit = ce.exit
		}
		if ce.err == nil {
			return exit
		}
	}
	if ctx.Err() != nil { // a signal, whatever came of it
		exit, code, err, hint = exitInterrupted, "interrupted", errors.New("interrupted; nothing was left half-done"), ""
	} else if c := cmd.Context(); c != nil && errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(c)
	}
	message := err.Error()
	if a.json {
		a.printJSON(errorObject(code, message, hint))
		return exit
	}
	a.complain(verb(cmd), message, hint)
	return exit
}

// verb returns the command's words after "punnet".
func verb(cmd *cobra.Command) string {
	path := cmd.CommandPath()
	if len(path) > len("punnet ") {
		return path[len("punnet "):]
	}
	return ""
}

// complain prints an error for people.
func (a *app) complain(verb, message, hint string) {
	if verb != "" {
		verb += ": "
	}
	// Most of it is quoted already, and quoting again changes nothing; the words of the flag package
	// and of the system are not.
	fmt.Fprintf(a.stderr, "punnet: %s%s\n", verb, display.Quote(message))
	if hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", display.Quote(hint))
	}
}

type errorJSON struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// describeError returns an error's parts for JSON.
func describeError(err error) errorJSON {
	e := errorJSON{Code: errorCode(err), Message: err.Error()}
	if ce, ok := errors.AsType[*cliError](err); ok {
		e.Hint = ce.hint
	} else {
		e.Hint = transport.Hint(err)
	}
	return e
}

func errorObject(code, message, hint string) any {
	return struct {
		SchemaVersion int       `json:"schemaVersion"`
		Error         errorJSON `json:"error"`
	}{schemaVersion, errorJSON{code, message, hint}}
}

// printJSON prints one object on a line of its own. Hidden characters, which JSON allows in strings
// and nowhere else, are escaped: a terminal may be reading.
func (a *app) printJSON(v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		a.complain("", "encode JSON: "+err.Error(), "")
		return
	}
	var out strings.Builder
	for _, r := range b.String() {
		switch {
		case r == '\n' || !display.Hidden(r):
			out.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	io.WriteString(a.stdout, out.String())
}

// errorCode returns the stable code of an error.
func errorCode(err error) string {
	if ce, ok := errors.AsType[*cliError](err); ok && ce.code != "" {
		return ce.code
	}
	if rejected, ok := errors.AsType[*bundle.RejectedError](err); ok {
		return string(rejected.Findings[0].Reason)
	}
	if _, ok := errors.AsType[*bundle.DamagedError](err); ok {
		return "damaged"
	}
	if code := targetCode(err); code != "" {
		return code
	}
	if code, ok := errors.AsType[session.Code](err); ok {
		return string(code)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, fs.ErrNotExist):
		return "not-found"
	case errors.Is(err, fs.ErrPermission):
		return "permission-denied"
	}
	return "failed"
}
