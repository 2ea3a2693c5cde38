package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/punnet/punnet/internal/display"
)

// wrongError is what is wrong with a value of a profile's file.
type wrongError struct {
	path []string // the keys, and numbers in lists, that lead to it
	err  error
}

func (e *wrongError) Error() string { return e.err.Error() }
func (e *wrongError) Unwrap() error { return e.err }

func wrong(err error, path ...string) error { return &wrongError{path, err} }

// withLine adds the line of what an error is about, where the file has it: where a key is missing, that
// of what should have it.
func withLine(n *yaml.Node, err error) error {
	w, ok := errors.AsType[*wrongError](err)
	if !ok || n == nil || n.Kind != yaml.DocumentNode {
		return err
	}
	n = n.Content[0]
	line := 0
	for _, key := range w.path {
		if n = child(n, key); n == nil {
			break
		}
		line = n.Line
	}
	if line == 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}

// child returns what a key of a mapping, or a number of a list, leads to; nil for nothing.
func child(n *yaml.Node, key string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

// maxNodes bounds what the decoder is given: its report of repeated keys takes time and memory by
// the square of their number.
const maxNodes = 2000

// checkShape refuses what would make decoding costly, before it is decoded, and what the decoder would
// pass over.
func checkShape(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var n, more yaml.Node
	if err := dec.Decode(&n); err == io.EOF {
		return nil, errors.New("it is empty")
	} else if err != nil {
		return nil, PlainYAMLError(err)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second document begins; there is one", more.Line)
	} else if err != io.EOF {
		return nil, PlainYAMLError(err)
	}
	count := 0
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		count++
		switch {
		case count > maxNodes:
			return fmt.Errorf("line %d: more than %d values", n.Line, maxNodes)
		case n.Kind == yaml.AliasNode || n.Anchor != "":
			return fmt.Errorf("line %d: anchors and aliases are not used here", n.Line)
		case n.Kind != yaml.ScalarNode:
		case strings.ContainsFunc(n.Value, unicode.IsControl):
			return fmt.Errorf("line %d: %s holds a control character", n.Line, display.Quote(n.Value))
		case n.ShortTag() == "!!float":
			return fmt.Errorf("line %d: %s is no whole number that can be", n.Line, display.Quote(n.Value))
		}
		for _, c := range n.Content {
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	return &n, walk(&n)
}

// kinds are the decoder's words for kinds of values, in others'. It is never changed.
var kinds = strings.NewReplacer("seq", "a list", "map", "keys with values", "str", "text", "int", "a number", "float", "a number", "bool", "true or false", "null", "nothing")

// PlainYAMLError returns the words of an error of the YAML decoder, without its name and the names of
// Go types, safe to show.
func PlainYAMLError(err error) error {
	notFound := regexp.MustCompile(`field (\S+) not found in type \S+`)
	wrongType := regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into (\\S+)")
	msg := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ", "")
	msg = notFound.ReplaceAllString(msg, "unknown key $1")
	msg = wrongType.ReplaceAllStringFunc(msg, func(s string) string {
		m := wrongType.FindStringSubmatch(s)
		return "there is " + kinds.Replace(m[1]) + m[2] + " where " + wanted(m[3]) + " should be"
	})
	return errors.New(display.Quote(strings.ReplaceAll(msg, "\n  ", "; ")))
}

// wanted says what a value of a Go type is written as.
func wanted(of string) string {
	switch {
	case strings.HasPrefix(of, "[]"):
		return "a list"
	case strings.HasPrefix(of, "int"):
		return "a whole number"
	case of == "bool":
		return "true or false"
	case of == "string" || of == "profile.Machine" || of == "profile.Walk":
		return "text"
	}
	return "keys with values"
}
