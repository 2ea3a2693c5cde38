package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/skill"
)

func TestADescriptionIsCutToTheTerminal(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"short", 10, "short"}, {"exactly10!", 10, "exactly10!"}, {"one more 11", 10, "one more …"},
		{"größer als", 5, "größ…"}, {"no terminal", 0, "no terminal"}, {"", 5, ""},
	} {
		if got := cut(c.text, c.n); got != c.want {
			t.Errorf("cut(%q, %d) is %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestOnlyPlainNamesAreCompleted(t *testing.T) {
	for name, want := range map[string]bool{
		"release": true, "a-1": true, "": false, "-rf": false, "a b": false, "$(x)": false, "a/b": false, "é": false,
	} {
		if plainWord(name) != want {
			t.Errorf("%q is plain: %v", name, !want)
		}
	}
}

// What the standard's reference validator refuses, --strict does.
func TestStrictMindsEveryRuleOfTheStandard(t *testing.T) {
	lax := skill.Severities{}
	for _, c := range skill.Codes() {
		if !c.Fatal {
			lax[c.Code] = skill.Ignore
		}
	}
	strict := strictSeverities(lax)
	for name, text := range map[string]string{
		"unknown key":         "name: x\ndescription: d\nversion: 1\n",
		"another directory":   "name: y\ndescription: d\n",
		"upper case":          "name: X\ndescription: d\n",
		"underscore":          "name: x_y\ndescription: d\n",
		"two hyphens":         "name: x--y\ndescription: d\n",
		"unquoted colon":      "name: x\ndescription: use when: asked\n",
		"key twice":           "name: x\ndescription: d\nlicense: a\nlicense: b\n",
		"compatibility":       "name: x\ndescription: d\ncompatibility: [a]\n",
		"nested metadata":     "name: x\ndescription: d\nmetadata:\n  a:\n    b: c\n",
		"list of tools":       "name: x\ndescription: d\nallowed-tools:\n  - Read\n",
		"blank description":   "name: x\ndescription: ' '\n",
		"missing description": "name: x\n",
	} {
		p := judge([]byte("---\n"+text+"---\n"), "SKILL.md", "x", strict)
		if !slices.ContainsFunc(p.diagnostics, func(d diagnostic) bool { return d.Severity >= skill.Warning }) {
			t.Errorf("%s: nothing is told of it", name)
		}
	}
	if p := judge([]byte("---\nname: x\ndescription: d\nlicense: MIT\ncompatibility: any\nallowed-tools: Read\nmetadata:\n  a: b\n---\nbody\n"), "SKILL.md", "x", strict); len(p.diagnostics) > 0 {
		t.Errorf("a good skill is told %+v", p.diagnostics)
	}
	for code := range strict {
		if strict.Of(code) < lax.Of(code) {
			t.Errorf("%s counts for less", code)
		}
	}
}

func TestADescriptionIsShownOnOneLine(t *testing.T) {
	for _, s := range []string{
		"", " ", "a", "a b", " a", "a ", "a  b", "a\nb", "a\tb\r\n", "é à", "a\u00a0b", "\x7f", "a\u2003 b", strings.Repeat("word ", 9),
	} {
		if got, want := oneLine(s), strings.Join(strings.Fields(s), " "); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}
