package skill

import (
	"fmt"
	"unicode/utf8"

	"github.com/punnet/punnet/internal/display"
)

// Problem is one thing that is wrong with a SKILL.md.
type Problem struct {
	Code    Code   // what kind of problem it is; stable, for programs
	Line    int    // the line in the file, counted from 1; 0 when no line can be named
	Field   string // the frontmatter key it is about, such as "metadata.version", quoted for showing; "" for the file itself
	Message string // what is wrong, one line; text from the file in it is quoted and shortened
	Hint    string // what mends it; "" when the message says it all
}

// Error returns the line, where it is known, and the message. A Problem is an error so that a caller
// can return one as it is; how severe it is depends on the caller's Severities.
func (p Problem) Error() string {
	if p.Line == 0 {
		return p.Message
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Message)
}

// quotedRunes is how many code points of a text from the file a message repeats: enough to recognise
// it, and never a whole 64 KiB value.
const quotedRunes = 40

// quote returns text from the file for use inside a message: shortened, safe to show, in quotes.
func quote(s string) string {
	return `"` + display.Quote(shorten(s, quotedRunes)) + `"`
}

// shorten returns at most limit code points of s, the last one an ellipsis where some were cut.
func shorten(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	count := 0
	for i := range s {
		if count == limit-1 {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
