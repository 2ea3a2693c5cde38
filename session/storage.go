package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Storage keeps conversations. A harness may have its own; Files and Memory are this package's. All
// methods may be called from many goroutines at once.
type Storage interface {
	// Create makes a conversation with its first events, whole or not at all; ErrTaken where there is
	// one of that id.
	Create(ctx context.Context, h Header, events []*Event) error
	// Header returns what a conversation was created with; ErrNoConversation where there is none.
	Header(ctx context.Context, id string) (Header, error)
	// Read returns the events after from, in the order in which they were recorded, and the mark
	// behind them. The zero Mark is the beginning.
	Read(ctx context.Context, id string, from Mark) ([]*Event, Mark, error)
	// Append calls decide with the events after from, while nobody else can add any, and adds what it
	// returns, all of it or nothing; it has lasted when Append returns. With an error of decide, or none
	// to add, nothing is added. The mark is behind everything that decide was shown and, without an
	// error, what was added.
	Append(ctx context.Context, id string, from Mark, decide func(newer []*Event) ([]*Event, error)) (Mark, error)
	// List returns the ids of all conversations, sorted.
	List(ctx context.Context) ([]string, error)
	// Remove forgets a conversation; ErrNoConversation where there is none.
	Remove(ctx context.Context, id string) error
}

// Mark is a position in a conversation's record, for the storage that returned it.
type Mark int64

// A mark of this package's storages also tells conversations apart: one that was removed is not the one
// that has its id now, and what belongs to the first must not be added to the second.
const (
	markBits = 40
	markTags = 1<<(63-markBits) - 1
)

// markAt returns the mark of a position in the conversation that a tag stands for.
func markAt(tag uint32, at int64) Mark { return Mark(int64(tag&markTags)<<markBits | at) }

// in returns the position of a mark in the conversation that a tag stands for.
func (m Mark) in(id string, tag uint32) (int64, error) {
	if m != 0 && m>>markBits != Mark(tag&markTags) {
		return 0, &Error{Code: ErrNoConversation, About: id, What: "the conversation was removed, and another has its id", Advice: "open that one, if it is meant"}
	}
	return int64(m & (1<<markBits - 1)), nil
}

// Header says what a conversation is. It does not change.
type Header struct {
	ID      string    `json:"id"`
	Profile string    `json:"profile"` // the name that its profile is loaded by
	Created time.Time `json:"created"` // UTC
	Parent  *Origin   `json:"parent,omitempty"`
}

// Origin is the conversation that one was made of.
type Origin struct {
	ID    string `json:"id"`
	Event string `json:"event"` // the head that it was made at
	Kind  Kind   `json:"kind"`
}

// Kind is how a conversation was made of another.
type Kind string

// The kinds.
const (
	Forked    Kind = "fork"     // it has the other's history
	Delegated Kind = "subagent" // it began where the other was
)

// Memory is a Storage that lasts as long as the process. The zero Memory is empty. It must not be copied.
type Memory struct {
	mu   sync.Mutex
	kept map[string]*remembered
	made uint32 // how many there ever were
}

type remembered struct {
	tag    uint32
	header Header
	events []*Event
}

func noConversation(id string) error {
	return &Error{Code: ErrNoConversation, About: id, What: "no conversation of that id"}
}

func taken(id string) error {
	return &Error{Code: ErrTaken, About: id, What: "there is a conversation of that id", Advice: "choose another id, or none"}
}

func (m *Memory) get(ctx context.Context, id string) (*remembered, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r := m.kept[id]; r != nil {
		return r, nil
	}
	return nil, noConversation(id)
}

// Create implements Storage.
func (m *Memory) Create(ctx context.Context, h Header, events []*Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := CheckID(h.ID); err != nil {
		return err
	}
	if _, err := m.get(ctx, h.ID); !errors.Is(err, ErrNoConversation) {
		if err == nil {
			err = taken(h.ID)
		}
		return err
	}
	if m.kept == nil {
		m.kept = make(map[string]*remembered)
	}
	m.made++
	m.kept[h.ID] = &remembered{m.made, h, slices.Clone(events)}
	return nil
}

// Header implements Storage.
func (m *Memory) Header(ctx context.Context, id string) (Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.get(ctx, id)
	if err != nil {
		return Header{}, err
	}
	return r.header, nil
}

// Read implements Storage.
func (m *Memory) Read(ctx context.Context, id string, from Mark) ([]*Event, Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.get(ctx, id)
	if err != nil {
		return nil, from, err
	}
	at, err := from.in(id, r.tag)
	if err != nil {
		return nil, from, err
	}
	return slices.Clone(r.events[at:]), r.end(), nil
}

// Append implements Storage.
func (m *Memory) Append(ctx context.Context, id string, from Mark, decide func([]*Event) ([]*Event, error)) (Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.get(ctx, id)
	if err != nil {
		return from, err
	}
	at, err := from.in(id, r.tag)
	if err != nil {
		return from, err
	}
	events, err := decide(slices.Clone(r.events[at:]))
	if err != nil {
		return r.end(), err
	}
	r.events = append(r.events, events...)
	return r.end(), nil
}

func (r *remembered) end() Mark { return markAt(r.tag, int64(len(r.events))) }

// List implements Storage.
func (m *Memory) List(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id := range m.kept {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, ctx.Err()
}

// Remove implements Storage.
func (m *Memory) Remove(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.get(ctx, id)
	if err == nil {
		delete(m.kept, id)
	}
	return err
}
