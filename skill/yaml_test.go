package skill

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestYAMLDepthLimit(t *testing.T) {
	// The top-level mapping is the first, metadata's value the second.
	nested := func(collections int) string {
		inner := collections - 1
		return good("metadata: " + strings.Repeat("[", inner) + strings.Repeat("]", inner))
	}
	expect(t, nested(7), "", MetadataNotFlat)
	expect(t, nested(8), "", MetadataNotFlat)
	expect(t, nested(9), "", YAMLLimits)
	expect(t, good("metadata:", " a:", "  b:", "   c:", "    d:", "     e:", "      f:", "       g: x"), "", MetadataNotFlat)
	expect(t, good("metadata:", " a:", "  b:", "   c:", "    d:", "     e:", "      f:", "       g:", "        h: x"), "", YAMLLimits)
}

func TestYAMLNodeLimit(t *testing.T) {
	// The mapping, two keys with their values, the key license and its list make seven.
	list := func(nodes int) string { return good("license: [" + strings.Repeat("a,", nodes-7) + "]") }
	expect(t, list(999), "", LicenseNotText)
	expect(t, list(1000), "", LicenseNotText)
	expect(t, list(1001), "", YAMLLimits)
}

func TestYAMLLineLimit(t *testing.T) {
	lines := func(n int) string { return good(strings.Repeat("\n", n-3)) }
	expect(t, lines(4095), "")
	expect(t, lines(4096), "")
	expect(t, lines(4097), "", YAMLLimits)
	// The other characters that end a line for YAML count as well.
	for _, end := range []string{"\r", "\u0085", "\u2028", "\u2029"} {
		expect(t, good("#"+strings.Repeat(end+"#", 5000)), "", YAMLLimits)
	}
}

func TestYAMLOpeningLimit(t *testing.T) {
	// Text, so that only what the scan counts can refuse it.
	block := func(text string) string { return good("license: |", "  "+text) }
	for _, mark := range []string{"[", "{"} {
		expect(t, block(strings.Repeat(mark, 1000)), "")
		expect(t, block(strings.Repeat(mark, 1001)), "", YAMLLimits)
	}
	for _, mark := range []string{"- ", "? ", ": ", "-\t"} {
		// The first of a line opens nothing that its own line does not show.
		expect(t, block(strings.Repeat(mark, 1001)+"x"), "")
		expect(t, block(strings.Repeat(mark, 1002)+"x"), "", YAMLLimits)
	}
	expect(t, block(strings.Repeat("- - -\n  ", 501)), "", YAMLLimits)
	expect(t, block(strings.Repeat("- -x\n  ", 1100)), "")
	expect(t, block(strings.Repeat("- a\n  ", 1100)), "")
}

func TestRetryIsForFrontmatterOfOrdinarySize(t *testing.T) {
	sized := func(n int) string {
		text := "name: a\ndescription: b: c\nlicense: "
		return "---\n" + text + strings.Repeat("x", n-len(text)-1) + "\n---\n"
	}
	expect(t, sized(16<<10), "", YAMLRepaired)
	expect(t, sized(16<<10+1), "", YAMLSyntax)

	// Two values, one of which fails, and extra ones that do not.
	many := func(values int) string {
		return front("name: a", "description: b: c"+strings.Repeat("\nlicense: x", values-2))
	}
	_, problems := Parse([]byte(many(100)), "a")
	if len(problems) == 0 || problems[0].Code != YAMLRepaired {
		t.Errorf("100 values: %v", problems)
	}
	expect(t, many(101), "", YAMLSyntax)
}

func TestOnlyPlainYAML(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
	}{
		{good("x: &a b"), 4},
		{good("&a x: b"), 4},
		{good("x: &a"), 4},
		{good("x: &a [b]"), 4},
		{good("x: &a b", "y: *a"), 4},
		{good("metadata: &a {b: c}", "x: {<<: *a}"), 4},
		{good("metadata: {<<: {a: b}}"), 4},
		{good("", "<<: {a: b}"), 5},
		{good("x: !!str b"), 4},
		{good("x: !!map {a: b}"), 4},
		{good("x: !local b"), 4},
		{good("x: !<tag:example.org,2026:x> b"), 4},
		{good("x: ! b"), 4},
		{good("metadata:", "  é: [é, ! b]"), 5},
		{good("!!str x: b"), 4},
		{front("name: ! a", "description: b"), 2},
		{"---\n\ufeffname: ! a\ndescription: b\n---\n", 2},
		{good("..."), 4},
		{good("...", "license: MIT"), 4},
		{good("... # end"), 4},
		{good("--- x", "license: MIT"), 4},
		{front("--- # start", "name: a", "description: b"), 2},
		{front("%YAML 1.1", "--- ", "name: a", "description: b"), 0}, // the fence ends it
	} {
		if c.line == 0 {
			expect(t, c.text, "", YAMLSyntax)
			continue
		}
		expect(t, c.text, "", YAMLForbidden)
		if p := problemsOf(c.text)[0]; p.Line != c.line {
			t.Errorf("Parse(%q) told %v; want line %d", c.text, p, c.line)
		}
	}
}

func TestForbiddenYAMLIsNamed(t *testing.T) {
	for _, c := range []struct {
		node  yaml.Node
		first byte
		want  string
	}{
		{yaml.Node{Kind: yaml.AliasNode, Value: "a\x1b"}, '*', `an alias, *a\u{1b}`},
		{yaml.Node{Kind: yaml.ScalarNode, Anchor: "a"}, '&', "an anchor, &a"},
		{yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.TaggedStyle}, 0, "an explicit tag, !!str"},
		{yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}, '!', "an explicit tag, !"},
		{yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"}, 'a', ""},
	} {
		if got := forbidden(&c.node, c.first); got != c.want {
			t.Errorf("forbidden(%+v, %q) = %q, want %q", c.node, c.first, got, c.want)
		}
	}
}

func TestWhatOnlyLooksLikeForbiddenYAMLLoads(t *testing.T) {
	for _, text := range []string{
		good("license: a! b"), good("license: '! b'"), good(`license: "!!str &a *b"`), good("license: a & b * c"),
		good("license: <<"), good("license: ----"), good("license: |", "  ..."), good("license: ...x"), good("license: a", "# &a *b !c"),
	} {
		expect(t, text, "")
	}
	expect(t, good("'<<': {a: b}"), "", UnknownKey)
	expect(t, good("...x: y"), "", UnknownKey)
	expect(t, good("---x: y"), "", UnknownKey)
}

func TestRetryMakesNoForbiddenYAMLPass(t *testing.T) {
	expect(t, good("x: &a [b]", "y: *a", "license: c: d"), "", YAMLForbidden, YAMLRepaired, YAMLRepaired)
	expect(t, good("metadata: {<<: {a: b}}", "license: c: d"), "", YAMLForbidden, YAMLRepaired)
}

func TestAPanicInTheYAMLReaderIsASyntaxProblem(t *testing.T) {
	err := guard(func() error { panic("internal error (please report)") })
	if !errors.Is(err, errYAMLPanic) {
		t.Fatalf("guard gave %v", err)
	}
	if p := syntaxProblem([]byte("a: b\n"), err); p.Code != YAMLSyntax || p.Line != 2 {
		t.Errorf("got %+v", p)
	}
}

func TestLongReaderMessagesAreShortened(t *testing.T) {
	p := syntaxProblem([]byte("a\n"), fmt.Errorf("yaml: line 1: unknown anchor '%s\x1b'", strings.Repeat("b", 60<<10)))
	if len(p.Message) > 300 {
		t.Errorf("a message of %d bytes", len(p.Message))
	}
}
