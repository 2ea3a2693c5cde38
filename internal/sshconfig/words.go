package sshconfig

import (
	"errors"
	"strings"
)

// blanks is the white space between the words of a line. A line's end has none of it left, nor the
// \r of a file from Windows.
const blanks = " \t\r\n"

var errQuotes = errors.New("a quote is not closed")

// keyword takes a line apart into its keyword, in lower case, and what follows; "" is an empty line
// or a comment.
func keyword(line string) (key, rest string, err error) {
	line, _, _ = strings.Cut(line, "\x00")
	line = strings.Trim(line, blanks+"\f")
	if line == "" || line[0] == '#' {
		return "", "", nil
	}
	key, rest, ok := delimited(line)
	if !ok {
		return "", "", errQuotes
	}
	return strings.ToLower(key), strings.TrimLeft(rest, blanks), nil
}

// delimited takes the first word of s, which ends at white space, at one = or at a closing quote, as
// keywords and the criteria of Match do. ok is false for a quote that is not closed.
func delimited(s string) (word, rest string, ok bool) {
	i := strings.IndexAny(s, blanks+`"=`)
	if i < 0 {
		return s, "", true
	}
	if s[i] == '"' {
		inner, after, closed := strings.Cut(s[i+1:], `"`)
		return s[:i] + inner, strings.TrimLeft(after, blanks), closed
	}
	rest = strings.TrimLeft(s[i+1:], blanks)
	if s[i] != '=' && strings.HasPrefix(rest, "=") {
		rest = strings.TrimLeft(rest[1:], blanks)
	}
	return s[:i], rest, true
}

// arguments splits what follows a keyword. Quotes, single or double, hold words together, wherever in a
// word they stand; a backslash is itself but before a quote, another, or a space outside quotes; a #
// where a word would begin is a comment.
func arguments(s string) ([]string, error) {
	var args []string
	for i := 0; i < len(s); {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		if s[i] == '#' {
			break
		}
		var word strings.Builder
		var quote byte
		for ; i < len(s) && (quote != 0 || s[i] != ' ' && s[i] != '\t'); i++ {
			switch c := s[i]; {
			case c == '\\' && i+1 < len(s) && (strings.IndexByte(`'"\`, s[i+1]) >= 0 || quote == 0 && s[i+1] == ' '):
				i++
				word.WriteByte(s[i])
			case quote == 0 && (c == '"' || c == '\''):
				quote = c
			case quote != 0 && c == quote:
				quote = 0
			default:
				word.WriteByte(c)
			}
		}
		if quote != 0 {
			return nil, errQuotes
		}
		args = append(args, word.String())
	}
	return args, nil
}

// Matches reports whether pattern, in which * stands for any text and ? for any one byte, matches s.
func Matches(s, pattern string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, mark = j, i
			j++
		case j < len(pattern) && (pattern[j] == '?' || pattern[j] == s[i]):
			i++
			j++
		case star >= 0: // the last * takes one byte more
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "*") == ""
}

// matchesList reports whether one of the patterns between commas matches s and none that begins with
// ! does.
func matchesList(s, patterns string) bool {
	found := false
	for p := range strings.SplitSeq(patterns, ",") {
		p, negated := strings.CutPrefix(p, "!")
		if Matches(s, p) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}
