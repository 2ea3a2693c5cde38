package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/session"
)

// placeFlags say where a conversation runs.
type placeFlags struct{ target, cwd string }

func (f *placeFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.target, "target", "", "`TARGET` that the conversation runs on")
	cmd.Flags().StringVar(&f.cwd, "cwd", "", "working `DIR` there (default on a target the home directory, here the working directory)")
	cmd.RegisterFlagCompletionFunc("target", cobra.NoFileCompletions)
}

type idJSON struct {
	SchemaVersion int    `json:"schemaVersion"`
	ID            string `json:"id"`
}

type startedJSON struct {
	idJSON
	Profile     string       `json:"profile"`
	Target      string       `json:"target"`
	Dir         string       `json:"dir"`
	Captured    []string     `json:"captured,omitempty"`
	Diagnostics []diagnostic `json:"diagnostics,omitempty"`
}

func (a *app) chatStartCommand() *cobra.Command {
	var at placeFlags
	var id string
	cmd := a.chatVerb(&cobra.Command{
		Use:   "start",
		Short: "Begin a conversation and print its id",
		Long: `Start begins a conversation that runs on this machine, or on TARGET, and prints its id. The target
is asked which machine and account it is. -l and -p are remembered with it. Where the profile
captures skills, as headlesscode does, all of them are captured now.

` + targetHelp,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error { return a.chatStart(ctx, id, at) })
	at.register(cmd)
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the conversation: 1 to 64 of a-z, 0-9 and hyphen (default a random one)")
	return cmd
}

func (a *app) chatStart(ctx context.Context, id string, at placeFlags) error {
	t, dir, err := a.place(at.target, at.cwd, session.Place{})
	if err != nil {
		return err
	}
	cfg, err := a.conversing()
	if err != nil {
		return err
	}
	done := a.asking(t)
	c, err := session.Start(ctx, cfg, id, t, dir)
	done()
	if err != nil {
		return err
	}
	defer c.Close()
	log, err := c.Log(ctx)
	if err != nil {
		return err
	}
	first := log.Events[0]
	out := startedJSON{idJSON: idJSON{schemaVersion, c.ID()}, Profile: c.Header().Profile, Target: first.Place.Target.String(), Dir: first.Place.Dir}
	if first.Captured != nil {
		out.Diagnostics = first.Captured.Diagnostics
		for _, s := range first.Captured.Skills {
			out.Captured = append(out.Captured, s.Name)
		}
	}
	if a.json {
		a.printJSON(out)
		return nil
	}
	fmt.Fprintln(a.stdout, c.ID())
	if !a.quiet {
		a.showProblems(out.Diagnostics, out.Target)
	}
	return nil
}

func (a *app) chatMoveCommand() *cobra.Command {
	var at placeFlags
	cmd := a.chatVerb(&cobra.Command{
		Use:   "move ID",
		Short: "Take a conversation to another target or directory",
		Long: `Move takes a conversation to a target, a working directory, or both. What was loaded of this
machine's own collections goes along; what belongs to the machine and account that it leaves is
paused there and resumes on return. The same account by another name is the same place. Without
--target it stays on its target; -l and -p change the account or port there.

` + targetHelp,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error { return a.chatMove(ctx, args[0], at) })
	at.register(cmd)
	return cmd
}

func (a *app) chatMove(ctx context.Context, id string, at placeFlags) error {
	if at.target == "" && at.cwd == "" && a.ssh.user == "" && a.ssh.port == 0 {
		return &cliError{code: "usage", exit: exitUsage, err: errors.New("no place was named"), hint: "give --target, --cwd or both"}
	}
	c, now, err := a.openChat(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	t, dir, err := a.place(at.target, at.cwd, now)
	if err != nil {
		return err
	}
	if t == now.Target && at.target == "" && dir != "" {
		err = c.ChangeDir(ctx, dir)
	} else {
		done := a.asking(t)
		err = c.Move(ctx, t, dir)
		done()
	}
	if err != nil {
		return err
	}
	return a.showStanding(ctx, c)
}

func (a *app) chatRewindCommand() *cobra.Command {
	var event string
	cmd := a.chatVerb(&cobra.Command{
		Use:   "rewind ID --at EVENT",
		Short: "Go on from an earlier event",
		Long: `Rewind takes a conversation back to an event that chat log shows: what was loaded then is loaded
again, where it ran then it runs again. Nothing is lost, and it can go forward to any other event
the same way. Trust is a setting and stays as it is.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		c, err := a.recordOf(ctx, args[0])
		if err != nil {
			return err
		}
		if err := c.Rewind(ctx, event); err != nil {
			return err
		}
		return a.showStanding(ctx, c)
	})
	cmd.Flags().StringVar(&event, "at", "", "`EVENT` to go on from")
	cmd.MarkFlagRequired("at")
	return cmd
}

func (a *app) chatForkCommand() *cobra.Command {
	var id, event string
	cmd := a.chatVerb(&cobra.Command{
		Use:   "fork ID",
		Short: "Make another conversation with the same history",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		return a.derive(ctx, args[0], func(c *session.Conversation) (*session.Conversation, error) { return c.Fork(ctx, id, event) })
	})
	cmd.Flags().StringVar(&event, "at", "", "`EVENT` that the history ends at (default the latest)")
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the fork (default a random one)")
	return cmd
}

func (a *app) chatSubagentCommand() *cobra.Command {
	var id string
	cmd := a.chatVerb(&cobra.Command{
		Use:   "subagent ID",
		Short: "Make a conversation that begins where another is",
		Long: `Subagent makes a conversation on the same target, in the same directory, with nothing loaded and
no trust.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		return a.derive(ctx, args[0], func(c *session.Conversation) (*session.Conversation, error) { return c.Subagent(ctx, id) })
	})
	cmd.Flags().StringVar(&id, "id", "", "`ID` of the subagent's conversation (default a random one)")
	return cmd
}

// derive prints the id of the conversation that f makes of another.
func (a *app) derive(ctx context.Context, id string, f func(*session.Conversation) (*session.Conversation, error)) error {
	c, _, err := a.openChat(ctx, id)
	if err != nil {
		return err
	}
	made, err := f(c)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(idJSON{schemaVersion, made.ID()})
		return nil
	}
	fmt.Fprintln(a.stdout, made.ID())
	return nil
}

// standingJSON is where a conversation is and what is loaded there.
type standingJSON struct {
	idJSON
	Head     string       `json:"head"`
	Target   string       `json:"target"`
	Dir      string       `json:"dir"`
	Active   []loadedJSON `json:"active"`
	Paused   []loadedJSON `json:"paused"`
	Shadowed []loadedJSON `json:"shadowed"`
}

type loadedJSON struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
	Event string `json:"event"`
}

func loadedOf(events []*session.Event) []loadedJSON {
	out := []loadedJSON{}
	for _, e := range events {
		out = append(out, loadedJSON{e.Skill.Name, e.Skill.Scope, e.ID})
	}
	return out
}

func (a *app) standing(ctx context.Context, c *session.Conversation) (standingJSON, error) {
	s, err := c.State(ctx, "")
	if err != nil {
		return standingJSON{}, err
	}
	log, err := c.Log(ctx)
	return standingJSON{
		idJSON{schemaVersion, c.ID()}, log.Head, s.Place.Target.String(), s.Place.Dir,
		loadedOf(s.Active), loadedOf(s.Paused), loadedOf(s.Shadowed),
	}, err
}

func (a *app) showStanding(ctx context.Context, c *session.Conversation) error {
	s, err := a.standing(ctx, c)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(s)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s in %s\n", display.Quote(s.Target), display.Quote(s.Dir))
	for _, group := range []struct {
		what   string
		skills []loadedJSON
	}{{"active", s.Active}, {"shadowed", s.Shadowed}, {"paused", s.Paused}} {
		if len(group.skills) > 0 {
			fmt.Fprintf(a.stdout, "%-8s %s\n", group.what, loadedText(group.skills))
		}
	}
	return nil
}

func loadedText(skills []loadedJSON) string {
	names := make([]string, 0, len(skills))
	for _, s := range skills {
		names = append(names, fmt.Sprintf("%s (%s)", display.Quote(s.Name), display.Quote(s.Scope)))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
