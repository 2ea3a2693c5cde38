package sshconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// block is the part of a file that is being read.
type block struct {
	file   string
	line   int
	user   bool // the file is the user's own, not the system's
	active bool // what stands here applies
	never  bool // it was included where nothing applies
}

// hostBlock begins a Host block of these patterns.
func (r *reader) hostBlock(b *block, patterns []string) error {
	b.active = false
	if len(patterns) == 0 {
		return errors.New("a Host without a name")
	}
	which := ""
	for _, p := range patterns {
		p, negated := strings.CutPrefix(p, "!")
		if p == "" {
			return errors.New("a Host with an empty name")
		}
		if !Matches(r.host, p) {
			continue
		}
		if negated {
			return nil
		}
		if which == "" {
			which = p
		}
	}
	b.active = which != "" && !b.never
	if b.active {
		r.sources.block(b.file, fmt.Sprint(b.line), "Host "+which)
	}
	return nil
}

// matchBlock begins a Match block. Where all that can be told here speaks for it and something cannot
// be told, it is skipped with a warning.
func (r *reader) matchBlock(b *block, criteria string) error {
	b.active = false
	m := matcher{r: r, result: true}
	if err := m.all(criteria); err != nil {
		return err
	}
	if b.never || !m.result {
		return nil
	}
	if len(m.unknown) > 0 {
		r.warn(b, "Match "+criteria, "whether "+strings.Join(m.unknown, " and ")+" holds is not asked without an ssh program; the block is skipped")
		return nil
	}
	b.active = true
	r.sources.block(b.file, fmt.Sprint(b.line), "Match "+criteria)
	return nil
}

// matcher evaluates the criteria of a Match.
type matcher struct {
	r       *reader
	result  bool     // none spoke against it yet
	unknown []string // the criteria that only ssh can tell
}

// all evaluates criteria.
func (m *matcher) all(criteria string) error {
	for n := 0; ; n++ {
		word, rest, ok := delimited(criteria)
		if !ok {
			return errQuotes
		}
		if word == "" || word[0] == '#' {
			if n == 0 {
				return errors.New("a Match without a criterion")
			}
			return nil
		}
		criteria = rest
		name, negated := strings.CutPrefix(word, "!")
		name = strings.ToLower(name)
		switch name {
		case "all":
			if next, _, _ := delimited(criteria); n > 1 || next != "" && next[0] != '#' {
				return errors.New("the criterion all stands alone, or after one other criterion")
			}
			m.say(!negated)
			return nil
		case "final", "canonical":
			if name == "final" {
				m.r.again = true
			}
			m.say(m.r.final != negated)
			continue
		}
		arg, rest, ok := delimited(criteria)
		if !ok {
			return errQuotes
		}
		if arg == "" || arg[0] == '#' {
			if !slices.Contains([]string{"host", "originalhost", "user", "localuser"}, name) {
				m.unknown = append(m.unknown, display.Said(name)) // of a newer ssh, which knows how it goes on
				return nil
			}
			return fmt.Errorf("a Match %s without what to match", name)
		}
		criteria = rest
		holds, known, err := m.r.criterion(name, arg)
		if err != nil {
			return err
		}
		if known {
			m.say(holds != negated)
		} else {
			m.unknown = append(m.unknown, display.Said(name))
		}
	}
}

func (m *matcher) say(holds bool) { m.result = m.result && holds }

// criterion tells whether a criterion with an argument holds, as far as can be known here.
func (r *reader) criterion(name, arg string) (holds, known bool, err error) {
	switch name {
	case "host":
		host := r.host
		if name := first(r.raw, "hostname"); name != "" && !r.final {
			if host, err = r.hostname(name); err != nil {
				return false, false, err
			}
		}
		return matchesList(strings.ToLower(host), strings.ToLower(arg)), true, nil
	case "originalhost":
		return matchesList(strings.ToLower(r.q.Host), strings.ToLower(arg)), true, nil
	case "user":
		return matchesList(firstOf(first(r.raw, "user"), r.me), arg), true, nil
	case "localuser":
		return matchesList(r.me, arg), true, nil
	}
	return false, false, nil
}
