package skill

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// front wraps frontmatter lines in fences, with a body after them.
func front(lines ...string) string {
	return "---\n" + strings.Join(lines, "\n") + "\n---\nBody\n"
}

// good is front with a valid name and description before lines.
func good(lines ...string) string {
	return front(append([]string{"name: my-skill", "description: Does things."}, lines...)...)
}

// codesOf returns the codes of problems in their order.
func codesOf(problems []Problem) []Code {
	var list []Code
	for _, p := range problems {
		list = append(list, p.Code)
	}
	return list
}

// expect parses text, compares the problems' codes, and returns the skill.
func expect(t *testing.T, text, dir string, want ...Code) *Skill {
	t.Helper()
	s, problems := Parse([]byte(text), dir)
	if got := codesOf(problems); !slices.Equal(got, want) {
		t.Errorf("Parse(%.60q) told %v, want %v\n%v", text, got, want, problems)
	}
	fatal := false
	for _, code := range want {
		info, _ := lookup(code)
		fatal = fatal || info.Fatal
	}
	if (s == nil) != fatal {
		t.Fatalf("Parse(%.60q) gave skill %v with problems %v", text, s, problems)
	}
	return s
}

func TestEveryFieldIsReadAsWritten(t *testing.T) {
	text := front(
		"name: release-notes", "description: 'Writes notes. It''s quick: use it.'", "license: Apache-2.0",
		"compatibility: Needs git", "allowed-tools: Bash(git:*) Read", "metadata:", "  author: someone", `  "quoted": "a\tb"`,
	)
	s := expect(t, text, "release-notes")
	if s.Name != "release-notes" || s.Description != "Writes notes. It's quick: use it." || s.License != "Apache-2.0" ||
		s.Compatibility != "Needs git" || s.AllowedTools != "Bash(git:*) Read" || string(s.Body) != "Body\n" {
		t.Errorf("got %+v", s)
	}
	if want := map[string]string{"author": "someone", "quoted": "a\tb"}; !maps.Equal(s.Metadata, want) {
		t.Errorf("metadata is %v, want %v", s.Metadata, want)
	}
}

func TestVersionStaysAsWritten(t *testing.T) {
	s := expect(t, good("license: 2.0", "metadata:", "  version: 1.0", "  build: 0x1F", "  on: yes", "  day: 2026-01-02"), "")
	want := map[string]string{"version": "1.0", "build": "0x1F", "on": "yes", "day": "2026-01-02"}
	if !maps.Equal(s.Metadata, want) || s.License != "2.0" {
		t.Errorf("license %q, metadata %v; want 2.0, %v", s.License, s.Metadata, want)
	}
	if s := expect(t, front("name: 123", "description: true"), "123"); s.Name != "123" || s.Description != "true" {
		t.Errorf("got %+v", s)
	}
}

func TestAbsentFieldsAreEmpty(t *testing.T) {
	for _, text := range []string{good(), good("license:", "compatibility: ~", "allowed-tools: null", "metadata:"), good("metadata: {}"), good("metadata: {a: }")} {
		s := expect(t, text, "")
		if s.License != "" || s.Compatibility != "" || s.AllowedTools != "" || s.Metadata != nil {
			t.Errorf("Parse(%q) = %+v", text, s)
		}
	}
}

func TestBodyIsTheRestOfTheFile(t *testing.T) {
	head := "---\nname: a\ndescription: b\n---"
	for _, c := range []struct{ file, body string }{
		{head, ""},
		{head + "\n", ""},
		{head + "\n\n# T\n---\nmore", "\n# T\n---\nmore"},
		{head + " \t\r\nx\r\n", "x\r\n"},
	} {
		data := []byte(c.file)
		s, problems := Parse(data, "a")
		if s == nil || len(problems) > 0 || string(s.Body) != c.body {
			t.Errorf("Parse(%q) = %+v, %v; want body %q", c.file, s, problems, c.body)
			continue
		}
		if s.Body == nil || cap(s.Body) > 0 && len(s.Body) > 0 && &s.Body[0] != &data[len(data)-len(s.Body)] {
			t.Errorf("the body of %q is not a part of the file's bytes", c.file)
		}
	}
}

func TestCRLFAndByteOrderMarkLoad(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(good("license: MIT"), "\n", "\r\n")
	s := expect(t, text, "my-skill")
	if s.Description != "Does things." || s.License != "MIT" || string(s.Body) != "Body\r\n" {
		t.Errorf("got %+v", s)
	}
	// With the retry, too.
	s = expect(t, "---\r\nname: a\r\ndescription: Use when: asked\r\n---\r\n", "a", YAMLRepaired)
	if s.Description != "Use when: asked" {
		t.Errorf("description is %q", s.Description)
	}
}

func TestDashesInsideAValueCloseNothing(t *testing.T) {
	s := expect(t, front("name: a", "description: before --- after", "license: '---'", "compatibility: |-", "  x", "  ---", "  y"), "a")
	if s.Description != "before --- after" || s.License != "---" || s.Compatibility != "x\n---\ny" {
		t.Errorf("got %+v", s)
	}
}

func TestNameLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		want []Code
	}{
		{"a", nil},
		{strings.Repeat("a", 63), nil},
		{strings.Repeat("a", 64), nil},
		{strings.Repeat("a", 65), []Code{NameLength}},
		{strings.Repeat("é", 64), []Code{NameNotASCII}}, // code points, not bytes
		{strings.Repeat("é", 65), []Code{NameLength, NameNotASCII}},
		{"a1-b2", nil},
		{"1", nil},
		{"-a", []Code{NameHyphens}},
		{"a-", []Code{NameHyphens}},
		{"a--b", []Code{NameHyphens}},
		{"a-b-c", nil},
		{"Release", []Code{NameCharacters}},
		{"my_skill", []Code{NameCharacters}},
		{"my skill", []Code{NameCharacters}},
		{"meeting-sdk/linux", []Code{NameCharacters}},
		{"../up", []Code{NameCharacters}},
		{"a.b", []Code{NameCharacters}},
		{"'a:b'", []Code{NameCharacters}},
		{`"a\e[0mb"`, []Code{NameCharacters}},
		{"技能", []Code{NameNotASCII}},
		{"мой-навык", []Code{NameNotASCII}},
		{"НАВЫК", []Code{NameCharacters, NameNotASCII}},
		{"a\u0301\u0301", []Code{NameCharacters}}, // the second mark has nothing to join
	} {
		expect(t, front("name: "+c.name, "description: b"), "", c.want...)
	}
}

func TestNamesAreComparedInNFKC(t *testing.T) {
	s := expect(t, front("name: cafe\u0301", "description: b"), "café", NameNotASCII)
	if s.Name != "café" {
		t.Errorf("name is %q", s.Name)
	}
	expect(t, front("name: café", "description: b"), "cafe\u0301", NameNotASCII) // the directory, too
	if s := expect(t, front("name: '  ａｂ '", "description: b"), "ab"); s.Name != "ab" {
		t.Errorf("name is %q", s.Name)
	}
}

func TestNameAndDirectory(t *testing.T) {
	expect(t, good(), "my-skill")
	expect(t, good(), "")
	expect(t, good(), "other", NameDirectory)
	expect(t, good(), "My-Skill", NameDirectory)
	expect(t, good(), "my-skill\xff\x1b", NameDirectory)
}

func TestDescriptionLimits(t *testing.T) {
	for n, want := range map[int][]Code{1: nil, 1023: nil, 1024: nil, 1025: {DescriptionLength}} {
		expect(t, front("name: a", "description: "+strings.Repeat("é", n)), "a", want...)
	}
	// White space at the ends counts.
	expect(t, front("name: a", `description: "`+strings.Repeat("x", 1023)+` "`), "a")
	expect(t, front("name: a", `description: "`+strings.Repeat("x", 1024)+` "`), "a", DescriptionLength)
}

func TestRequiredKeysMustBeThere(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Code
	}{
		{front("description: b"), []Code{NameMissing}},
		{front("name:", "description: b"), []Code{NameMissing}},
		{front("name: ~", "description: b"), []Code{NameMissing}},
		{front("name: ''", "description: b"), []Code{NameMissing}},
		{front("name: ' \t'", "description: b"), []Code{NameMissing}},
		{front("name: \"\u3000\"", "description: b"), []Code{NameMissing}},
		{front("name: [a]", "description: b"), []Code{NameNotText}},
		{front("name: {a: b}", "description: b"), []Code{NameNotText}},
		{front("name: a"), []Code{DescriptionMissing}},
		{front("name: a", "description:"), []Code{DescriptionMissing}},
		{front("name: a", "description: null"), []Code{DescriptionMissing}},
		{front("name: a", `description: "  \n\t"`), []Code{DescriptionMissing}},
		{front("name: a", "description: >-", "", ""), []Code{DescriptionMissing}},
		{front("name: a", "description: [TODO]"), []Code{DescriptionNotText}},
		{front("name: a", "description:", "  when: b"), []Code{DescriptionNotText}},
		{front(""), []Code{NameMissing, DescriptionMissing}},
		{front("# only a comment"), []Code{NameMissing, DescriptionMissing}},
		{front("~"), []Code{NameMissing, DescriptionMissing}},
		{"---\n---\n", []Code{NameMissing, DescriptionMissing}},
		{front("- name: a"), []Code{NotMapping}},
		{front("just words"), []Code{NotMapping}},
		{front("Name: a", "description: b"), []Code{NameMissing, UnknownKey}},
		{front("name: a", "name: b", "description: b"), []Code{DuplicateRequiredKey}},
		{front("name: a", "description: b", "description: b"), []Code{DuplicateRequiredKey}},
		{front("name: 'null'", "description: '~'"), nil}, // quoted, they are text
	} {
		expect(t, c.text, "", c.want...)
	}
}

func TestOptionalKeys(t *testing.T) {
	x := func(n int) string { return strings.Repeat("é", n) }
	for _, c := range []struct {
		line string
		want []Code
	}{
		{"compatibility: " + x(499), nil},
		{"compatibility: " + x(500), nil},
		{"compatibility: " + x(501), []Code{CompatibilityLength}},
		{"compatibility: ''", []Code{CompatibilityLength}},
		{"compatibility: [a]", []Code{CompatibilityNotText}},
		{"license: [MIT]", []Code{LicenseNotText}},
		{"license: {a: b}", []Code{LicenseNotText}},
		{"allowed-tools: Read, Write", nil},
		{"allowed-tools: [Read, Write]", []Code{AllowedToolsNotText}},
		{"allowed-tools:\n  - Read", []Code{AllowedToolsNotText}},
		{"metadata: text", []Code{MetadataNotFlat}},
		{"metadata: [a]", []Code{MetadataNotFlat}},
		{"metadata: {a: [b]}", []Code{MetadataNotFlat}},
		{"metadata: {[a]: b}", []Code{MetadataNotFlat}},
		{"metadata: {a: b, c: {d: e}, f: {g: h}}", []Code{MetadataNotFlat, MetadataNotFlat}},
		{"metadata: {a: 1, a: 2}", []Code{DuplicateKey}},
		{"license: a\nlicense: b", []Code{DuplicateKey}},
		{"version: 1\nversion: 2", []Code{UnknownKey, DuplicateKey}},
		{"author: someone", []Code{UnknownKey}},
		{"License: MIT", []Code{UnknownKey}},
		{"? [a]\n: b", []Code{UnknownKey}},
	} {
		expect(t, good(c.line), "", c.want...)
	}
	if s := expect(t, good("metadata: {a: b, c: {d: e}}"), "", MetadataNotFlat); !maps.Equal(s.Metadata, map[string]string{"a": "b"}) {
		t.Errorf("the flat entries are %v", s.Metadata)
	}
	if p := problemsOf(good("? [a]\n: b"))[0]; !strings.Contains(p.Message, "where a key should be") {
		t.Errorf("a list as a key told %v", p)
	}
	if s := expect(t, good("allowed-tools: [Read]"), "", AllowedToolsNotText); s.AllowedTools != "" {
		t.Errorf("a list gave allowed-tools %q", s.AllowedTools)
	}
}

func TestOfDuplicateKeysTheLastCounts(t *testing.T) {
	s := expect(t, good("license: a", "metadata: {v: 1, w: 2, v: 3, w: [x]}", "license: b"), "", DuplicateKey, DuplicateKey, MetadataNotFlat, DuplicateKey)
	if s.License != "b" || !maps.Equal(s.Metadata, map[string]string{"v": "3"}) {
		t.Errorf("got license %q, metadata %v", s.License, s.Metadata)
	}
}

func TestParseLeavesTheFileAlone(t *testing.T) {
	for _, text := range []string{good(), front("name: a", "description: Use when: asked", "license: 'x' y")} {
		data := []byte(text)
		Parse(data, "")
		if !bytes.Equal(data, []byte(text)) {
			t.Errorf("Parse changed %q to %q", text, data)
		}
	}
}

func TestProblemsNameTheirLine(t *testing.T) {
	text := "---\n# comment\nname: My\ndescription: |\n  one\n  two\n\nextra: x\nmetadata:\n  ok: 1\n  bad: [y]\nallowed-tools: [z]\n---\n"
	want := []string{"3 name-characters", "8 unknown-key", "11 metadata-not-flat", "12 allowed-tools-not-text"}
	for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text} {
		_, problems := Parse([]byte(text), "")
		var got []string
		for _, p := range problems {
			got = append(got, fmt.Sprintf("%d %s", p.Line, p.Code))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestYAMLsOtherLineEndsAreNotLinesOfTheFile(t *testing.T) {
	_, problems := Parse([]byte("---\nname: a\ndescription: \"x\u2028y\u2029z\u0085w\rv\"\nextra: x\n---\n"), "a")
	if len(problems) != 1 || problems[0].Code != UnknownKey || problems[0].Line != 4 {
		t.Errorf("got %v, want an unknown key on line 4", problems)
	}
}
