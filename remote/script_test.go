package remote

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheScriptsKeepTheirRules(t *testing.T) {
	digests := make([]string, 90)
	for i := range digests {
		digests[i] = fmt.Sprintf("%064x", i)
	}
	for _, verb := range []string{verbCheck, verbPublish, verbList, verbPrune, verbProbe, verbCollections} {
		s := script(verb)
		t.Logf("%s: %d bytes", verb, len(s))
		for i := range len(s) {
			switch c := s[i]; {
			case c < ' ' || c > '~':
				t.Errorf("%s: the byte %q at %d", verb, c, i)
			case c == '\'':
				t.Errorf("%s: a single quote at %d: %s", verb, i, s[max(i-20, 0):i+1])
			case c == '\\' && i+1 < len(s) && s[i+1] == '\\':
				t.Errorf("%s: two backslashes at %d: %s", verb, i, s[max(i-20, 0):i+2])
			case c == '!' && i+1 < len(s) && !strings.ContainsRune(` ="`, rune(s[i+1])):
				t.Errorf("%s: an exclamation mark before a word at %d: %s", verb, i, s[max(i-20, 0):i+2])
			}
		}
		if strings.Contains(s, "#") && strings.Contains(s, " # ") {
			t.Errorf("%s: a comment", verb)
		}
	}
	long := strings.Repeat("d", maxDirBytes)
	for _, c := range []struct {
		verb, dir string
		words     []string
		most      int // commands
	}{
		{verbCheck, "berry/skills", digests, 1},
		{verbCheck, long, digests, 2},
		{verbPublish, "berry/skills", digests, 2},
		{verbPrune, "berry/skills", digests, 3},
	} {
		all := batches(c.verb, c.dir, c.words)
		n := 0
		for _, b := range all {
			n += len(b)
			if l := line(c.verb, strings.Repeat("f", nonceLen), c.dir, b...); len(l) > maxLineBytes {
				t.Errorf("%s: a command of %d bytes, over %d", c.verb, len(l), maxLineBytes)
			}
		}
		if n != len(c.words) || len(all) > c.most {
			t.Errorf("%s: %d of %d digests in %d commands, want at most %d", c.verb, n, len(c.words), len(all), c.most)
		}
	}
}

func TestJoinMakesOneLineOfAScript(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"# comment\na\n\n  b\n", "a; b"},
		{"if a; then\n  b\nelse\n  c\nfi\n", "if a; then b; else c; fi"},
		{"f() {\n  a |\n  b\n}\nf", "f() { a | b; }; f"},
		{"case $x in\n  a) b ;;\nesac", "case $x in a) b ;; esac"},
		{"a &&\nb ||\nc", "a && b || c"},
		{"for x do\n  a\ndone", "for x do a; done"},
	} {
		if got := join(c.in); got != c.want {
			t.Errorf("join(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
