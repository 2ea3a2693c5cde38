package skill

import "bytes"

// Head returns how many bytes of data, a SKILL.md, are its beginning through the end of its
// frontmatter, the line that closes it included. Of a file that does not begin with frontmatter that
// is the first line, and of one whose frontmatter is not closed all of it.
//
// Parse finds the same fields and problems in the head as in the whole file, where that is text of at
// most MaxFileBytes; only the hint about a missing first fence can need what follows.
func Head(data []byte) int {
	rest := bytes.TrimPrefix(data, []byte(byteOrderMark))
	first, rest, _ := bytes.Cut(rest, []byte("\n"))
	if !isFence(first) {
		return len(data) - len(rest)
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if isFence(line) {
			break
		}
	}
	return len(data) - len(rest)
}
