package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/session"
)

const chatHelp = `Chat is a conversation's skills: which are loaded, on which machine it runs, which repositories it
trusts. What is loaded stays as it was at that moment, instructions and files, until it is unloaded,
whatever becomes of the skill, and whichever machine the conversation moves to.

A conversation is a file named by its id in $XDG_STATE_HOME/punnet/conversations. It remembers its
profile and its target: alias, user and port. -F, -i and -o are given to each command that reaches
the target; log, fork, rewind, subagent, ls and rm reach none.`

func (a *app) chatCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Keep what a conversation has loaded exact",
		Long:  chatHelp,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.chatStartCommand(), a.chatSayCommand(), a.chatToolCommand(), a.chatPromptCommand(), a.chatCatalogCommand(),
		a.chatMoveCommand(), a.chatLogCommand(), a.chatForkCommand(), a.chatRewindCommand(), a.chatSubagentCommand(), a.chatLsCommand(), a.chatRmCommand())
	return cmd
}

// chatVerb finishes a verb of conversations: how its errors are told, and what completes its first
// argument, an id.
func (a *app) chatVerb(cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return aboutChat(run(cmd.Context(), args)) }
	cmd.ValidArgsFunction = a.completeConversations
	return cmd
}

// aboutChat gives an error of a conversation its exit code, and the verb that helps.
func aboutChat(err error) error {
	if _, ok := errors.AsType[*cliError](err); ok || err == nil {
		return err
	}
	e := describeError(err)
	out := &cliError{code: e.Code, exit: connectionExit(err), err: err, hint: e.Hint}
	switch {
	case errors.Is(err, session.ErrNotCommand), errors.Is(err, session.ErrBadID):
		out.exit = exitUsage
	case errors.Is(err, session.ErrNoConversation):
		out.hint = cmp.Or(out.hint, "punnet chat ls shows the conversations")
	case errors.Is(err, session.ErrNoEvent):
		out.hint = cmp.Or(out.hint, "punnet chat log shows the events")
	}
	return out
}

func (a *app) chatSayCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "say ID LINE",
		Short: "Run a person's command in a conversation",
		Long: `Say does what one line of a person says: ` + strings.Join(session.Commands(), ", ") + `.
NAME is a name in the catalog, or a path when it holds a slash or is . or ..: absolute, or relative to
the working directory of the conversation. A line that is no command exits with 2.`,
		Example: "  punnet chat say $ID /skills\n  punnet chat say $ID /skill release",
		Args:    cobra.MinimumNArgs(2),
	}, func(ctx context.Context, args []string) error {
		return a.inChat(ctx, args[0], "", func(c *session.Conversation) (session.Answer, error) {
			return c.Command(ctx, strings.Join(args[1:], " "))
		})
	})
}

func (a *app) chatToolCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "tool ID NAME [ARGUMENTS]",
		Short: "Answer a tool call of the model",
		Long: `Tool prints what the model's call of a tool gets. NAME is one of the profile's tools, such as
load_skill, and ARGUMENTS a JSON object. The model sees its catalog and nothing else: no error tells
of a skill that it is not shown.`,
		Example: `  punnet chat tool $ID load_skill '{"name":"release"}'`,
		Args:    cobra.RangeArgs(2, 3),
	}, func(ctx context.Context, args []string) error {
		arguments := json.RawMessage("{}")
		if len(args) > 2 {
			arguments = json.RawMessage(args[2])
		}
		return a.inChat(ctx, args[0], "the answer is empty", func(c *session.Conversation) (session.Answer, error) {
			return c.Tool(ctx, args[1], arguments)
		})
	})
}

func (a *app) chatPromptCommand() *cobra.Command {
	var o session.PromptOptions
	cmd := a.chatVerb(&cobra.Command{
		Use:   "prompt ID",
		Short: "Print the section for the next model request",
		Long: `Prompt prints the instructions that are loaded, as the next model request needs them. First it
makes sure that the files of every skill it names are where the conversation runs, whole, and
repairs what is not. When the target cannot be reached it fails; --offline renders all the same,
and says in the text that nobody looked.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		return a.inChat(ctx, args[0], "there is nothing to add: no instructions are active here", func(c *session.Conversation) (session.Answer, error) {
			p, err := c.Prompt(ctx, o)
			return session.Answer{Text: p.Text, Data: p}, err
		})
	})
	cmd.Flags().BoolVar(&o.Unverified, "offline", false, "ask no machine: the files may be missing there")
	return cmd
}

func (a *app) chatCatalogCommand() *cobra.Command {
	return a.chatVerb(&cobra.Command{
		Use:   "catalog ID",
		Short: "Print what the model is shown of the skills it can load",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error {
		return a.inChat(ctx, args[0], "there are no skills to show; /skills tells why", func(c *session.Conversation) (session.Answer, error) {
			catalog, err := c.Catalog(ctx)
			return session.Answer{Text: catalog.Text, Data: catalog}, err
		})
	})
}

// asking tells a person who waits that a target is asked.
func (a *app) asking(t session.Target) (done func()) {
	if t.Local() {
		return func() {}
	}
	return a.progress("asking " + display.Quote(t.String()))
}

// note tells a person what standard output does not say.
func (a *app) note(text string) {
	if !a.quiet && !a.json {
		fmt.Fprintln(a.stderr, text)
	}
}
