package bundle

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/punnet/punnet/internal/display"
)

// CheckName says why name cannot be an element of a path in a bundle, or returns nil. The rules are
// those of the package's format: what they refuse either cannot be stored everywhere, or could make
// two readers of one path see different things.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case name == "." || name == "..":
		return fmt.Errorf("%q is not a name of its own", name)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("the name is %d bytes long, over %d", len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return errors.New("the name is not valid UTF-8")
	case strings.Contains(name, "/"):
		return errors.New("the name holds a slash")
	case strings.Contains(name, `\`):
		return errors.New("the name holds a backslash")
	}
	for _, r := range name {
		if display.Hidden(r) {
			return fmt.Errorf("the name holds the hidden character %s", display.Quote(string(r)))
		}
	}
	return nil
}

// foldName maps names that some file system takes for one another to the same key: canonically
// equivalent ones and ones that differ in case alone. Folding can undo normalisation, so that
// follows it.
func foldName(name string) string {
	if isPlain(name) {
		return strings.ToLower(name)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
}

func isPlain(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// siblings finds names in one directory that collide.
type siblings map[string]string

// add records name and returns an earlier name that it collides with, or "".
func (s siblings) add(name string) string {
	key := foldName(name)
	if earlier, ok := s[key]; ok {
		return earlier
	}
	s[key] = name
	return ""
}
