package skill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/punnet/punnet/internal/display"
	"gopkg.in/yaml.v3"
)

const knownKeys = "name, description, license, compatibility, metadata, allowed-tools"

// reader turns a frontmatter mapping into a Skill and gathers what is wrong on the way.
type reader struct {
	problems []Problem
	fatal    bool // no skill can come of it
}

// report adds a problem.
func (r *reader) report(code Code, line int, field, hint, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		Code: code, Line: line, Field: field, Message: fmt.Sprintf(format, args...), Hint: hint,
	})
}

// refuse adds a problem that leaves no skill.
func (r *reader) refuse(code Code, line int, field, hint, format string, args ...any) {
	r.fatal = true
	r.report(code, line, field, hint, format, args...)
}

// entry is a top-level key's value and the key's line.
type entry struct {
	value *yaml.Node // nil where the key is absent or its value null
	line  int
}

// read returns the skill that root describes, without its body; nil when there is none.
func (r *reader) read(root *yaml.Node, dir string) *Skill {
	e := r.entries(root)
	s := &Skill{
		Name:          r.name(e["name"], dir),
		Description:   r.description(e["description"]),
		License:       r.optional(e["license"], "license", LicenseNotText),
		Compatibility: r.compatibility(e["compatibility"]),
		AllowedTools:  r.optional(e["allowed-tools"], "allowed-tools", AllowedToolsNotText),
		Metadata:      r.metadata(e["metadata"]),
	}
	if r.fatal {
		return nil
	}
	return s
}

// entries sorts the mapping's entries by key. Of a key given twice the last counts, as in most YAML
// readers, and nothing may hang on which of two required values that is.
func (r *reader) entries(root *yaml.Node) map[string]entry {
	found := make(map[string]entry, len(root.Content)/2)
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.report(UnknownKey, key.Line, "", "", "a list or mapping stands where a key should be")
			continue
		}
		field := display.Quote(shorten(key.Value, quotedRunes))
		_, again := found[key.Value]
		switch key.Value {
		case "name", "description":
			if again {
				r.refuse(DuplicateRequiredKey, key.Line, field, "keep one of them", "%s is given twice", field)
			}
		case "license", "compatibility", "metadata", "allowed-tools":
			if again {
				r.duplicate(key.Line, field)
			}
		default:
			if again {
				r.duplicate(key.Line, field)
			} else {
				r.unknown(key, field)
			}
		}
		if isNull(value) {
			value = nil
		}
		found[key.Value] = entry{value, key.Line}
	}
	return found
}

func (r *reader) duplicate(line int, field string) {
	r.report(DuplicateKey, line, field, "keep one of them", "%s is given twice; the last one counts", quote(field))
}

func (r *reader) unknown(key *yaml.Node, field string) {
	hint := "the keys are " + knownKeys + "; others can go under metadata"
	if lower := strings.ToLower(key.Value); lower != key.Value && slices.Contains(strings.Split(knownKeys, ", "), lower) {
		hint = "write it in lower case"
	}
	r.report(UnknownKey, key.Line, field, hint, "%s is not a key of the standard", quote(key.Value))
}

func (r *reader) name(e entry, dir string) string {
	if e.value == nil {
		r.refuse(NameMissing, e.line, "name", "write a line such as name: my-skill", "there is no name")
		return ""
	}
	if e.value.Kind != yaml.ScalarNode {
		r.refuse(NameNotText, e.line, "name", "write it as text, in quotes if it starts with [ or {", "the name is %s", shape(e.value))
		return ""
	}
	name := canonicalName(e.value.Value)
	if name == "" {
		r.refuse(NameMissing, e.line, "name", "write a line such as name: my-skill", "the name is empty")
		return ""
	}
	r.problems = append(r.problems, checkName(name, e.line)...)
	r.problems = append(r.problems, checkDirectory(name, dir, e.line)...)
	return name
}

func (r *reader) description(e entry) string {
	const field = "description"
	const hint = "say what the skill does and when to use it"
	if e.value == nil {
		r.refuse(DescriptionMissing, e.line, field, hint, "there is no description")
		return ""
	}
	if e.value.Kind != yaml.ScalarNode {
		r.refuse(DescriptionNotText, e.line, field, "write it as text, in quotes if it starts with [ or {", "the description is %s", shape(e.value))
		return ""
	}
	text := e.value.Value
	if strings.TrimSpace(text) == "" {
		r.refuse(DescriptionMissing, e.line, field, hint, "the description is blank")
		return ""
	}
	if n := utf8.RuneCountInString(text); n > MaxDescriptionRunes {
		r.report(DescriptionLength, e.line, field, "shorten it, and move the rest below the frontmatter",
			"the description is %d characters long; at most %d are allowed", n, MaxDescriptionRunes)
	}
	if hidden, ok := firstHidden(text); ok {
		r.report(DescriptionHidden, e.line, field, "remove it",
			"the description holds a character that cannot be seen: %s", quote(string(hidden)))
	}
	return text
}

// firstHidden finds the first rune that could make a text read differently from how it looks. Line
// ends and tabs are part of ordinary YAML text.
func firstHidden(text string) (rune, bool) {
	for _, r := range text {
		if ' ' <= r && r <= '~' {
			continue
		}
		if r != '\n' && r != '\r' && r != '\t' && display.Hidden(r) {
			return r, true
		}
	}
	return 0, false
}

// optional returns an optional key's text, "" where it has none.
func (r *reader) optional(e entry, field string, notText Code) string {
	if e.value == nil {
		return ""
	}
	if e.value.Kind != yaml.ScalarNode {
		r.report(notText, e.line, field, "write it as one line of text", "%s is %s, not text", field, shape(e.value))
		return ""
	}
	return e.value.Value
}

func (r *reader) compatibility(e entry) string {
	const field = "compatibility"
	text := r.optional(e, field, CompatibilityNotText)
	if e.value == nil || e.value.Kind != yaml.ScalarNode {
		return text
	}
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		r.report(CompatibilityLength, e.line, field, "remove the key, or fill it in", "compatibility is empty")
	case n > MaxCompatibilityRunes:
		r.report(CompatibilityLength, e.line, field, "",
			"compatibility is %d characters long; at most %d are allowed", n, MaxCompatibilityRunes)
	}
	return text
}

// metadata returns the flat entries of metadata, and tells of the others.
func (r *reader) metadata(e entry) map[string]string {
	const field = "metadata"
	const hint = "write each entry as key: text"
	if e.value == nil {
		return nil
	}
	if e.value.Kind != yaml.MappingNode {
		r.report(MetadataNotFlat, e.line, field, hint, "metadata is %s, not a mapping", shape(e.value))
		return nil
	}
	flat := make(map[string]string, len(e.value.Content)/2)
	seen := make(map[string]bool, len(e.value.Content)/2)
	for i := 0; i+1 < len(e.value.Content); i += 2 {
		key, value := e.value.Content[i], e.value.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.report(MetadataNotFlat, key.Line, field, hint, "metadata has %s where a key should be", shape(key))
			continue
		}
		name := field + "." + display.Quote(shorten(key.Value, quotedRunes))
		if seen[key.Value] {
			r.duplicate(key.Line, name)
			delete(flat, key.Value) // the last one may be none to keep
		}
		seen[key.Value] = true
		switch {
		case value.Kind != yaml.ScalarNode:
			r.report(MetadataNotFlat, key.Line, name, hint, "%s is %s, not text", quote(name), shape(value))
		case !isNull(value):
			flat[key.Value] = value.Value
		}
	}
	if len(flat) == 0 {
		return nil
	}
	return flat
}

// shape names a node's kind in words a skill's author knows.
func shape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	return "text"
}

// sortByLine puts problems in the order of the file; those of one line, or of none, stay as found.
func sortByLine(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}
