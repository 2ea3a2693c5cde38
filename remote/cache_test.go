package remote

import (
	"errors"
	"strings"
	"testing"

	"github.com/punnet/punnet/transport"
)

func TestOpenRefusesAPlaceThatIsNoPlainPath(t *testing.T) {
	for _, dir := range []string{
		"", "/abs", "a/", "/", "a//b", ".", "..", "a/../b", "a b", "a'b", "$(x)", "a\nb", "~", "*", "é", `a\b`, "a;b",
		strings.Repeat("a", maxDirBytes+1),
	} {
		if _, err := Open(&sayer{}, Options{Dir: dir}); err == nil {
			t.Errorf("the directory %q is accepted", dir)
		}
	}
	for _, dir := range []string{"berry/skills", "a", "-n/..a/A_b.c-9", strings.Repeat("a", maxDirBytes)} {
		if _, err := Open(&sayer{}, Options{Dir: dir}); err != nil {
			t.Errorf("the directory %q: %v", dir, err)
		}
	}
}

// windows is a server that says at once what it is.
type windows struct{ sayer }

func (*windows) Server() string { return "SSH-2.0-OpenSSH_for_Windows_9.5" }

func TestTheWayIsChosenWithoutFailingFirstWhereItIsKnown(t *testing.T) {
	b := plainSkill().pin(t, "release")
	w := &windows{}
	c := openCache(t, w, Options{})
	if c.Class() != "sftp" {
		t.Errorf("Windows: class %q", c.Class())
	}
	if _, err := c.Publish(t.Context(), b); !errors.Is(err, ErrNoAccess) || w.calls > 0 {
		t.Errorf("Windows: %v after %d commands", err, w.calls)
	}
	s := &sayer{}
	c, err := Open(s, Options{Dir: "berry/skills", NoExec: true})
	must(t, err)
	if _, err := c.Publish(t.Context(), b); !errors.Is(err, ErrNoAccess) || s.calls > 0 || !strings.Contains(transport.Hint(err), "SFTP") {
		t.Errorf("without commands: %v after %d commands", err, s.calls)
	}
}

// TestAnAccountThatAllowsNothingIsToldInBothWaysWords also holds that a way that failed is tried
// again, for the account may be mended while the program runs.
func TestAnAccountThatAllowsNothingIsToldInBothWaysWords(t *testing.T) {
	s := &sayer{words: "This account is currently not available.\n", err: &transport.ExitError{Status: 1}}
	c := openCache(t, s, Options{})
	for range 2 {
		results, err := c.Publish(t.Context(), plainSkill().pin(t, "release"))
		if !errors.Is(err, ErrNoAccess) || !errors.Is(err, transport.ErrNoFiles) || !strings.Contains(err.Error(), "not available") {
			t.Errorf("got %v", err)
		}
		if len(results) != 1 || results[0].Outcome != Failed || results[0].Err == nil || transport.Hint(err) == "" {
			t.Errorf("got %+v, hint %q", results, transport.Hint(err))
		}
		if c.Class() != "" {
			t.Errorf("class %q", c.Class())
		}
	}
	if s.calls != 2 {
		t.Errorf("%d commands", s.calls)
	}
}

func TestNothingAskedIsNothingDone(t *testing.T) {
	s := &sayer{}
	c := openCache(t, s, Options{})
	results, err := c.Publish(t.Context())
	copies, err2 := c.Check(t.Context())
	if err != nil || err2 != nil || len(results)+len(copies) > 0 || s.calls > 0 {
		t.Errorf("%v %v %v %v after %d commands", results, err, copies, err2, s.calls)
	}
}
