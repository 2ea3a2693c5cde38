package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/punnet/punnet/internal/display"
)

// Conversation is one conversation. Its methods may be called from many goroutines at once, and other
// processes may have the same one open.
type Conversation struct {
	cfg    Config
	header Header

	mu      sync.Mutex
	history *history
	mark    Mark

	reaching sync.Mutex // held for no question
	reached  map[Target]*reached
}

// reached is a target that somebody needed.
type reached struct {
	turn chan struct{} // one token: who reaches it
	env  Environment   // nil where it is not reached
}

// Start begins a conversation. id is CheckID's, "" for a random one. dir is the working directory, an
// absolute path; "" is the account's home. The target is asked what machine it is. The error is
// ErrBadID or ErrTaken for the id, ErrBadArguments for dir, and ErrUnavailable for the target.
func Start(ctx context.Context, cfg Config, id string, t Target, dir string) (*Conversation, error) {
	if id == "" {
		id = NewID()
	}
	if err := CheckID(id); err != nil {
		return nil, err
	}
	c := newConversation(cfg, Header{ID: id, Profile: cfg.Conventions.Profile, Created: now()})
	place, err := c.place(ctx, t, dir)
	if err != nil {
		c.Close()
		return nil, err
	}
	first := &Event{Type: Started, Place: &place}
	if cfg.Conventions.captures() {
		release, err := cfg.Store.Hold(ctx) // what is captured stays until it is recorded who refers to it
		if err != nil {
			c.Close()
			return nil, err
		}
		defer release()
		if first.Captured, err = c.capture(ctx, place); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c.created(ctx, first)
}

// Open opens a conversation that there is. No machine is asked anything. The error is ErrBadID,
// ErrNoConversation, ErrDamaged or ErrNewer.
func Open(ctx context.Context, cfg Config, id string) (*Conversation, error) {
	h, err := cfg.Storage.Header(ctx, id)
	if err != nil {
		return nil, err
	}
	c := newConversation(cfg, h)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	if c.history.head == "" {
		return nil, c.damaged(errors.New("it has no beginning"))
	}
	return c, nil
}

// Restore opens a conversation whose events a harness keeps in its own history: those of Log, all of
// them or those on one path and the trust records, in their order. What happens from now on is kept in
// memory, and Log has it. Events that do not add up to a conversation are ErrDamaged.
func Restore(ctx context.Context, cfg Config, h Header, events []*Event) (*Conversation, error) {
	cfg.Storage = new(Memory)
	if err := cfg.Storage.Create(ctx, h, events); err != nil {
		return nil, err
	}
	return Open(ctx, cfg, h.ID)
}

func newConversation(cfg Config, h Header) *Conversation {
	return &Conversation{cfg: cfg, header: h, history: newHistory(), reached: make(map[Target]*reached)}
}

// created stores a new conversation with its first events.
func (c *Conversation) created(ctx context.Context, events ...*Event) (*Conversation, error) {
	for _, e := range events {
		c.stamp(e)
		if err := c.history.add(e); err != nil {
			return nil, err
		}
	}
	err := c.cfg.Storage.Create(ctx, c.header, events)
	if err == nil {
		c.history = newHistory()
		err = c.refresh(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// stamp gives a new event what every one has.
func (c *Conversation) stamp(e *Event) {
	if e.ID == "" {
		e.ID, e.Time = newID(), now()
		if e.tree() && e.Type != Started {
			e.Parent = c.history.head
		}
	}
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// ID returns the conversation's id.
func (c *Conversation) ID() string { return c.header.ID }

// Header returns what the conversation was created with.
func (c *Conversation) Header() Header { return c.header }

// Close gives up the environments that were reached. The conversation stays, and so does a
// Conversation's use: it reaches them again. What a call that is going on reaches meanwhile stays open
// until Close is called again.
func (c *Conversation) Close() error {
	c.reaching.Lock()
	defer c.reaching.Unlock()
	var errs []error
	for _, r := range c.reached {
		if r.env != nil {
			errs = append(errs, r.env.Close())
			r.env = nil
		}
	}
	return errors.Join(errs...)
}

// refresh takes in what other processes recorded.
func (c *Conversation) refresh(ctx context.Context) error {
	newer, mark, err := c.cfg.Storage.Read(ctx, c.header.ID, c.mark)
	if err != nil {
		return err
	}
	return c.take(newer, mark)
}

func (c *Conversation) take(newer []*Event, mark Mark) error {
	for _, e := range newer {
		if err := c.history.add(e); err != nil {
			return c.damaged(fmt.Errorf("event %d: %s", len(c.history.events)+1, display.Quote(err.Error())))
		}
	}
	c.mark = mark
	return nil
}

func (c *Conversation) damaged(err error) error {
	return &Error{Code: ErrDamaged, About: c.header.ID, What: "the conversation's history is damaged", Err: err,
		Advice: "restore it; nothing in it was guessed or changed"}
}

// record adds events that decide makes of the history as it is, with everything that others recorded.
// After an error the history has nothing of it.
func (c *Conversation) record(ctx context.Context, decide func(h *history) ([]*Event, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var added []*Event
	taken := false
	mark, err := c.cfg.Storage.Append(ctx, c.header.ID, c.mark, func(newer []*Event) ([]*Event, error) {
		if err := c.take(newer, c.mark); err != nil {
			return nil, err
		}
		taken = true
		events, err := decide(c.history)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			c.stamp(e)
			if err := c.history.check(e); err != nil {
				return nil, err
			}
		}
		added = events
		return events, nil
	})
	if taken {
		c.mark = mark
	}
	if err != nil {
		return err
	}
	return c.take(added, mark)
}

// look calls f with the history as it is, with everything that others recorded.
func (c *Conversation) look(ctx context.Context, f func(h *history)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(ctx); err != nil {
		return err
	}
	f(c.history)
	return nil
}

// current returns what holds now.
func (c *Conversation) current(ctx context.Context) (f *fold, err error) {
	err = c.look(ctx, func(h *history) { f = h.current().clone() })
	return f, err
}

// State returns what holds at an event, "" for the head; ErrNoEvent where there is none of that id. It
// asks no machine anything.
func (c *Conversation) State(ctx context.Context, event string) (State, error) {
	var s State
	var missing error
	err := c.look(ctx, func(h *history) {
		if event == "" {
			s = h.current().state()
		} else if missing = h.has(event); missing == nil {
			s = h.at(event).state()
		}
	})
	return s, errors.Join(err, missing)
}

func (h *history) has(event string) error {
	if e := h.byID[event]; e == nil || !e.tree() {
		return &Error{Code: ErrNoEvent, About: shortened(event), What: "the conversation has no such event"}
	}
	return nil
}

// Log is everything that was recorded.
type Log struct {
	Head   string   `json:"head"` // the id of the event that the conversation is at
	Events []*Event `json:"events"`
}

// Log returns everything that was recorded, in order. The caller must not change the events.
func (c *Conversation) Log(ctx context.Context) (Log, error) {
	var l Log
	err := c.look(ctx, func(h *history) { l = Log{h.head, slices.Clone(h.events)} })
	return l, err
}

// reach returns the environment of a target. Whoever waits for another who reaches it waits no longer than
// ctx says, and nobody waits for another target.
func (c *Conversation) reach(ctx context.Context, t Target) (Environment, error) {
	c.reaching.Lock()
	r := c.reached[t]
	if r == nil {
		r = &reached{turn: make(chan struct{}, 1)}
		c.reached[t] = r
	}
	c.reaching.Unlock()
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.reaching.Lock()
	env := r.env
	c.reaching.Unlock()
	if env != nil {
		return env, nil
	}
	env, err := c.cfg.Reach(ctx, t)
	if err != nil {
		return nil, err
	}
	c.reaching.Lock()
	r.env = env
	c.reaching.Unlock()
	return env, nil
}

// lost gives up an environment that did not answer, so that the next who needs the target reaches it
// anew, and returns err.
func (c *Conversation) lost(t Target, env Environment, err error) error {
	if errors.Is(err, ErrUnavailable) {
		c.reaching.Lock()
		defer c.reaching.Unlock()
		if r := c.reached[t]; r != nil && r.env == env {
			r.env = nil
			env.Close()
		}
	}
	return err
}

// place finds out what machine a target is.
func (c *Conversation) place(ctx context.Context, t Target, dir string) (Place, error) {
	env, err := c.reach(ctx, t)
	if err != nil {
		return Place{}, err
	}
	id, home, err := env.Identify(ctx)
	if err != nil {
		return Place{}, c.lost(t, env, err)
	}
	if dir == "" {
		dir = home
	}
	return Place{Environment: id, Target: t, Dir: dir}, checkDir(dir)
}

func checkDir(dir string) error {
	if !isAbs(dir) || !printable(dir) {
		return &Error{Code: ErrBadArguments, About: dir, What: "a working directory is an absolute path, of text"}
	}
	return nil
}

// Move takes the conversation to a target and a working directory there, "" for the account's home. The
// target is asked what machine it is, also where it is the one that the conversation is on. The error is
// ErrUnavailable for the target and ErrBadArguments for dir.
func (c *Conversation) Move(ctx context.Context, t Target, dir string) error {
	place, err := c.place(ctx, t, dir)
	if err != nil {
		return err
	}
	return c.record(ctx, func(*history) ([]*Event, error) {
		return []*Event{{Type: Moved, Place: &place}}, nil
	})
}

// ChangeDir takes the conversation to another working directory, an absolute path, where it is;
// ErrBadArguments for any other. Nothing is asked.
func (c *Conversation) ChangeDir(ctx context.Context, dir string) error {
	if err := checkDir(dir); err != nil {
		return err
	}
	return c.record(ctx, func(h *history) ([]*Event, error) {
		place := h.current().place
		place.Dir = dir
		return []*Event{{Type: Moved, Place: &place}}, nil
	})
}

// Rewind goes on from an earlier event, or any other of the tree; ErrNoEvent where there is none of that
// id.
func (c *Conversation) Rewind(ctx context.Context, event string) error {
	return c.record(ctx, func(h *history) ([]*Event, error) {
		if err := h.has(event); err != nil {
			return nil, err
		}
		return []*Event{{Type: Rewound, Head: event}}, nil
	})
}
