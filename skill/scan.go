package skill

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/punnet/punnet/internal/display"
)

// cursor moves forward through text by YAML's lines and columns, and keeps the line of the file.
// YAML ends a line at a lone CR, U+0085, U+2028 and U+2029 too; people and editors do not.
type cursor struct {
	rest         []byte
	line, column int // YAML's own, from 1
	fileLine     int
}

func newCursor(text []byte) cursor {
	return cursor{rest: text, line: 1, column: 1, fileLine: firstLine}
}

// seek moves to a line and column and returns the byte there. It returns 0 where there is none: at the
// end of the text, past the end of that line, or behind the cursor.
func (c *cursor) seek(line, column int) byte {
	for len(c.rest) > 0 && (c.line < line || c.line == line && c.column < column) {
		c.step()
	}
	if len(c.rest) == 0 || c.line != line || c.column != column {
		return 0
	}
	return c.rest[0]
}

// step moves over one character, CRLF being one.
func (c *cursor) step() {
	if b := c.rest[0]; isPlainASCII(b) {
		c.rest = c.rest[1:]
		c.column++
		return
	}
	r, size := utf8.DecodeRune(c.rest)
	if r == '\r' && len(c.rest) > 1 && c.rest[1] == '\n' {
		r, size = '\n', 2
	}
	c.rest = c.rest[size:]
	c.column++
	if isBreak(r) {
		c.line++
		c.column = 1
	}
	if r == '\n' && len(c.rest) > 0 {
		// The break that ends the last line begins no other.
		c.fileLine++
	}
}

func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// isPlainASCII spares nearly every character the decoding of a rune.
func isPlainASCII(b byte) bool { return ' ' <= b && b <= '~' }

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// unreadable reports whether the YAML reader refuses r wherever it stands.
func unreadable(r rune) bool {
	switch r {
	case '\t', '\n', '\r', '\u0085':
		return false
	case '\ufffe', '\uffff':
		return true
	}
	return r < ' ' || 0x7f <= r && r < 0xa0
}

// prescan reports what in the frontmatter's text is settled before a YAML reader sees it, nil when
// nothing is: characters it refuses without naming a line, document markers, after which it would
// stop reading without a word, and text that would cost it too much.
//
// yaml.v3 looks at every comment before a dedent once for every level the dedent closes, and moves its
// queue of tokens for every deep bracket: 64 KiB of "- - - ..." and then comments take 300 ms.
// Bounding lines, brackets, and levels opened within a line bounds that; the limits of the node walk
// come too late for it. Brackets count inside text too, where a thousand are not to be expected.
func prescan(text []byte) *Problem {
	opened := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
	for c := newCursor(text); len(c.rest) > 0; c.step() {
		if c.column == 1 {
			if c.line > maxYAMLLines {
				return tooComplex(c.fileLine, fmt.Sprintf("the frontmatter has more than %d lines", maxYAMLLines))
			}
			if isMarker(c.rest) {
				return &Problem{
					Code:    YAMLForbidden,
					Line:    c.fileLine,
					Message: "the frontmatter has a document marker, --- or ...",
					Hint:    "close the frontmatter with --- alone on its line",
				}
			}
			if opened += opensWithin(c.rest); opened > maxYAMLNodes {
				return tooComplex(c.fileLine, fmt.Sprintf("the frontmatter opens more than %d lists and mappings", maxYAMLNodes))
			}
		}
		if isPlainASCII(c.rest[0]) {
			continue
		}
		if r, _ := utf8.DecodeRune(c.rest); unreadable(r) {
			return &Problem{
				Code:    YAMLSyntax,
				Line:    c.fileLine,
				Message: "the frontmatter holds the control character " + display.Quote(string(r)),
				Hint:    "remove it",
			}
		}
	}
	return nil
}

func tooComplex(line int, message string) *Problem {
	return &Problem{Code: YAMLLimits, Line: line, Message: message}
}

// isMarker reports whether a line begins with --- or ... as a word of its own.
func isMarker(line []byte) bool {
	if len(line) < 3 || string(line[:3]) != "---" && string(line[:3]) != "..." {
		return false
	}
	return endsWord(line[3:])
}

// endsWord reports whether an indicator that rest follows stands alone: before a blank, a line's end or
// nothing.
func endsWord(rest []byte) bool {
	if len(rest) == 0 {
		return true
	}
	r, _ := utf8.DecodeRune(rest)
	return r == ' ' || r == '\t' || isBreak(r)
}

// opensWithin counts the lists and complex keys that the start of a line can open beyond the first,
// as "- - a" opens one.
func opensWithin(line []byte) int {
	count := 0
	for len(line) > 0 {
		switch c := line[0]; {
		case isBlank(c):
		case (c == '-' || c == '?' || c == ':') && endsWord(line[1:]):
			count++
		default:
			return max(count-1, 0)
		}
		line = line[1:]
	}
	return max(count-1, 0)
}
