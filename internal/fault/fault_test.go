package fault

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestAPathErrorNamesItsPathOnceAndQuoted(t *testing.T) {
	const name = "a\x1b[2Jb\nc"
	base := errors.New("refused")
	for what, err := range map[string]error{
		"a plain error":          base,
		"a path error":           &fs.PathError{Op: "read", Path: "/else/where", Err: base},
		"one of the same name":   &fs.PathError{Op: "open", Path: name, Err: base},
		"one that says not here": Both(base, fs.ErrNotExist),
	} {
		got := Path("open", name, err)
		pe, ok := got.(*fs.PathError)
		if !ok || pe.Op != "open" || !errors.Is(got, base) {
			t.Errorf("%s: %#v", what, got)
			continue
		}
		if s := got.Error(); strings.ContainsAny(s, "\x1b\n") || strings.Contains(s, "/else/where") || strings.Count(s, "open") != 1 {
			t.Errorf("%s: it says %q", what, s)
		}
		if is := errors.Is(got, fs.ErrNotExist); is != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: is it that there is none: %v", what, is)
		}
	}
	if err := Path("open", name, nil); err != nil {
		t.Errorf("nothing went wrong, and it says %v", err)
	}
}

func TestTwoErrorsSayTheFirstAndAreBoth(t *testing.T) {
	shown, also := errors.New("shown"), errors.New("also")
	if err := Both(shown, also); err.Error() != "shown" || !errors.Is(err, shown) || !errors.Is(err, also) {
		t.Errorf("%v", err)
	}
	if !errors.Is(ErrNotEmpty, fs.ErrExist) {
		t.Error("a directory that is not empty is not there already")
	}
}

func TestBareTakesOffThePathAlone(t *testing.T) {
	base := errors.New("refused")
	for what, err := range map[string]error{
		"a path error":   &fs.PathError{Op: "read", Path: "p", Err: base},
		"one in another": fmt.Errorf("opening: %w", &fs.PathError{Op: "read", Path: "p", Err: base}),
		"another error":  base,
	} {
		if got := Bare(err); got != base {
			t.Errorf("%s: %v", what, got)
		}
	}
	if Bare(nil) != nil {
		t.Error("nothing became an error")
	}
}

func TestTheEndOfAConnectionIsToldFromItsFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{io.EOF, true}, {io.ErrUnexpectedEOF, true}, {io.ErrClosedPipe, true}, {fmt.Errorf("read: %w", io.EOF), true},
		{nil, false}, {os.ErrDeadlineExceeded, false}, {errors.New("EOF"), false},
	} {
		if got := IsEnd(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
