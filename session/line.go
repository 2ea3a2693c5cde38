package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
)

// A line of a journal is an event as JSON, where the instructions of a loaded one are the last member of
// the whole object. They are nearly all of a journal, and encoding/json looks at each byte several times:
// so lines of loaded events are read by plain loops that know how they are written. A line of any other
// form is read as JSON is.

// maxLineBytes bounds one line.
const maxLineBytes = 16 << 20

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

// decode reads whole lines, many at once. bad is the line that err is about, counted
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

// decodeFast reads a line exactly as encode writes it for a loaded event; any other is not ok, and is read
// as JSON is. A journal is mostly such lines.
func decodeFast(line []byte) (*Event, bool) {
	e, s := &Event{Type: Loaded}, &Snapshot{}
	e.Skill = s
	p := &plainLine{rest: line, ok: true}
	e.ID = p.text(`{"id":`)
	e.Parent = p.text(`,"parent":`)
	at := p.text(`,"time":`)
	p.skip(`,"type":"loaded"`)
	s.Name = p.text(`,"skill":{"name":`)
	s.Scope = p.text(`,"scope":`)
	s.Source = p.text(`,"source":`)
	s.OnHost = p.may(`,"onHost":true`)
	s.Environment = p.text(`,"environment":`)
	if p.starts(`,"digest":`) {
		digest, err := bundle.ParseDigest(p.text(`,"digest":`))
		s.Digest, p.ok = digest, p.ok && err == nil && !digest.IsZero()
	}
	s.Directory = p.text(`,"directory":`)
	if p.starts(`,"files":["`) {
		s.Files = append(s.Files, p.text(`,"files":[`))
		for p.ok && !p.may(`]`) {
			s.Files = append(s.Files, p.text(`,`))
		}
	}
	s.SHA256 = p.text(`,"sha256":`) // more files than are listed are rare enough
	s.Instructions = p.text(`},"instructions":`)
	p.skip("}\n")
	if !p.ok || len(p.rest) > 0 || e.Time.UnmarshalText([]byte(at)) != nil {
		return nil, false
	}
	return e, true
}

// plainLine is a line of which the beginning was read, as long as ok is true.
type plainLine struct {
	rest []byte
	ok   bool
}

func (p *plainLine) starts(s string) bool {
	return p.ok && len(p.rest) >= len(s) && string(p.rest[:len(s)]) == s
}

// may reads s where the rest starts with it.
func (p *plainLine) may(s string) bool {
	if !p.starts(s) {
		return false
	}
	p.rest = p.rest[len(s):]
	return true
}

func (p *plainLine) skip(s string) { p.ok = p.may(s) }

// text reads s and then a string.
func (p *plainLine) text(s string) string {
	p.skip(s)
	if p.skip(`"`); !p.ok {
		return ""
	}
	end := 0
	for {
		n := bytes.IndexByte(p.rest[end:], '"')
		if n < 0 {
			p.ok = false
			return ""
		}
		end += n
		slashes := 0
		for slashes < end && p.rest[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			break
		}
		end++
	}
	text, ok := unquote(p.rest[:end])
	p.rest, p.ok = p.rest[end+1:], ok
	return text
}

// unquote reads what stands between the quotes of a JSON string without \u in it.
func unquote(b []byte) (string, bool) {
	if !utf8.Valid(b) {
		return "", false
	}
	if bytes.IndexByte(b, '\\') < 0 && !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r == '"' }) {
		return string(b), true
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
