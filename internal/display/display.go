// Package display makes text that punnet did not write safe to show.
//
// Names, descriptions, paths and a remote machine's own words come from skill authors and from
// targets. Shown as they are, they can move a terminal's cursor, reverse the reading order of a
// line, or close the markup a prompt is built from. Every such text passes through here on its way
// to a person (Quote) or to a model (Prompt).
package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PromptRunes is how many code points of one text Prompt keeps: the standard's own limit for a
// description.
const PromptRunes = 1024

// Hidden reports whether r can change how the text around it is read without being seen itself:
// the C0 and C1 controls and DEL, Unicode's bidirectional controls (property Bidi_Control), and the
// tag characters U+E0000 to U+E007F, which carry ASCII that no reader sees.
func Hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || isTag(r)
}

func isTag(r rune) bool { return 0xE0000 <= r && r <= 0xE007F }

// Quote returns s on one line with every rune that is not plainly printable written out: \n, \r and
// \t as such, any other rune as \u{1b}, and a byte that is not UTF-8 as \x{ff}. The result never
// holds a byte below 0x20.
func Quote(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x{%02x}`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// printable is Quote's fast way out: most text needs nothing done to it.
func printable(s string) bool {
	for i, r := range s {
		if ' ' <= r && r <= '~' {
			continue
		}
		if !unicode.IsPrint(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		}
	}
	return true
}

// promptEscapes is never changed; a strings.Replacer is safe for concurrent use.
var promptEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Prompt returns s as one line of data for a model: runs of white space become one space, hidden
// runes and bytes that are not UTF-8 are dropped, at most PromptRunes code points are kept, and
// the characters that open or close markup are escaped, so that no description can end the section
// it stands in.
func Prompt(s string) string {
	var b strings.Builder
	count, space := 0, false
	for len(s) > 0 && count < PromptRunes {
		r, n := utf8.DecodeRuneInString(s)
		invalid := r == utf8.RuneError && n == 1
		s = s[n:]
		if unicode.IsSpace(r) {
			space = true
			continue
		}
		if invalid || Hidden(r) {
			continue
		}
		if space && count > 0 {
			b.WriteByte(' ')
			if count++; count == PromptRunes {
				break
			}
		}
		space = false
		b.WriteRune(r)
		count++
	}
	return promptEscapes.Replace(b.String())
}

// SaidBytes is how many bytes of another side's words Said keeps.
const SaidBytes = 512

// Said makes the words of another program or machine fit to stand in an error or a log: one line,
// quoted, at most SaidBytes of them.
func Said(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > SaidBytes {
		s = strings.ToValidUTF8(s[:SaidBytes], "") + "..."
	}
	return Quote(s)
}
