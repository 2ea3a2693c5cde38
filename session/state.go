package session

import (
	"fmt"
	"slices"
)

// State is what holds at an event.
type State struct {
	Place Place
	// Active, Shadowed and Paused hold the loaded events of all that is loaded, each once, in the order
	// in which they were loaded. The caller must not change the events.
	Active   []*Event // here
	Shadowed []*Event // skills of the host whose name another skill has here
	Paused   []*Event // what belongs to other environments
}

// fold is a state in the making: what the events on a path add up to.
type fold struct {
	place    Place
	captured *Capture
	loaded   []*Event
}

// apply adds the next event of a path.
func (f *fold) apply(e *Event) {
	switch e.Type {
	case Started:
		f.place, f.captured = *e.Place, e.Captured
	case Moved:
		f.place = *e.Place
	case Unloaded:
		f.remove(func(l *Event) bool { return slices.Contains(e.Unloaded, l.ID) })
	case Loaded:
		replaced := f.active(e.Skill.Name)
		f.remove(func(l *Event) bool {
			// What is shadowed stays, unless it is another version of what is loaded now.
			return l == replaced || l.Skill.Name == e.Skill.Name && (l.Skill.OnHost && e.Skill.OnHost || f.alike(l, e))
		})
		f.loaded = append(f.loaded, e)
	}
}

func (f *fold) remove(gone func(*Event) bool) {
	if slices.ContainsFunc(f.loaded, gone) {
		f.loaded = slices.DeleteFunc(slices.Clone(f.loaded), gone) // a clone of the fold has the old ones
	}
}

// alike reports whether two snapshots belong to the same environment.
func (f *fold) alike(a, b *Event) bool {
	return !a.Skill.OnHost && !b.Skill.OnHost && a.Skill.Environment == b.Skill.Environment
}

// here reports whether a snapshot belongs to where the conversation is, and to no other place.
func (f *fold) here(e *Event) bool {
	return !e.Skill.OnHost && e.Skill.Environment == f.place.Environment
}

// active returns the loaded event that is active under a name, nil where none is.
func (f *fold) active(name string) *Event {
	var host *Event
	for _, e := range f.loaded {
		switch {
		case e.Skill.Name != name:
		case f.here(e):
			return e
		case e.Skill.OnHost:
			host = e
		}
	}
	return host
}

// bytes is how much of the limit on instructions is used.
func (f *fold) bytes() int64 {
	var n int64
	for _, e := range f.loaded {
		n += int64(len(e.Skill.Instructions))
	}
	return n
}

func (f *fold) clone() *fold {
	c := *f
	c.loaded = slices.Clip(c.loaded)
	return &c
}

func (f *fold) state() State {
	s := State{Place: f.place}
	own := make(map[string]bool)
	for _, e := range f.loaded {
		if f.here(e) {
			own[e.Skill.Name] = true
		}
	}
	for _, e := range f.loaded {
		switch {
		case f.here(e), e.Skill.OnHost && !own[e.Skill.Name]:
			s.Active = append(s.Active, e)
		case e.Skill.OnHost:
			s.Shadowed = append(s.Shadowed, e)
		default:
			s.Paused = append(s.Paused, e)
		}
	}
	return s
}

// history is a conversation's events and what they add up to.
type history struct {
	events []*Event // as recorded
	byID   map[string]*Event
	head   string
	trust  map[Trust]bool

	folded string // the event that now is of
	now    *fold
}

func newHistory() *history {
	return &history{byID: make(map[string]*Event), trust: make(map[Trust]bool)}
}

// check says why e cannot be recorded after what is there.
func (h *history) check(e *Event) error {
	if e == nil {
		return fmt.Errorf("there is no event")
	}
	if e.ID == "" || h.byID[e.ID] != nil {
		return fmt.Errorf("the event's id %q is empty or taken", e.ID)
	}
	has := func(want bool, is bool, what string) error {
		if want != is {
			return fmt.Errorf("an event of type %q with or without %s", e.Type, what)
		}
		return nil
	}
	for _, err := range []error{
		has(e.Type == Started || e.Type == Moved, e.Place != nil, "a place"),
		has(e.Type == Loaded, e.Skill != nil, "a skill"),
		has(e.Type == Trusted || e.Type == Untrusted, e.Trust != nil, "trust"),
		has(e.Type == Rewound, e.Head != "", "a head"),
		has(e.tree() && e.Type != Started, e.Parent != "", "a parent"),
	} {
		if err != nil {
			return err
		}
	}
	switch e.Type {
	case Started:
		if h.head != "" {
			return fmt.Errorf("the conversation starts a second time")
		}
	case Moved, Loaded, Unloaded:
		if parent := h.byID[e.Parent]; parent == nil || !parent.tree() {
			return fmt.Errorf("the event's parent %q is not before it", e.Parent)
		}
	case Rewound:
		if to := h.byID[e.Head]; to == nil || !to.tree() {
			return fmt.Errorf("the event %q to go back to is not before it", e.Head)
		}
	case Trusted, Untrusted:
	default:
		return fmt.Errorf("an event of the unknown type %q", e.Type)
	}
	return nil
}

// tree reports whether e is part of the tree.
func (e *Event) tree() bool {
	switch e.Type {
	case Started, Moved, Loaded, Unloaded:
		return true
	}
	return false
}

// add records e.
func (h *history) add(e *Event) error {
	if err := h.check(e); err != nil {
		return err
	}
	h.events = append(h.events, e)
	h.byID[e.ID] = e
	switch {
	case e.Type == Rewound:
		h.head = e.Head
	case e.tree():
		if h.now != nil && h.folded == e.Parent {
			h.now.apply(e)
			h.folded = e.ID
		}
		h.head = e.ID
	default:
		h.trust[*e.Trust] = e.Type == Trusted
	}
	return nil
}

// path returns the events from the first to the one of an id.
func (h *history) path(id string) []*Event {
	var out []*Event
	for e := h.byID[id]; e != nil; e = h.byID[e.Parent] {
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// at returns what the events up to id add up to.
func (h *history) at(id string) *fold {
	f := &fold{}
	for _, e := range h.path(id) {
		f.apply(e)
	}
	return f
}

// current is at of the head. What it returns must not be changed.
func (h *history) current() *fold {
	if h.now == nil || h.folded != h.head {
		h.now, h.folded = h.at(h.head), h.head
	}
	return h.now
}
