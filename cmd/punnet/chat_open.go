package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
)

// conversations returns where this user's conversations are kept, those of all profiles.
func (a *app) conversations() (*session.Files, error) {
	dir, err := profile.Locate([]string{"$XDG_STATE_HOME/punnet/conversations", "$HOME/.local/state/punnet/conversations"}, a.env)
	if err != nil {
		return nil, &cliError{code: "no-store", err: err, hint: "set HOME to your home directory"}
	}
	return session.NewFiles(dir)
}

// conversing returns what conversations of the command's profile have in common.
func (a *app) conversing() (session.Config, error) {
	files, err := a.conversations()
	if err != nil {
		return session.Config{}, err
	}
	store, err := a.store()
	if err != nil {
		return session.Config{}, err
	}
	var mu sync.Mutex
	known := make(map[transport.Target]map[bundle.Digest]bool)
	believed := func(t transport.Target, d bundle.Digest) bool {
		mu.Lock()
		defer mu.Unlock()
		if known[t] == nil {
			known[t] = a.remember(t)
		}
		return known[t][d]
	}
	o := environment.Options{
		Profile: a.profile, Getenv: a.env, Dial: a.connect, NoExec: a.ssh.noExec,
		Believed: believed, Published: a.memorize, Log: a.log,
	}
	return session.Config{Conventions: environment.Conventions(a.profile, a.profileAs), Store: store, Storage: files, Reach: o.Reach}, nil
}

// inChat prints what f answers with the conversation of that id, under the profile and with the target that
// it remembers. none is what a person is told where the answer has no text.
func (a *app) inChat(ctx context.Context, id, none string, f func(*session.Conversation) (session.Answer, error)) error {
	c, at, err := a.openChat(ctx, id)
	if err != nil {
		return err
	}
	defer c.Close()
	if u, p := a.ssh.user, a.ssh.port; u != "" && u != at.Target.User || p != 0 && p != at.Target.Port {
		return &cliError{code: "usage", exit: exitUsage, err: fmt.Errorf("the conversation is on %s, and remembers user and port", display.Quote(at.Target.String())),
			hint: "punnet chat move takes it to another account or port"}
	}
	a.ssh.user, a.ssh.port = "", 0
	done := a.asking(at.Target)
	answer, err := f(c)
	done()
	if err != nil {
		return err
	}
	if answer.Text == "" {
		a.note(none)
	}
	return a.answer(answer.Data, answer.Text)
}

// openChat opens a conversation, and returns where it is.
func (a *app) openChat(ctx context.Context, id string) (*session.Conversation, session.Place, error) {
	files, err := a.conversations()
	if err != nil {
		return nil, session.Place{}, err
	}
	h, err := files.Header(ctx, id)
	if err != nil {
		return nil, session.Place{}, err
	}
	if a.profileName != "" && profileAs(a.profileName) != h.Profile {
		return nil, session.Place{}, &cliError{code: "usage", exit: exitUsage, err: fmt.Errorf("the conversation is one of profile %s", display.Quote(h.Profile)),
			hint: "leave --profile out: a conversation remembers its own"}
	}
	if err := a.useProfile(h.Profile); err != nil {
		return nil, session.Place{}, err
	}
	cfg, err := a.conversing()
	if err != nil {
		return nil, session.Place{}, err
	}
	c, err := session.Open(ctx, cfg, id)
	if err != nil {
		return nil, session.Place{}, err
	}
	s, err := c.State(ctx, "")
	return c, s.Place, err
}

// recordOf opens a conversation for what its record alone answers, whatever became of its profile.
func (a *app) recordOf(ctx context.Context, id string) (*session.Conversation, error) {
	files, err := a.conversations()
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, session.Config{Storage: files}, id)
}

// place returns the target and working directory that flags name. now is where the conversation is, for
// what they leave out.
func (a *app) place(target, cwd string, now session.Place) (session.Target, string, error) {
	usage := func(err error, hint string) (session.Target, string, error) {
		return session.Target{}, "", &cliError{code: "usage", exit: exitUsage, err: err, hint: hint}
	}
	t := transport.Target(now.Target)
	if target != "" {
		var err error
		if t, err = parseTarget(target); err != nil {
			return session.Target{}, "", err
		}
	}
	if t.Local() {
		if a.ssh.user != "" || a.ssh.port != 0 {
			return usage(errors.New("this machine needs no user and no port"), "name a target with --target")
		}
		if cwd != "" || target != "" || now.Dir == "" {
			dir, err := filepath.Abs(cwd) // "" is the working directory
			return session.Target{}, filepath.ToSlash(dir), err
		}
		return session.Target{}, now.Dir, nil
	}
	if cwd != "" && !path.IsAbs(cwd) {
		return usage(errors.New("--cwd is not an absolute path on the target"), "a working directory on a target starts with a slash")
	}
	if a.ssh.user != "" { // as in ssh, -l and -p win
		t.User = a.ssh.user
	}
	if a.ssh.port != 0 {
		t.Port = a.ssh.port
	}
	if again, err := transport.ParseTarget(t.String()); err != nil || again != t {
		return usage(fmt.Errorf("-l or -p: not a user or port of a target: %s", display.Quote(t.String())), transport.Hint(err))
	}
	a.ssh.user, a.ssh.port = "", 0 // the target has them
	return session.Target(t), cwd, nil
}

// completeConversations completes a first argument that is an id.
func (a *app) completeConversations(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	files, err := a.conversations()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ids, err := files.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, toComplete) }), cobra.ShellCompDirectiveNoFileComp
}
