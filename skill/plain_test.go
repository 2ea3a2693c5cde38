package skill

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// A file that is read without the YAML reader gives the same, to the last word of its problems.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		"name: my-skill\ndescription: What it does: this.\n", "name: a\ndescription: Use it, when #asked, at http://x:80\n",
		"name: \"my-skill\"\ndescription: 'It is: plain # text'\nlicense: MIT  \n", "name: null\ndescription: Null\nx: ~\n",
		"name: a\nname: b\ndescription: yes\n", "name: a\ndescription: don't \"do\" it\n", "description: \"\"\nname: ''\n",
		"name: caf\u00e9\ndescription: \u2014 \u65e5\u672c\u8a9e\n", "name: a\ndescription: a\u2028b\n", "name: a\ndescription: b\u00a0\n",
		"name: a\ndescription: \"a\\nb\"\n", "name: a\ndescription: 'it''s'\n", "Name: a\ndescription: b", "name: a\r\ndescription: b\r\n",
		"name: a\ndescription: b\n  c\n", "name: a\ndescription:\tb\n", "a-_9: b\ny: n\n<<: x\n", "name: a\ndescription: a:\n",
		"name: a\ndescription: \"b\" # c\n", "name: a\ndescription: 'b' c\n", "name: a\ndescription: \" b \"\n", "name: a\ndescription: \ufeffb\n",
		"name: a\ndescription: >-\n  b\n  c \n  d\nmetadata:\n  a: b\n  v: 1.0\n  a: c\n", "name: a\ndescription: >\n b\nlicense: x\n",
		"name: a\ndescription: |\n    b: [c]\n    # d\n", "name: a\ndescription: |-\n  b\n\n  c\n", "name: a\ndescription: >-\n  b\n   c\n",
		"name: a\nmetadata:\n  a: >\n    b\n  c: d\ndescription: e\n", "metadata:\n a: b\n  c: d\n", "metadata:\n  a: b\n c: d\n", "a:\nb: c\n",
		"description: >-\nname: a\n", "metadata:\n  a:\n    b: c\n", "name: 1\ndescription: 0x1F\nx: 2001-01-01\n", "name: a\n  b: c\n",
		"description: >-\n  - b\n  c\n", "description: |\n  b\n --\n", "name: a\ndescription: >-\n  \u00a0b\n", "name: a\nx: 2001-13-45\ny: 1:30\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { samePlain(t, text) })
}

// Text made of the pieces that matter meets what is plain much more often than a fuzzer's does.
func TestPlainIsWhatTheYAMLReaderSays(t *testing.T) {
	starts := []string{
		"name: ", "description: ", "metadata:\n  a: ", "metadata: ", "license: ", "key:", "x: >-\n  ", "x: >\n ", "x: |\n  ", "x: |-\n    ",
		"  b: ", "  b: ", "  ", "  ", "   ", " ", "", "a-_1: ", "A: ", "<<: ",
	}
	pieces := []string{
		"a", "a", "b c", "b c", "null", "~", "1.0", "0x1", "yes", "\u00e9", "\u00a0", ": ", ":", " #", "#", "\"", "'", "''", "\\", "- ", "? ", ", ", "]",
		"&", "*", "!", "%", "@", "`", "|", ">", " ", "  ", "...", "---x", "\"a\"", "'b'", "\u2028", "\ufeff", "\x7f",
	}
	r := rand.New(rand.NewPCG(1, 2))
	plain := 0
	for range 20_000 {
		text := []byte("name: a")
		for range 1 + r.IntN(4) {
			text = append(append(text, '\n'), starts[r.IntN(len(starts))]...)
			for range 1 + r.IntN(3) {
				text = append(text, pieces[r.IntN(len(pieces))]...)
			}
		}
		if samePlain(t, text) {
			plain++
		}
	}
	if plain < 1000 {
		t.Errorf("only %d were plain", plain)
	}
}

// samePlain reports whether text is plain, and then holds what is read of it to what the YAML reader says.
func samePlain(t *testing.T, text []byte) bool {
	t.Helper()
	data := append(append([]byte("---\n"), text...), "\n---\nbody\n"...)
	if checkText(data) != nil {
		return false
	}
	front, _, p := split(data)
	if p != nil || readPlain(front) == nil {
		return false
	}
	root, problems := decodeYAML(front)
	slow := reader{problems: problems}
	var want *Skill
	if root != nil {
		want = slow.read(root, "my-skill")
	}
	sortByLine(slow.problems)
	got, found := Parse(data, "my-skill")
	if got != nil {
		got.Body = nil
	}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(found, slow.problems) {
		t.Fatalf("%q\nis %+v, %v\nnot %+v, %v", front, got, found, want, slow.problems)
	}
	return true
}

func TestPlainFrontmatterNeedsNoYAMLReader(t *testing.T) {
	for text, plain := range map[string]bool{
		"name: a\ndescription: Reads, and writes; at a:b or#1.\n":         true,
		"name: \"a\"\ndescription: 'b: c # d'\n":                          true,
		"name: a\ndescription: \u65e5\u672c\n":                            true,
		"name: 1\nversion: 1.0\n":                                         true,
		"name: a\ndescription: >-\n  b\n  c\nmetadata:\n  v: 1.0\nx: y\n": true,
		"description: |\n  b\n  c\nname: \"a\"\n":                         true,
		"":                                   false,
		"name: a":                            false,
		"name: a\n\ndescription: b\n":        false,
		"name: a\ndescription: b: c\n":       false,
		"name: a\ndescription: b #c\n":       false,
		"name: a\ndescription: b\n c\n":      false,
		"name: a\ndescription: >-\n  b":      false,
		"name: a\ndescription: b\u0085":      false,
		"name: null\n":                       false,
		"name:\n":                            false,
		"description: |\n  b\n\n  c\n":       false,
		"description: |\n  b\n   c\n":        false,
		"metadata:\n  a:\n    b: c\n":        false,
		"metadata:\n  a: b\n   c: d\n":       false,
		"tools:\n  - a\n":                    false,
		strings.Repeat("a: b\n", maxPlain+1): false,
	} {
		if got := readPlain([]byte(text)) != nil; got != plain {
			t.Errorf("%q is plain: %v", text, got)
		}
	}
}

func BenchmarkParsePlain(b *testing.B) {
	data := []byte("---\nname: release-notes\ndescription: " + strings.Repeat("Writes release notes from the commits. ", 6) + "\n---\n" + strings.Repeat("Read the commits first.\n", 150))
	head := bytes.Clone(data[:Head(data)])
	b.ReportAllocs()
	for b.Loop() {
		if s, problems := Parse(head, "release-notes"); s == nil || len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
