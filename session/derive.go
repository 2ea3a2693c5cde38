package session

import (
	"context"
	"errors"

	"github.com/punnet/punnet/bundle"
)

// Fork makes another conversation with the history of this one up to an event, "" for the head, and its
// trust; ErrNoEvent where there is none. id is as for Start, ErrTaken where there is one.
func (c *Conversation) Fork(ctx context.Context, id, event string) (*Conversation, error) {
	release, err := c.cfg.Store.Hold(ctx) // whoever removes this conversation now and collects takes nothing of the fork's
	if err != nil {
		return nil, err
	}
	defer release()
	var events []*Event
	var missing error
	err = c.look(ctx, func(h *history) {
		if event == "" {
			event = h.head
		}
		if missing = h.has(event); missing != nil {
			return
		}
		on := make(map[*Event]bool)
		for _, e := range h.path(event) {
			on[e] = true
		}
		for _, e := range h.events {
			if on[e] || e.Trust != nil {
				events = append(events, e)
			}
		}
	})
	if err := errors.Join(err, missing); err != nil {
		return nil, err
	}
	return c.derive(ctx, id, Origin{c.header.ID, event, Forked}, events...)
}

// Subagent makes a conversation that begins where this one is, with nothing loaded and no trust. What a
// session captured is the subagent's too. id is as for Start.
func (c *Conversation) Subagent(ctx context.Context, id string) (*Conversation, error) {
	release, err := c.cfg.Store.Hold(ctx) // as for Fork
	if err != nil {
		return nil, err
	}
	defer release()
	var first *Event
	head := ""
	err = c.look(ctx, func(h *history) {
		f := h.current()
		place := f.place
		first, head = &Event{Type: Started, Place: &place, Captured: f.captured}, h.head
	})
	if err != nil {
		return nil, err
	}
	return c.derive(ctx, id, Origin{c.header.ID, head, Delegated}, first)
}

func (c *Conversation) derive(ctx context.Context, id string, from Origin, events ...*Event) (*Conversation, error) {
	if id == "" {
		id = NewID()
	}
	if err := CheckID(id); err != nil {
		return nil, err
	}
	return newConversation(c.cfg, Header{ID: id, Profile: c.header.Profile, Created: now(), Parent: &from}).created(ctx, events...)
}

// References returns the bundles that conversations refer to: those that are loaded somewhere in their
// history, and those that they captured. A conversation that cannot be read is an error, since nobody
// knows what it refers to. Asked in a bundle.Store's Collect it misses none: a conversation holds the
// store from a pin to its record.
func References(ctx context.Context, s Storage) (map[bundle.Digest]bool, error) {
	ids, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	refs := make(map[bundle.Digest]bool)
	for _, id := range ids {
		events, _, err := s.Read(ctx, id, 0)
		if errors.Is(err, ErrNoConversation) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Skill != nil && !e.Skill.Digest.IsZero() {
				refs[e.Skill.Digest] = true
			}
			if e.Captured != nil {
				for _, s := range e.Captured.Skills {
					refs[s.Digest] = true
				}
			}
		}
	}
	return refs, nil
}
