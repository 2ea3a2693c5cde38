package skill

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxPlain is how many lines readPlain takes, and bytes of a key: far below every limit of the YAML.
const maxPlain = 64

// readPlain reads frontmatter of the plainest kind, which is most of it: keys, each with a value that is
// a word or a sentence on its line, in quotes or not, or a block of sentences below it, or that is such
// keys again. It returns what decode would, without a YAML reader, which takes ten times as long; nil for
// all other text, which may be right or wrong. FuzzPlain holds it to that.
func readPlain(text []byte) *yaml.Node {
	p := plainText{rest: text, number: firstLine}
	root := p.mapping(0)
	if len(p.rest) > 0 {
		return nil
	}
	return root
}

// plainText is what is left to read, by lines.
type plainText struct {
	rest   []byte
	number int // of the next line
}

// next takes the next line, without its end, where it is one that is indented by so many spaces.
func (p *plainText) next(indent int) (line []byte, ok bool) {
	i := bytes.IndexByte(p.rest, '\n')
	if i <= indent || p.number-firstLine == maxPlain || p.indent() != indent || !isPlainText(p.rest[:i]) {
		return nil, false
	}
	line, p.rest = p.rest[indent:i], p.rest[i+1:]
	p.number++
	return line, true
}

// indent returns how many spaces the next line begins with.
func (p *plainText) indent() int { return len(p.rest) - len(bytes.TrimLeft(p.rest, " ")) }

// mapping reads keys and values that are indented by so many spaces.
func (p *plainText) mapping(indent int) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: p.number}
	for len(p.rest) > 0 && p.indent() >= indent {
		number := p.number
		line, ok := p.next(indent)
		if !ok {
			return nil
		}
		var value *yaml.Node
		key, v := keyAndValue(line)
		if v == nil && indent == 0 && line[len(line)-1] == ':' && p.indent() > 0 {
			key, _ = keyAndValue(append(line[:len(line):len(line)], " x"...))
			value = p.mapping(p.indent())
		} else if v != nil {
			value = p.scalar(indent, string(v))
		}
		if value == nil || len(key) == 0 || !isLetter(key[0]) || len(key) > maxPlain {
			return nil
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: string(key), Line: number}, value)
	}
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

// scalar returns the value that begins with v, on the line of its key.
func (p *plainText) scalar(indent int, v string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Line: p.number - 1}
	ok := false
	switch c := v[0]; {
	case v == ">" || v == ">-":
		n.Value, ok = p.block(indent, " ", v == ">")
	case v == "|" || v == "|-":
		n.Value, ok = p.block(indent, "\n", v == "|")
	case c == '"' || c == '\'':
		// A quote inside ends it or stands for one, and a backslash is the start of something.
		if ok = len(v) > 1 && strings.IndexByte(v[1:], c) == len(v)-2 && (c == '\'' || strings.IndexByte(v, '\\') < 0); ok {
			n.Value = v[1 : len(v)-1]
		}
	case isLetter(c) || '0' <= c && c <= '9' || c >= utf8.RuneSelf:
		ok = !strings.EqualFold(v, "null") && v[len(v)-1] != ':' && !strings.Contains(v, ": ") && !strings.Contains(v, " #")
	}
	if !ok {
		return nil
	}
	return n // a line that is indented further would go on with it, and is none to mapping
}

// block reads lines that are indented further than a key, all by as many spaces.
func (p *plainText) block(indent int, between string, end bool) (text string, ok bool) {
	var b strings.Builder
	for m := p.indent(); len(p.rest) > 0 && p.indent() > indent; {
		line, ok := p.next(m)
		// A dash could open one of the lists that are counted.
		if !ok || line[0] == '-' || line[0] == '?' || line[0] == ':' {
			return "", false
		}
		if b.Len() > 0 {
			b.WriteString(between)
		}
		b.Write(line)
	}
	if end {
		b.WriteByte('\n')
	}
	return b.String(), b.Len() > 1
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

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
