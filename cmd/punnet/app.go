package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/ask"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/transport"
)

// system is what the command has of the machine it runs on.
type system struct {
	stdout, stderr io.Writer
	getenv         func(string) string
	// dial, where it is not nil, connects to targets in place of SSH as the user configured it.
	dial func(context.Context, transport.Target) (transport.Conn, error)
}

// app is one run of the command: its flags, and what they lead to.
type app struct {
	system
	profileName string
	json        bool
	quiet       bool
	verbose     bool
	color       string
	timeout     time.Duration
	ssh         sshFlags

	cancel context.CancelFunc // ends the --timeout
	person func() *ask.Person // who can be asked; nil for nobody
	named  *discovery.Catalog // this machine's, once a name was looked up there

	started bool // the arguments were understood and a verb is running
	profile *profile.Profile
	// profileAs is the name that the profile is loaded by from any directory.
	profileAs string
	trace     func(transport.Step) // is told the steps of reaching a target; may be nil
	log       *slog.Logger
}

// run runs the command line args and returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	out := &output{w: sys.stdout}
	sys.stdout = out
	a := &app{system: sys, log: slog.New(slog.DiscardHandler), cancel: func() {}}
	a.person = sync.OnceValue(func() *ask.Person { return ask.New(a.getenv) })
	defer func() { a.cancel() }()
	root := a.command()
	root.SetArgs(args)
	root.SetOut(sys.stdout)
	root.SetErr(sys.stderr)
	a.json = wantsJSON(args) // also for an error in the arguments themselves
	ran, err := root.ExecuteContextC(ctx)
	if err == nil && out.err != nil {
		a.complain(verb(ran), "standard output: "+out.err.Error(), "")
		return exitFailed
	}
	if err == nil {
		return exitDone
	}
	if !a.started {
		err = &cliError{code: "usage", exit: exitUsage, err: err, hint: fmt.Sprintf("%s --help shows how it is called", ran.CommandPath())}
	}
	return a.fail(ctx, ran, err)
}

// wantsJSON looks for --json among the flags.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

const longHelp = `Punnet carries Agent Skills, directories with a SKILL.md, to where the agent runs.

It pins a skill as an immutable bundle, named by the digest of its content, keeps every
version that was pinned in a store on this machine, and publishes bundles on other machines
over plain SSH: whole or not at all, private, verified on every use.

Exit codes: 0 done; 1 failed; 2 usage; 3 some skills failed, others not;
4 authentication or host key; 5 problems or damage found; 130 interrupted.

Targets are reached as ssh reaches them. With --transport auto, Punnet shares the connection of
a live ControlPath, else connects by itself, or by your own ssh program where the configuration
needs it: keys on hardware, GSSAPI and the like. native and system settle it.

Environment: PUNNET_PROFILE names the profile, as --profile does; NO_COLOR turns color off;
XDG_CONFIG_HOME moves the configuration and berry's own collection, XDG_DATA_HOME its store, and
XDG_STATE_HOME the conversations and what is remembered of targets; HEADLESSCODE_DATA_DIR moves
what headlesscode keeps.
Configuration: punnet/config.yaml in XDG_CONFIG_HOME, or in ~/.config, can name the profile by the
lines "version: 1" and "profile: NAME" (or an absolute path). A flag goes before the environment,
and that before the file.
Passphrases, passwords and codes are asked for on the terminal, or by the program that
SSH_ASKPASS names, as ssh(1) says.`

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "punnet",
		Short:         "Carry Agent Skills to where the agent runs",
		Long:          longHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := noneEmpty(cmd, args); err != nil {
				return err
			}
			return a.start(cmd)
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.profileName, "profile", "", "harness whose conventions hold: berry, headlesscode or a YAML `FILE` (default berry)")
	f.BoolVar(&a.json, "json", false, "print data, and errors, as JSON on standard output")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print no warnings and no progress")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "log what is done, on standard error")
	f.StringVar(&a.color, "color", "auto", "color for terminals: auto, always or never")
	f.DurationVar(&a.timeout, "timeout", 0, "give up after this `DURATION`, such as 90s; 0 never does")
	a.ssh.register(root)
	root.AddCommand(a.listCommand(), a.inspectCommand(), a.validateCommand(), a.enableCommand(), a.disableCommand(),
		a.importCommand(), a.pinCommand(), a.pushCommand(), a.statusCommand(),
		a.verifyCommand(), a.pruneCommand(), a.doctorCommand(), a.chatCommand(), a.storeCommand(), a.demoCommand(), a.versionCommand())
	return root
}

// noneEmpty refuses an empty argument, and an empty value of a flag: it is that of a variable which is not
// set, and would mean this directory, this machine or the default to most of what takes it.
func noneEmpty(cmd *cobra.Command, args []string) error {
	if strings.HasPrefix(cmd.Name(), cobra.ShellCompRequestCmd) {
		return nil // what is to be completed may be empty yet
	}
	if i := slices.Index(args, ""); i >= 0 {
		return fmt.Errorf("argument %d is empty", i+1)
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

// start settles what the common flags, the environment and the configuration file say. Until it is
// done, errors are about how the command was called.
func (a *app) start(cmd *cobra.Command) error {
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return fmt.Errorf("--color %q: it is one of auto, always and never", a.color)
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return err
	}
	if _, err := a.ssh.way(); err != nil {
		return err
	}
	if a.timeout < 0 {
		return errors.New("--timeout is negative")
	}
	if a.verbose {
		a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if err := a.chooseProfile(); err != nil {
		return err
	}
	if a.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(cmd.Context(), a.timeout, gaveUp(a.timeout))
		a.cancel = cancel
		cmd.SetContext(ctx)
	}
	a.started = true
	return nil
}

// gaveUp is the error of a command that --timeout has ended.
type gaveUp time.Duration

func (g gaveUp) Error() string {
	return fmt.Sprintf("gave up after %v, as --timeout says", time.Duration(g))
}
func (gaveUp) Unwrap() error { return context.DeadlineExceeded }

// chooseProfile loads the profile that the flag, the environment or the configuration file names.
func (a *app) chooseProfile() error {
	conf, err := loadConfig(a.configPath())
	if err != nil {
		return err
	}
	return a.useProfile(profileAs(cmp.Or(a.profileName, a.getenv("PUNNET_PROFILE"), conf.Profile, profile.Default)))
}

// profileAs returns a profile's name as it is good in any directory: a file's is its absolute path.
func profileAs(name string) string {
	if strings.ContainsRune(name, filepath.Separator) || strings.ContainsRune(name, '/') || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
		return absolute(name)
	}
	return name
}

// useProfile loads the profile that the command works with from now on.
func (a *app) useProfile(name string) error {
	p, err := profile.Load(name)
	if err != nil {
		return err
	}
	a.profile, a.profileAs = p, name
	a.log.Debug("profile", "name", p.Name)
	return nil
}

// env looks an environment variable up. HOME is known also where only the system knows it.
func (a *app) env(name string) string {
	v := a.getenv(name)
	if v == "" && name == "HOME" {
		if home, err := os.UserHomeDir(); err == nil {
			return home
		}
	}
	return v
}

// store opens the host store of the profile.
func (a *app) store() (*bundle.Store, error) {
	dir, err := profile.Locate(a.profile.Store, a.env)
	if err != nil {
		return nil, &cliError{code: "no-store", err: err, hint: "set HOME to your home directory"}
	}
	a.log.Debug("store", "dir", dir)
	return bundle.OpenStore(dir, a.profile.Rules.Limits)
}

// some wants at least one argument, and says of what kind.
func some(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s was named", what)
		}
		return nil
	}
}
