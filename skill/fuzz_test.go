package skill

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "---", "---\n---\n", good(), "\ufeff" + strings.ReplaceAll(good("license: MIT"), "\n", "\r\n"), string(medianFile()),
		front("name: a", "description: **Bold** text"), front("name: a", "description: Use when: asked", `license: "A" and B`),
		good(`metadata: {"emoji":"\ud83d\udce7"}`), good("metadata:", "  v: 1.0", "  v: [2]", "extra: x"),
		good("x: &a [*a]"), good("x: {<<: {a: b}}"), good("x: ! b"), good("- - - a", "#", " #", "b: c"), good("..."),
		front("name: cafe\u0301", `description: "\e\u202e"`), front("name: a", "description: >-", "  b", "", "  c # d"),
		front("name: a", "x: \"\u2028\u2029\u0085\r\"", "b", "c: d"), "<!-- x -->\n---\n", "---\nname: a\n----\n", "---\nname: a\xff\n---\n",
		front("? [a]", ": {b: c}", "? ", "name: [a]"), front("# x", "", "#y", "name: a #z", "description: |2-", "    b"),
	} {
		f.Add([]byte(text), "my-skill")
	}
	f.Fuzz(func(t *testing.T, data []byte, dir string) {
		before := bytes.Clone(data)
		s, problems := Parse(data, dir)
		if !bytes.Equal(before, data) {
			t.Fatal("Parse changed the file")
		}
		again, problemsAgain := Parse(data, dir)
		if !reflect.DeepEqual(s, again) || !reflect.DeepEqual(problems, problemsAgain) {
			t.Fatal("the same file gave two results")
		}
		checkProblems(t, data, problems)
		fatal := false
		for _, p := range problems {
			info, _ := lookup(p.Code)
			fatal = fatal || info.Fatal
		}
		if fatal != (s == nil) {
			t.Fatalf("skill %v with problems %v", s, problems)
		}
		if s == nil {
			return
		}
		if strings.TrimSpace(s.Name) == "" || strings.TrimSpace(s.Description) == "" {
			t.Fatalf("loaded without name or description: %+v", s)
		}
		if !bytes.HasSuffix(data, s.Body) {
			t.Fatalf("the body is no suffix of the file: %q", s.Body)
		}
		if s.Metadata != nil && len(s.Metadata) == 0 {
			t.Fatal("empty metadata is not nil")
		}
	})
}

// checkProblems holds what is true of every problem: its line is in the file, and its words are one
// line that can be shown anywhere.
func checkProblems(t *testing.T, data []byte, problems []Problem) {
	t.Helper()
	lines := bytes.Count(data, []byte("\n")) + 1
	last := 0
	for _, p := range problems {
		if _, known := lookup(p.Code); !known {
			t.Fatalf("unknown code %q", p.Code)
		}
		if p.Line < 0 || p.Line > lines {
			t.Fatalf("%v is on line %d of %d", p, p.Line, lines)
		}
		if p.Line < last {
			t.Fatalf("problems are out of order: %v", problems)
		}
		last = p.Line
		for _, text := range []string{p.Message, p.Hint, p.Field} {
			if len(text) > 2000 || !utf8.ValidString(text) {
				t.Fatalf("%d bytes in %q", len(text), text)
			}
			for i := range len(text) {
				if text[i] < 0x20 || text[i] == 0x7f {
					t.Fatalf("%q holds a control byte", text)
				}
			}
		}
		if p.Message == "" {
			t.Fatalf("no message in %+v", p)
		}
	}
}
