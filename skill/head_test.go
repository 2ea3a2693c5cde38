package skill

import (
	"reflect"
	"strings"
	"testing"
)

func TestHeadEndsAfterTheClosingFence(t *testing.T) {
	for _, c := range []struct{ head, body string }{
		{"---\nname: a\n---\n", "body\n---\nmore"},
		{"---\r\nname: a\r\n---\r\n", "body"},
		{"\ufeff---  \nname: a\n--- \t\r\n", "body"},
		{"---\n---\n", "---\n"},
		{"---\nname: a\n---", ""},
		{"---\nname: a\n--- not\n ---\nno end\n", ""},
		{"---", ""},
		{"", ""},
		{"\ufeff", ""},
		{"\n", "---\nname: a\n---\n"},
		{"# Title\n", "---\nname: a\n---\n"},
		{"one line", ""},
	} {
		if n := Head([]byte(c.head + c.body)); n != len(c.head) {
			t.Errorf("Head(%q) = %d, want %d", c.head+c.body, n, len(c.head))
		}
	}
}

func FuzzHead(f *testing.F) {
	for _, text := range []string{
		"", "---", "---\n---\n", good(), good() + "\n---\nx", "\ufeff" + strings.ReplaceAll(good("license: MIT"), "\n", "\r\n"),
		"---\nname: a\n----\n", "# x\n---\n", front("name: a", "description: x: y") + "body",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n := Head(data)
		if n < 0 || n > len(data) || n == 0 && len(data) > 0 {
			t.Fatalf("Head is %d of %d bytes", n, len(data))
		}
		if again := Head(data[:n]); again != n {
			t.Fatalf("the head's own head is %d of its %d bytes", again, n)
		}
		if checkText(data) != nil {
			return // of which the head may know nothing
		}
		whole, wholeProblems := Parse(data, "d")
		head, headProblems := Parse(data[:n], "d")
		if whole != nil {
			whole.Body = nil
		}
		if head != nil {
			if len(head.Body) > 0 {
				t.Fatalf("the head has a body: %q", head.Body)
			}
			head.Body = nil
		}
		for _, problems := range [][]Problem{wholeProblems, headProblems} {
			for i := range problems {
				if problems[i].Code == NoFrontmatter {
					problems[i].Hint = ""
				}
			}
		}
		if !reflect.DeepEqual(whole, head) || !reflect.DeepEqual(wholeProblems, headProblems) {
			t.Fatalf("the whole file is %+v with %v, its head %+v with %v", whole, wholeProblems, head, headProblems)
		}
	})
}
