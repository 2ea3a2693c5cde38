package skill

import (
	"bytes"
	"fmt"
)

// The limits of a repair, ours. It reads the text up to three times over and every value once more
// alone, which the largest frontmatter allowed could make last 100 ms. Both leave room for far more than
// the standard's six keys.
const (
	// maxRepairBytes is how much frontmatter is read a second time, in bytes.
	maxRepairBytes = 16 << 10

	// maxRepairValues is how many one-line values may be read alone.
	maxRepairValues = 100
)

// quoteFailing returns text with quotes around each value that cannot be read on its own, and a
// warning for each, none when no value is such. Only a whole value on one line of a top-level key is
// touched, and only quotes are added: its words stay as they are. The result has the same lines.
//
// The rule was chosen on a corpus of published skills, where it made 124 of 137 files readable that were
// not (notes/standard-and-corpus.md).
func quoteFailing(text []byte) ([]byte, []Problem) {
	if len(text) > maxRepairBytes {
		return nil, nil
	}
	mended := make([]byte, 0, len(text)+64)
	var repairs []Problem
	number, tried := firstLine-1, 0
	for rest := text; len(rest) > 0; {
		line, next := cutLine(rest)
		rest = next
		number++
		key, value := keyAndValue(line)
		if value == nil || continues(rest) {
			mended = append(mended, line...)
			continue
		}
		if tried++; tried > maxRepairValues {
			return nil, nil
		}
		if _, err := parseYAML(line); err == nil {
			mended = append(mended, line...)
			continue
		}
		mended = appendQuoted(mended, line, value)
		repairs = append(repairs, Problem{
			Code:    YAMLRepaired,
			Line:    number,
			Field:   string(key),
			Message: fmt.Sprintf("the value of %s was read as if it stood in quotes", quote(string(key))),
			Hint:    "put the value in quotes",
		})
	}
	return mended, repairs
}

// cutLine returns the first line of text with its LF, and what follows.
func cutLine(text []byte) (line, rest []byte) {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, nil
}

// keyAndValue splits "key: value" at the start of a line, both parts of it and without the blanks
// around them. The value is nil where the line is anything else.
func keyAndValue(line []byte) (key, value []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || colon+1 >= len(line) || !isBlank(line[colon+1]) {
		return nil, nil
	}
	for _, b := range line[:colon] {
		letter := 'a' <= b|0x20 && b|0x20 <= 'z'
		digit := '0' <= b && b <= '9'
		if !letter && !digit && b != '-' && b != '_' {
			return nil, nil
		}
	}
	value = bytes.Trim(line[colon+1:], " \t\r\n")
	if len(value) == 0 {
		return nil, nil
	}
	return line[:colon], value
}

// continues reports whether rest, what follows a key's line, goes on with its value: the next line
// that is not blank is indented. What fails alone may then be the start of something whole.
func continues(rest []byte) bool {
	for line := range bytes.Lines(rest) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		return isBlank(line[0])
	}
	return false
}

// appendQuoted appends line to dst with value, a part of it, in YAML's single quotes, which know no
// escape but a doubled quote.
func appendQuoted(dst, line, value []byte) []byte {
	start := bytes.LastIndex(line, value)
	dst = append(dst, line[:start]...)
	dst = append(dst, '\'')
	dst = append(dst, bytes.ReplaceAll(value, []byte("'"), []byte("''"))...)
	dst = append(dst, '\'')
	return append(dst, line[start+len(value):]...)
}
