package skill

import (
	"bytes"
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
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		data := append(append([]byte("---\n"), text...), "\n---\nbody\n"...)
		if checkText(data) != nil {
			return
		}
		front, _, p := split(data)
		if p != nil || readPlain(front) == nil {
			return
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
	})
}

func TestPlainFrontmatterNeedsNoYAMLReader(t *testing.T) {
	for text, plain := range map[string]bool{
		"name: a\ndescription: Reads, and writes; at a:b or#1.\n": true,
		"name: \"a\"\ndescription: 'b: c # d'":                    true,
		"name: a\ndescription: \u65e5\u672c\n":                    true,
		"":                                                        false,
		"name: a\n\ndescription: b\n":                             false,
		"name: a\ndescription: b: c\n":                            false,
		"name: a\ndescription: b #c\n":                            false,
		"name: a\ndescription: b\n c\n":                           false,
		"name: a\ndescription: >-\n  b":                           false,
		"name: a\ndescription: b\u0085":                           false,
		"name: null\n":                                            false,
		"name: 1\n":                                               false,
		"name: a\nmetadata:\n  b: c\n":                            false,
		strings.Repeat("a: b\n", maxPlain+1):                      false,
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
