package skill

import (
	"bytes"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxPlain is how many lines readPlain takes, and bytes of a key: far below every limit of the YAML.
const maxPlain = 64

// readPlain reads frontmatter of the plainest kind, which is most of it: each line is a key and a
// one-line value that is a word or a sentence, in quotes or not. It returns what decode would, without
// a YAML reader, which takes ten times as long; nil for all other text, which may be right or wrong.
// FuzzPlain holds it to that.
func readPlain(text []byte) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: firstLine}
	nodes := make([]yaml.Node, 0, 8)
	for number := firstLine; len(text) > 0; number++ {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		key, value, ok := plainLine(line)
		if !ok || number-firstLine == maxPlain {
			return nil
		}
		nodes = append(nodes,
			yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: number},
			yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: number})
	}
	if len(nodes) == 0 {
		return nil
	}
	root.Content = make([]*yaml.Node, len(nodes))
	for i := range nodes {
		root.Content[i] = &nodes[i]
	}
	return root
}

// plainLine splits a line that means the same to everybody.
func plainLine(line []byte) (key, value string, ok bool) {
	k, v := keyAndValue(line)
	if v == nil || !isLetter(k[0]) || len(k) > maxPlain {
		return "", "", false
	}
	switch c := v[0]; {
	case c == '"' || c == '\'':
		if len(v) < 2 || v[len(v)-1] != c {
			return "", "", false
		}
		v = v[1 : len(v)-1]
		// A quote inside ends it or stands for one, and a backslash is the start of something.
		ok = bytes.IndexByte(v, c) < 0 && (c == '\'' || bytes.IndexByte(v, '\\') < 0)
	case isLetter(c) || c >= utf8.RuneSelf:
		ok = !isNullWord(v) && v[len(v)-1] != ':' && !bytes.Contains(v, []byte(": ")) && !bytes.Contains(v, []byte(" #"))
	}
	if !ok || !isPlainText(line) {
		return "", "", false
	}
	return string(k), string(v), true
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// isNullWord reports whether an unquoted value is null.
func isNullWord(v []byte) bool { return len(v) == 4 && bytes.EqualFold(v, []byte("null")) }

// isPlainText reports whether all of a line is what a YAML reader takes as it is, and neither a tab
// nor a bracket, of which the YAML may hold so many.
func isPlainText(line []byte) bool {
	for i := 0; i < len(line); {
		if b := line[i]; b < utf8.RuneSelf {
			if !isPlainASCII(b) || b == '[' || b == '{' {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(line[i:])
		if r == '\ufeff' || isBreak(r) || unreadable(r) {
			return false
		}
		i += n
	}
	return true
}
