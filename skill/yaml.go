package skill

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"gopkg.in/yaml.v3"
)

// decode reads the frontmatter's text into its top-level mapping. Every node's Line in the result is a
// line of the file. The mapping is nil when the text holds none, and one of the problems then says
// why; an empty frontmatter is an empty mapping.
func decode(text []byte) (*yaml.Node, []Problem) {
	if root := readPlain(text); root != nil {
		return root, nil
	}
	return decodeYAML(text)
}

// decodeYAML is decode for text of any kind.
func decodeYAML(text []byte) (*yaml.Node, []Problem) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark)) // the YAML reader would skip it uncounted
	if p := prescan(text); p != nil {
		return nil, []Problem{*p}
	}
	doc, err := parseYAML(text)
	var repairs []Problem
	if err != nil {
		var mended []byte
		mended, repairs = quoteFailing(text)
		if len(repairs) == 0 {
			return nil, []Problem{syntaxProblem(text, err)}
		}
		text = mended
		if doc, err = parseYAML(text); err != nil {
			// Told of the mended text, so that it is about what quoting cannot mend.
			return nil, []Problem{syntaxProblem(text, err)}
		}
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Line: firstLine}
	if len(doc.Content) == 1 {
		root = doc.Content[0]
		if p := walk(text, root); p != nil {
			return nil, append(repairs, *p)
		}
	}
	switch {
	case root.Kind == yaml.MappingNode:
		return root, repairs
	case isNull(root):
		return &yaml.Node{Kind: yaml.MappingNode, Line: firstLine}, repairs
	}
	return nil, append(repairs, Problem{
		Code:    NotMapping,
		Line:    root.Line,
		Message: "the frontmatter is not a mapping of keys to values",
		Hint:    "write each value as a line of its own: name: my-skill",
	})
}

// errYAMLPanic stands for a panic inside the YAML reader.
var errYAMLPanic = errors.New("the text cannot be read as YAML")

// parseYAML reads text into nodes, and into nothing else: see the package doc.
func parseYAML(text []byte) (*yaml.Node, error) {
	doc := new(yaml.Node)
	if err := guard(func() error { return yaml.Unmarshal(text, doc) }); err != nil {
		return nil, err
	}
	return doc, nil
}

// guard runs read and turns a panic in it into an error. The YAML reader has panicked on malformed text
// before (go-yaml/yaml#560, #665, #666, #855), and one author's file must not stop the program that
// lists everybody's.
func guard(read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errYAMLPanic
		}
	}()
	return read()
}

// syntaxRunes is how much of the YAML reader's own words a message repeats.
const syntaxRunes = 160

// syntaxProblem tells why text is not YAML, in the reader's words, at a line of the file.
func syntaxProblem(text []byte, err error) Problem {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(said, "line "); ok {
		if number, why, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, said = n, why
				if countsFromZero(why) {
					line++
				}
			}
		}
	}
	c := newCursor(text)
	c.seek(line, 1)
	hint := "put the value in quotes, and indent the lines that continue it"
	if strings.Contains(said, "tab character") {
		hint = "indent with spaces, not tabs"
	}
	return Problem{
		Code:    YAMLSyntax,
		Line:    c.fileLine,
		Message: "the frontmatter is not YAML: " + display.Quote(shorten(said, syntaxRunes)),
		Hint:    hint,
	}
}

// countsFromZero reports whether yaml.v3 numbers the line of this message from 0: it does for what its
// parser says and does not for what its scanner says. The words are the only sign of which spoke.
func countsFromZero(why string) bool {
	for _, parser := range []string{"key", "'-' indicator", "',' or", "node content", "<document start>"} {
		if strings.HasPrefix(why, "did not find expected "+parser) {
			return true
		}
	}
	return false
}

// isNull reports whether n is YAML's null: nothing at all, ~ or null, unquoted.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null"
}

// walker holds one pass over a tree of nodes.
type walker struct {
	at    cursor
	nodes int
}

// walk looks at every node beneath and including root, gives each the line it has in the file, and
// returns the first thing that plain frontmatter may not hold, nil when there is none. It never
// follows an alias, so a tree that contains itself ends.
func walk(text []byte, root *yaml.Node) *Problem {
	w := walker{at: newCursor(text)}
	return w.visit(root, 1)
}

// visit walks n, which has depth-1 lists and mappings around it.
func (w *walker) visit(n *yaml.Node, depth int) *Problem {
	first := w.at.seek(n.Line, n.Column)
	n.Line = w.at.fileLine
	if w.nodes++; w.nodes > maxYAMLNodes {
		return &Problem{
			Code:    YAMLLimits,
			Line:    n.Line,
			Message: fmt.Sprintf("the frontmatter has more than %d keys and values", maxYAMLNodes),
		}
	}
	if what := forbidden(n, first); what != "" {
		return &Problem{
			Code:    YAMLForbidden,
			Line:    n.Line,
			Message: "the frontmatter uses " + what,
			Hint:    "write the value out, in quotes if it is text",
		}
	}
	if n.Kind != yaml.ScalarNode && depth > maxYAMLDepth {
		return &Problem{
			Code:    YAMLLimits,
			Line:    n.Line,
			Message: fmt.Sprintf("the frontmatter nests more than %d lists and mappings", maxYAMLDepth),
		}
	}
	for i, child := range n.Content {
		if p := w.visit(child, depth+1); p != nil {
			return p
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Tag == "!!merge" {
			return &Problem{
				Code:    YAMLForbidden,
				Line:    child.Line,
				Message: "the frontmatter uses a merge key, <<",
				Hint:    "write the merged values out",
			}
		}
	}
	return nil
}

// forbidden names what n uses of YAML beyond plain frontmatter, "" for nothing. first is the byte its
// text begins with: the tag "!" alone leaves no other trace in a node.
func forbidden(n *yaml.Node, first byte) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias, *" + display.Quote(shorten(n.Value, quotedRunes))
	case n.Anchor != "":
		return "an anchor, &" + display.Quote(shorten(n.Anchor, quotedRunes))
	case n.Style&yaml.TaggedStyle != 0:
		return "an explicit tag, " + display.Quote(shorten(n.Tag, quotedRunes))
	case first == '!':
		return "an explicit tag, !"
	}
	return ""
}
