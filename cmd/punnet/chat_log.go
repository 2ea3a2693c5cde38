package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/session"
)

func (a *app) chatLogCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "log ID",
		Short: "Show what happened in a conversation",
		Long: `Log shows the events of a conversation in the order in which they were recorded. A star marks the
one that the conversation is at; one that did not follow the event above it says which it followed.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		c, err := a.recordOf(ctx, args[0])
		if err != nil {
			return err
		}
		log, err := c.Log(ctx)
		if err != nil {
			return err
		}
		if a.json {
			return a.answer(log, "")
		}
		return a.showLog(log)
	})
}

func (a *app) showLog(log session.Log) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	names := make(map[string]string) // what was loaded, by event
	before := ""
	for _, e := range log.Events {
		mark, note := " ", ""
		if e.ID == log.Head {
			mark = "*"
		}
		if e.Skill != nil {
			names[e.ID] = e.Skill.Name
		}
		if e.Parent != before && e.Parent != "" {
			note = ", after " + display.Quote(e.Parent)
		}
		if e.Trust == nil && e.Head == "" {
			before = e.ID
		}
		fmt.Fprintf(w, "%s %s\t%s\t%s\t%s\n", mark, display.Quote(e.ID), e.Time.Local().Format(time.DateTime), display.Quote(string(e.Type)), eventText(e, names)+note)
	}
	return w.Flush()
}

// eventText says what an event is about, fit for a terminal.
func eventText(e *session.Event, names map[string]string) string {
	switch {
	case e.Place != nil:
		text := display.Quote(e.Place.Target.String()) + " in " + display.Quote(e.Place.Dir)
		if e.Captured != nil {
			text += ", " + plural(len(e.Captured.Skills), "skill") + " captured"
		}
		return text
	case e.Skill != nil:
		where := e.Skill.Directory
		if !e.Skill.Digest.IsZero() {
			where = e.Skill.Digest.Short()
		}
		return fmt.Sprintf("%s (%s) %s", display.Quote(e.Skill.Name), display.Quote(e.Skill.Scope), display.Quote(where))
	case e.Trust != nil:
		return display.Quote(e.Trust.Repository)
	case e.Head != "":
		return "to " + display.Quote(e.Head)
	}
	var ended []string
	for _, id := range e.Unloaded {
		ended = append(ended, display.Quote(names[id]))
	}
	return strings.Join(ended, ", ")
}

type conversationJSON struct {
	ID      string          `json:"id"`
	Profile string          `json:"profile,omitempty"`
	Created *time.Time      `json:"created,omitempty"`
	Parent  *session.Origin `json:"parent,omitempty"`
	Head    string          `json:"head,omitempty"`
	Target  string          `json:"target,omitempty"`
	Dir     string          `json:"dir,omitempty"`
	Active  []loadedJSON    `json:"active"`
	Paused  []loadedJSON    `json:"paused"`
	Error   *errorJSON      `json:"error,omitempty"` // why the rest is not known
}

func (a *app) chatLsCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "ls",
		Short: "List the conversations",
		Long:  "Ls lists the conversations of all profiles. It exits with 5 when one is damaged.",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error { return a.chatLs(ctx) })
}

func (a *app) chatLs(ctx context.Context) error {
	files, err := a.conversations()
	if err != nil {
		return err
	}
	ids, err := files.List(ctx)
	if err != nil {
		return err
	}
	out := struct {
		SchemaVersion int                `json:"schemaVersion"`
		Conversations []conversationJSON `json:"conversations"`
	}{schemaVersion, []conversationJSON{}}
	bad := false
	for _, id := range ids {
		c, err := a.describeChat(ctx, id)
		switch {
		case errors.Is(err, session.ErrNoConversation):
			continue // removed meanwhile
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			e := describeError(err)
			c, bad = conversationJSON{ID: id, Active: []loadedJSON{}, Paused: []loadedJSON{}, Error: &e}, true
			if !a.json {
				a.complain("chat ls", e.Message, e.Hint)
			}
		}
		out.Conversations = append(out.Conversations, c)
	}
	if a.json {
		a.printJSON(out)
	} else if len(ids) == 0 {
		a.note("no conversations in " + display.Quote(files.Dir()))
	} else if err := a.showChats(out.Conversations); err != nil {
		return err
	}
	if bad {
		return found(exitProblems)
	}
	return nil
}

func (a *app) describeChat(ctx context.Context, id string) (conversationJSON, error) {
	c, err := a.recordOf(ctx, id)
	if err != nil {
		return conversationJSON{}, err
	}
	s, err := a.standing(ctx, c)
	h := c.Header()
	return conversationJSON{
		ID: id, Profile: h.Profile, Created: &h.Created, Parent: h.Parent, Head: s.Head,
		Target: s.Target, Dir: s.Dir, Active: s.Active, Paused: s.Paused,
	}, err
}

func (a *app) showChats(chats []conversationJSON) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTARTED\tPROFILE\tTARGET\tDIRECTORY\tACTIVE")
	for _, c := range chats {
		if c.Error != nil {
			fmt.Fprintf(w, "%s\t(%s)\t\t\t\t\n", c.ID, c.Error.Code)
			continue
		}
		active := loadedText(c.Active)
		if n := len(c.Paused); n > 0 {
			active = strings.TrimPrefix(active+fmt.Sprintf("; %d paused", n), "; ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.ID, c.Created.Local().Format(time.DateTime), display.Quote(c.Profile),
			display.Quote(c.Target), display.Quote(c.Dir), active)
	}
	return w.Flush()
}

func (a *app) chatRmCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "rm ID",
		Short: "Forget a conversation",
		Long: `Rm removes a conversation's file. Its bundles stay in the store until store gc finds that nothing
else refers to them.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		files, err := a.conversations()
		if err != nil {
			return err
		}
		if err := files.Remove(ctx, args[0]); err != nil {
			return err
		}
		if a.json {
			a.printJSON(idJSON{schemaVersion, args[0]})
		}
		return nil
	})
}
