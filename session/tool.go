package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Answer is what a command or a tool says: Text for a person or a model, Data for a program, which can be
// encoded as a JSON object.
type Answer struct {
	Text string
	Data any
}

// LoadedAnswer is the data of the answer to loading a skill that is not captured.
type LoadedAnswer struct {
	Name      string `json:"name"`
	Scope     string `json:"scope"`
	Digest    string `json:"digest,omitempty"` // of the bundle, for a skill of the host
	Directory string `json:"directory"`        // in the environment
	Event     string `json:"event"`            // the id of the loaded event
	Bytes     int    `json:"bytes"`            // of instructions
}

// CapturedAnswer is the data of the load tool's answer where skills are captured.
type CapturedAnswer struct {
	Instructions string `json:"instructions"` // the Markdown after the frontmatter
	Source       string `json:"source"`       // the collection's kind, and the skill's directory
	SHA256       string `json:"sha256"`       // of all bytes of SKILL.md
}

// ReferenceAnswer is the data of the reference tool's answer.
type ReferenceAnswer struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"` // there is more than a reference may have; Text ends in a mark
}

// UnloadedAnswer is the data of the answer to unloading a skill.
type UnloadedAnswer struct {
	Name     string        `json:"name"`
	Unloaded []PromptSkill `json:"unloaded"`
}

// Tool answers a call of the model. name is one of the profile's tools and arguments a JSON object.
// A tool sees what the model is shown, and its errors tell of nothing else: besides those of what it
// does, ErrNoTool and ErrBadArguments, and ErrNotLoaded and ErrNoReference from the reference tool.
func (c *Conversation) Tool(ctx context.Context, name string, arguments json.RawMessage) (Answer, error) {
	tools := c.cfg.Conventions.Tools
	var args struct {
		Name string `json:"name"`
		Path string `json:"path"`
	}
	switch {
	case name == "":
	case name == tools.List:
		cat, err := c.Catalog(ctx)
		return Answer{cat.Text, cat}, err
	case name == tools.Load:
		if err := arguing(arguments, &args, func() bool { return args.Name != "" && args.Path == "" }, `{"name"}`); err != nil {
			return Answer{}, err
		}
		return c.loadTool(ctx, args.Name)
	case name == tools.Unload:
		if err := arguing(arguments, &args, func() bool { return args.Name != "" && args.Path == "" }, `{"name"}`); err != nil {
			return Answer{}, err
		}
		return c.unload(ctx, args.Name)
	case name == tools.Reference:
		if err := arguing(arguments, &args, func() bool { return args.Name != "" && args.Path != "" }, `{"name","path"}`); err != nil {
			return Answer{}, err
		}
		return c.reference(ctx, args.Name, args.Path)
	}
	e := &Error{Code: ErrNoTool, What: "no tool named " + asked(name)}
	var names []string
	for _, t := range []string{tools.List, tools.Load, tools.Unload, tools.Reference} {
		if t != "" {
			names = append(names, t)
		}
	}
	if len(names) > 0 {
		e.Advice = "the tools are " + strings.Join(names, ", ")
	}
	return Answer{}, e
}

// arguing reads a tool's arguments.
func arguing(data json.RawMessage, into any, complete func() bool, want string) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = errors.New("a " + te.Value + " where there is none") // and not our types
	}
	if err != nil {
		return &Error{Code: ErrBadArguments, What: "the arguments are not " + want, Err: plain(err)}
	}
	if !complete() {
		return &Error{Code: ErrBadArguments, What: "the arguments are not " + want}
	}
	return nil
}

func (c *Conversation) loadTool(ctx context.Context, name string) (Answer, error) {
	captures := c.cfg.Conventions.captures()
	e, err := c.loadShown(ctx, name, captures)
	if err != nil {
		return Answer{}, err
	}
	if !captures {
		return loadedAnswer(e), nil
	}
	parsed, _ := skill.Parse([]byte(e.Skill.Instructions), "")
	if parsed == nil {
		return Answer{}, e.intact()
	}
	return asJSON(CapturedAnswer{string(parsed.Body), display.Quote(sourceOf(e.Skill.Scope, e.Skill.Source)), e.Skill.SHA256})
}

// asJSON is an answer whose text is its data.
func asJSON(data any) (Answer, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(data)
	return Answer{strings.TrimSuffix(b.String(), "\n"), data}, err
}

// loadedAnswer acknowledges a load: what was loaded and where it is, not what it says.
func loadedAnswer(e *Event) Answer {
	s := promptSkill(e)
	text := fmt.Sprintf("Loaded %s (%s). Its instructions are part of the next request; its files are in %s.",
		display.Prompt(s.Name), display.Prompt(s.Scope), promptPath(s.Directory))
	return Answer{text, LoadedAnswer{s.Name, s.Scope, s.Digest, s.Directory, s.Event, len(e.Skill.Instructions)}}
}

func (c *Conversation) unload(ctx context.Context, name string) (Answer, error) {
	ended, err := c.Unload(ctx, name)
	if err != nil {
		return Answer{}, err
	}
	var words []string
	for _, e := range ended {
		words = append(words, display.Quote(e.Skill.Scope))
	}
	return Answer{fmt.Sprintf("Unloaded %s (%s).", display.Quote(name), strings.Join(words, ", ")), UnloadedAnswer{name, promptSkills(ended)}}, nil
}

// reference reads a text of an active skill's bundle.
func (c *Conversation) reference(ctx context.Context, name, p string) (Answer, error) {
	f, err := c.current(ctx)
	if err != nil {
		return Answer{}, err
	}
	e := f.active(name)
	if e == nil {
		err := &Error{Code: ErrNotLoaded, What: "no skill named " + asked(name) + " is loaded"}
		if tool := c.cfg.Conventions.Tools.Load; tool != "" {
			err.Advice = "call " + tool + " first"
		}
		return Answer{}, err
	}
	none := &Error{Code: ErrNoReference, About: shortened(p), What: "the skill " + display.Quote(name) + " has no such text", Advice: "paths are relative to the skill's directory, and stay inside"}
	p = strings.TrimPrefix(p, "./")
	if e.Skill.Digest.IsZero() {
		none.Advice = "its files are in " + promptPath(e.Skill.Directory)
		return Answer{}, none
	}
	if !fs.ValidPath(p) || p == "." || strings.Contains(p, `\`) {
		return Answer{}, none
	}
	b, err := c.cfg.Store.Open(e.Skill.Digest)
	if err != nil {
		return Answer{}, noBundle(e.Skill.Digest, err)
	}
	defer b.Close()
	data, err := readBundle(b, p)
	if errors.Is(err, errNotInBundle) {
		return Answer{}, none
	}
	if err != nil {
		return Answer{}, noBundle(e.Skill.Digest, err)
	}
	if !utf8.Valid(data) {
		none.What = "it is not text"
		return Answer{}, none
	}
	text, cut := firstRunes(string(data), c.cfg.Conventions.Limits.Reference)
	if cut {
		text += fmt.Sprintf("\n[cut here: a reference has at most %d characters]", c.cfg.Conventions.Limits.Reference)
	}
	return Answer{text, ReferenceAnswer{name, p, text, cut}}, nil
}

// firstRunes returns the first n characters of s, all of them for 0, and whether there are more.
func firstRunes(s string, n int) (string, bool) {
	if n == 0 {
		return s, false
	}
	count := 0
	for i := range s {
		if count == n {
			return s[:i], true
		}
		count++
	}
	return s, false
}
