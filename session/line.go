package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
)

// A line of a journal is an event as JSON, where the instructions of a loaded one are the last member of
// the whole object. They are nearly all of a journal, and encoding/json looks at each byte several times:
// so they are taken off first and read by a plain loop. A line of any other form is read as JSON is.

// maxLineBytes bounds one line.
const maxLineBytes = 16 << 20

// textMember cannot stand inside a string of JSON, where a quote has a backslash before it.
const textMember = `,"instructions":"`

// lineOf is what a line holds.
type lineOf struct {
	*Event
	Text *string `json:"instructions,omitempty"`
}

// encode returns events as lines.
func encode(events []*Event) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, e := range events {
		l, start := lineOf{Event: e}, out.Len()
		if e.Skill != nil {
			event, snap := *e, *e.Skill
			l.Event, l.Text, event.Skill = &event, &e.Skill.Instructions, &snap
			snap.Instructions = ""
		}
		if err := enc.Encode(l); err != nil {
			return nil, err
		}
		if out.Len()-start > maxLineBytes {
			return nil, &Error{Code: ErrTooLarge, About: e.ID, What: "the event is larger than is recorded"}
		}
	}
	return out.Bytes(), nil
}

// decode reads whole lines, many at once. It may change data. bad is the line that err is about, counted
// from 1.
func decode(data []byte) (events []*Event, bad int, err error) {
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines = lines[:len(lines)-1] // what follows the last line end: nothing
	events = make([]*Event, len(lines))
	failed := make([]error, len(lines))
	var g errgroup.Group
	const share = 256
	g.SetLimit(runtime.GOMAXPROCS(0))
	for start := 0; start < len(lines); start += share {
		some := func() error {
			for i := start; i < min(start+share, len(lines)); i++ {
				if events[i], failed[i] = decodeLine(lines[i]); failed[i] != nil {
					break
				}
			}
			return nil
		}
		if len(lines) <= share {
			some() // as most reads are, of what one other process added
		} else {
			g.Go(some)
		}
	}
	g.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, i + 1, err
		}
	}
	return events, 0, nil
}

// decodeLine reads one line, and holds instructions to their digest.
func decodeLine(line []byte) (*Event, error) {
	if len(line) > maxLineBytes {
		return nil, errors.New("the line is longer than any that is written")
	}
	e, ok := decodeFast(line)
	if !ok {
		l := lineOf{Event: new(Event)}
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, plain(err)
		}
		e = l.Event
		if l.Text != nil && e.Skill != nil {
			e.Skill.Instructions = *l.Text
		}
	}
	if e.Skill != nil && digestOf(e.Skill.Instructions) != e.Skill.SHA256 {
		return nil, errors.New("the instructions are not what their digest says")
	}
	return e, nil
}

// decodeFast reads a line as encode writes it for a loaded event. It leaves the line as it was.
func decodeFast(line []byte) (*Event, bool) {
	at := bytes.Index(line, []byte(textMember))
	body, whole := bytes.CutSuffix(line, []byte("\"}\n"))
	if at < 0 || !whole || len(body) < at+len(textMember) {
		return nil, false
	}
	text, ok := unquote(body[at+len(textMember):])
	if !ok {
		return nil, false
	}
	line[at] = '}'
	e := new(Event)
	err := json.Unmarshal(line[:at+1], e)
	line[at] = ','
	if err != nil || e.Skill == nil {
		return nil, false
	}
	e.Skill.Instructions = text
	return e, true
}

// unquote reads what stands between the quotes of a JSON string without \u in it.
func unquote(b []byte) (string, bool) {
	if !utf8.Valid(b) {
		return "", false
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c < ' ' || c == '"':
			return "", false
		case c == '\\':
			if i++; i == len(b) {
				return "", false
			}
			switch b[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case '"', '\\', '/':
				c = b[i]
			default:
				return "", false
			}
		}
		out = append(out, c)
	}
	return string(out), true
}
