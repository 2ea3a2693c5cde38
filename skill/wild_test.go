package skill

import (
	"strings"
	"testing"
)

// TestRetryMendsWhatPeopleWrite has the kinds of failure met in published skills that quoting one value
// mends.
func TestRetryMendsWhatPeopleWrite(t *testing.T) {
	for _, value := range []string{
		"**Bold** text",
		"*emphasis* text",
		"Use when: asked about PDFs",
		"Helps; it's for: people's files",
		`"A" and B`,
		`'A' and B`,
		"@mention first",
		"`code` first",
		"%percent first",
		"> quoted: twice",
		"[draft] Does things",
		"[unclosed",
		"- a dash: first",
		"trailing colon:",
		`"bad \q escape"`,
	} {
		for _, text := range []string{
			front("name: a", "description: "+value, "license: MIT"),
			front("name: a", "description: \t "+value+" \t", "", "license: MIT"),
			"---\nlicense: MIT\nname: a\ndescription: " + value + "\n---",
		} {
			s := expect(t, text, "a", YAMLRepaired)
			if s.Description != value || s.License != "MIT" || s.Name != "a" {
				t.Errorf("Parse(%q) = %+v", text, s)
			}
		}
	}
}

func TestRetryMendsSeveralValuesAndNamesEach(t *testing.T) {
	text := front("name: a", "description: Use when: asked", "license: 'MIT' only", "metadata:", "  v: 1")
	_, problems := Parse([]byte(text), "a")
	if len(problems) != 2 || problems[0].Line != 3 || problems[0].Field != "description" || problems[1].Line != 4 || problems[1].Field != "license" {
		t.Errorf("got %+v", problems)
	}
	for _, p := range problems {
		if p.Code != YAMLRepaired || p.Hint == "" || Severities(nil).Of(p.Code) != Warning {
			t.Errorf("got %+v", p)
		}
	}
}

func TestRetryKeepsFlowMetadataAsText(t *testing.T) {
	s := expect(t, good(`metadata: {"emoji":"\ud83d\udce7"}`), "", YAMLRepaired, MetadataNotFlat)
	if s.Metadata != nil {
		t.Errorf("metadata is %v", s.Metadata)
	}
}

func TestRetryTouchesOnlyWholeTopLevelValuesThatFailAlone(t *testing.T) {
	// What reads well alone stays: the quotes of the license are YAML's, not part of it.
	s := expect(t, front("name: a", "description: Use when: asked", `license: "MIT"`, "compatibility: x # note"), "a", YAMLRepaired)
	if s.License != "MIT" || s.Compatibility != "x" {
		t.Errorf("got %+v", s)
	}
	// The start of a quoted text fails alone too, and is whole with the line below it.
	s = expect(t, front("name: a", `description: "first`, "", `  second"`, "license: b: c"), "a", YAMLRepaired)
	if s.Description != "first\nsecond" || s.License != "b: c" {
		t.Errorf("got %+v", s)
	}
	// The quotes go around the value even where the line has its text before.
	text := good("x: x: x")
	expect(t, text, "", YAMLRepaired, UnknownKey)
	if p := problemsOf(text)[1]; p.Field != "x" {
		t.Errorf("the unknown key is %q", p.Field)
	}
	for name, text := range map[string]string{
		"a value that goes on":       front("name: a", "description: Use when: asked", "  and later"),
		"after a blank line":         front("name: a", "description: Use when: asked", "", "  and later"),
		"with a list":                front("name: a", "description: Use when: asked", "- for PDFs"),
		"with an empty list item":    front("name: a", "description: Use when: asked", "-", "license: MIT"),
		"a nested value":             good("metadata:", "  when: asked: often"),
		"an unindented line":         front("name: a", "description: Use when: asked", "and later", "license: MIT"),
		"an unindented continuation": front("name: a", "description: first", "second line", "license: MIT"),
		"nothing after the colon":    front("name: a", "description:", "second line", "license: MIT"),
		"a tab before a key":         front("name: a", "\tdescription: b"),
		"an unclosed nested flow":    good("metadata:", "  a: [b"),
		"a key that is no word":      good("a b: c: d"),
	} {
		t.Run(name, func(t *testing.T) { expect(t, text, "", YAMLSyntax) })
	}
}

func TestOnlyAWordColonBlankIsAKey(t *testing.T) {
	for line, want := range map[string][2]string{
		"a: b\n":             {"a", "b"},
		"A-b_9:\t b: c \r\n": {"A-b_9", "b: c"},
		"a:b: c":             {},
		"a b: c":             {},
		"é: c":               {},
		" a: b":              {},
		": b":                {},
		"a:":                 {},
		"a: \r\n":            {},
		"a":                  {},
		"":                   {},
	} {
		key, value := keyAndValue([]byte(line))
		if string(key) != want[0] || string(value) != want[1] {
			t.Errorf("keyAndValue(%q) = %q, %q; want %q", line, key, value, want)
		}
	}
}

func TestSyntaxProblemsNameTheLine(t *testing.T) {
	for _, c := range []struct {
		text, why string
		line      int
	}{
		{front("{"), "node content", 2},
		{front("a:", "  [}"), "node content", 3},
		{front("name: a", "second line", "license: MIT"), "':'", 3},
		{front("name: a", "description: x", "- y"), "expected key", 4},
		{good("metadata:", "  a: [b"), "',' or ']'", 5},
		{good("metadata:", "  when: asked: often"), "mapping values", 5},
		{good("metadata:", "  - a", " b"), "expected key", 6},
		{front("name: a", "\tdescription: b"), "tab character", 3},
		{front("name: a", "description: b: c", "x:", "  y: z: w"), "mapping values", 5}, // not the line that quoting mends
		{front("name: a", "x: \"\u2028\u2028\"", "b", "c: d"), "':'", 4},
		{front("name: a", "description: x\x7fy"), `\u{7f}`, 3},
		{front("name: a", "description: x\ufffey"), `\u{fffe}`, 3},
	} {
		problems := problemsOf(c.text)
		if len(problems) != 1 || problems[0].Line != c.line || !strings.Contains(problems[0].Message, c.why) || problems[0].Hint == "" {
			t.Errorf("Parse(%q) told %v; want %q on line %d", c.text, problems, c.why, c.line)
		}
	}
}

// TestFenceHints has the ways published skills miss the fences, and what the hint must say.
func TestFenceHints(t *testing.T) {
	const rest = "name: a\ndescription: b\n---\nBody\n"
	for _, c := range []struct {
		name, text string
		code       Code
		line       int
		hint       string
	}{
		{"comment", "<!-- licence -->\n---\n" + rest, NoFrontmatter, 1, "comment"},
		{"code fence", "```markdown\n---\n" + rest + "```\n", NoFrontmatter, 1, "code fence"},
		{"leading blank", "\n\n---\n" + rest, NoFrontmatter, 1, "blank"},
		{"leading heading", "# Title\n\n---\n" + rest, NoFrontmatter, 1, "heading"},
		{"leading words", "Title\n---\n" + rest, NoFrontmatter, 1, "before the first line ---"},
		{"indented fence", "  ---\n" + rest, NoFrontmatter, 1, "before the ---"},
		{"text after", "--- yaml\n" + rest, NoFrontmatter, 1, "three dashes"},
		{"four dashes", "----\n" + rest, NoFrontmatter, 1, "three dashes"},
		{"TOML", "+++\nname = 'a'\n+++\n", NoFrontmatter, 1, "TOML"},
		{"none", "# Title\n\nBody\n", NoFrontmatter, 1, "begin the file"},
		{"empty", "", NoFrontmatter, 1, "empty"},
		{"blank", "\n \n", NoFrontmatter, 1, "empty"},
		{"only a mark", "\ufeff", NoFrontmatter, 1, "empty"},
		{"unclosed", "---\nname: a\ndescription: b\n\n# Title\n", UnclosedFrontmatter, 1, "after the last"},
		{"closed with text", "---\nname: a\ndescription: b\n--- end\nBody\n", UnclosedFrontmatter, 4, "--- end"},
		{"closed with four", "---\nname: a\ndescription: b\n----\nBody\n", UnclosedFrontmatter, 4, "----"},
		{"closed indented", "---\nname: a\ndescription: b\n ---\nBody\n", UnclosedFrontmatter, 4, "unindented"},
		{"closed with dots", "---\nname: a\ndescription: b\n...\nBody\n", UnclosedFrontmatter, 4, "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect(t, c.text, "", c.code)
			p := problemsOf(c.text)[0]
			if p.Line != c.line || !strings.Contains(p.Hint, c.hint) {
				t.Errorf("got line %d, hint %q; want line %d, a hint of %q", p.Line, p.Hint, c.line, c.hint)
			}
		})
	}
}
