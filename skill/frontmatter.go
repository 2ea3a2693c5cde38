package skill

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/punnet/punnet/internal/display"
)

const (
	fence         = "---"
	byteOrderMark = "\ufeff"

	// firstLine is the line of the file on which the frontmatter begins: the fence is line 1.
	firstLine = 2
)

// checkText reports what keeps data from being read as text at all, nil when nothing does.
func checkText(data []byte) *Problem {
	if len(data) > MaxFileBytes {
		return &Problem{
			Code:    FileTooLarge,
			Message: fmt.Sprintf("the file is larger than %d KiB", MaxFileBytes>>10),
			Hint:    "move long sections into files beside SKILL.md and refer to them",
		}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &Problem{Code: NotUTF8, Line: 1, Message: "the file is UTF-16", Hint: "save it as UTF-8"}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return &Problem{
			Code:    NotUTF8,
			Line:    lineOf(data, i),
			Message: "the file holds a NUL byte",
			Hint:    "save it as UTF-8 text",
		}
	}
	if utf8.Valid(data) {
		return nil
	}
	bad := 0
	for bad < len(data) {
		r, n := utf8.DecodeRune(data[bad:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		bad += n
	}
	return &Problem{
		Code:    NotUTF8,
		Line:    lineOf(data, bad),
		Message: fmt.Sprintf(`the file is not UTF-8: it holds the byte \x%02x`, data[bad]),
		Hint:    "save it as UTF-8",
	}
}

// lineOf returns the line of data, counted from 1, on which the byte at offset stands.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// isFence reports whether a line, without its LF, opens or closes the frontmatter.
func isFence(line []byte) bool {
	return string(bytes.TrimRight(line, " \t\r")) == fence
}

// split finds the frontmatter's text and the body that follows it; both are parts of data. The
// problem says why there is none.
func split(data []byte) (text, body []byte, problem *Problem) {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	first, after, _ := bytes.Cut(data, []byte("\n"))
	if !isFence(first) {
		return nil, nil, &Problem{
			Code:    NoFrontmatter,
			Line:    1,
			Message: "the file does not begin with a line ---",
			Hint:    openingHint(first, after),
		}
	}
	for rest := after; len(rest) > 0; {
		line, next, found := bytes.Cut(rest, []byte("\n"))
		if !found {
			next = rest[len(rest):] // keep the empty body a part of data
		}
		if isFence(line) {
			return after[:len(after)-len(rest)], next, nil
		}
		rest = next
	}
	line, hint := closingHint(after)
	return nil, nil, &Problem{
		Code:    UnclosedFrontmatter,
		Line:    line,
		Message: "no second line --- closes the frontmatter",
		Hint:    hint,
	}
}

// openingHint says what mends a file whose first line is not a fence. The comment, the code fence, the
// blank lines and the text after the dashes are the ways that published skills miss it.
func openingHint(first, rest []byte) string {
	line := bytes.TrimSpace(first)
	switch {
	case len(line) == 0 && len(bytes.TrimSpace(rest)) == 0:
		return "the file is empty: write a line ---, the name and description, and a line ---"
	case len(line) == 0:
		return "remove the blank lines before the first ---"
	case string(line) == fence:
		return "remove what stands before the --- on the first line"
	case bytes.HasPrefix(line, []byte("<!--")):
		return "move the comment below the frontmatter"
	case bytes.HasPrefix(line, []byte("```")):
		return "take the file out of its code fence"
	case bytes.HasPrefix(line, []byte("#")) && hasFence(rest):
		return "move the heading or comment below the frontmatter"
	case bytes.HasPrefix(line, []byte("+++")):
		return "TOML is not read here: write YAML between two lines ---"
	case bytes.HasPrefix(line, []byte(fence)):
		return "end the first line after its three dashes"
	case hasFence(rest):
		return "remove what stands before the first line ---"
	}
	return "begin the file with a line ---, the name and description, and a line ---"
}

func hasFence(data []byte) bool {
	for line := range bytes.Lines(data) {
		if isFence(bytes.TrimRight(line, "\n")) {
			return true
		}
	}
	return false
}

// closingHint looks in the unclosed text for a line that was meant to close it, and says what mends
// that line; without one it points at the opening fence.
func closingHint(text []byte) (line int, hint string) {
	number := firstLine
	for raw := range bytes.Lines(text) {
		trimmed := bytes.TrimSpace(raw)
		if bytes.HasPrefix(trimmed, []byte(fence)) || string(trimmed) == "..." {
			was := display.Quote(shorten(string(trimmed), quotedRunes))
			return number, fmt.Sprintf("write --- alone and unindented on this line, which is: %s", was)
		}
		number++
	}
	return 1, "write a line --- after the last frontmatter value"
}
