package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the whole way, against an SSH server of its own",
		Long: `Demo makes a few skills in a temporary home, starts an SSH server on this machine's loopback
interface, pins the skills, publishes them by shell and by SFTP, damages a copy and repairs
it, and says what it does. It needs no set-up and leaves nothing behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

// The accounts of the demo's server.
const (
	demoShell = "devbox"
	demoFiles = "filesonly"
)

// demonstration is one run of the demo: a home and a server that last as long as it does.
type demonstration struct {
	*app
	home   string
	server *transporttest.Server
}

func (a *app) demo(ctx context.Context) (err error) {
	start := time.Now()
	dir, err := os.MkdirTemp("", "punnet-demo-")
	if err != nil {
		return fmt.Errorf("make a temporary home: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := transporttest.Start(transporttest.Options{
		Accounts: []transporttest.Account{{Name: demoShell}, {Name: demoFiles, NoExec: true}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	d := &demonstration{app: a, home: filepath.Join(dir, "home"), server: server}
	if err := d.makeSkills(); err != nil {
		return fmt.Errorf("make the demo's skills: %w", err)
	}
	if err := d.show(ctx); err != nil {
		return err
	}
	d.say("\nThat was all of it, in %.1f s. The home, the server and the copies are removed again.\n", time.Since(start).Seconds())
	return nil
}

func (d *demonstration) say(format string, args ...any) { fmt.Fprintf(d.stdout, format, args...) }

// show is the demo, step by step.
func (d *demonstration) show(ctx context.Context) error {
	d.say(`Two skills stand in %s, the collection of this demo's home,
and an SSH server runs on %s. Its account %s runs commands, and %s
allows SFTP alone.

`, display.Quote(filepath.Join(d.home, ".config/berry/skills")), d.server.Addr(), demoShell, demoFiles)
	if err := d.run(ctx, exitDone, "inspect", "release"); err != nil {
		return err
	}
	d.say("\nPush pins both skills as bundles in the host store, and publishes them over SSH: one\nstream, unpacked beside the cache, verified there, and given its name by one rename.\n\n")
	if err := d.run(ctx, exitDone, "push", "--all", demoShell); err != nil {
		return err
	}
	d.say("\nAgain: the copies are verified where they are, and nothing is sent.\n\n")
	if err := d.run(ctx, exitDone, "push", "--all", demoShell); err != nil {
		return err
	}
	d.say("\nThe other account has no shell, so the same happens by SFTP.\n\n")
	if err := d.run(ctx, exitDone, "push", "--all", demoFiles); err != nil {
		return err
	}
	d.say("\nNow something on the target edits a script, removes a file and adds one.\n\n")
	if err := d.damage(); err != nil {
		return fmt.Errorf("damage a copy: %w", err)
	}
	if err := d.run(ctx, exitProblems, "verify", demoShell); err != nil {
		return err
	}
	d.say("\nThe next push finds the damage and repairs it: what is intact is kept, the rest\nis sent, and the copy is verified before it gets its name back.\n\n")
	if err := d.run(ctx, exitDone, "push", demoShell, "release"); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil // the demo's server runs no scripts there
	}
	d.say("\nWhat the model gets is a directory that is really there: the script in it runs.\n\n")
	return d.runScript(ctx)
}

// run runs a command line as a user of the demo's home would, and shows it and what it prints.
func (d *demonstration) run(ctx context.Context, want int, args ...string) error {
	d.say("$ punnet %s\n", strings.Join(args, " "))
	exit := run(ctx, args, system{
		stdout: d.stdout,
		stderr: d.stdout,
		getenv: func(name string) string {
			if name == "HOME" {
				return d.home
			}
			if name == "NO_COLOR" || name == "TERM" {
				return d.getenv(name)
			}
			return ""
		},
		dial: d.dial,
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if exit != want {
		return fmt.Errorf("punnet %s ended with exit code %d, not %d", strings.Join(args, " "), exit, want)
	}
	return nil
}

// dial connects to the demo's own server, whatever this machine's ssh configuration says, and
// whether or not it has one.
func (d *demonstration) dial(ctx context.Context, t transport.Target) (transport.Conn, error) {
	client, err := d.server.Client(ctx, t.Host)
	if err != nil {
		return nil, err
	}
	return &ownConn{transport.NewConn(client, transport.Options{Log: d.log}), client}, nil
}

// ownConn closes the connection that was made for it.
type ownConn struct {
	transport.Conn
	client interface{ Close() error }
}

func (c *ownConn) Close() error { return errors.Join(c.Conn.Close(), c.client.Close()) }

func (d *demonstration) makeSkills() error {
	collection := filepath.Join(d.home, ".config", "berry", "skills")
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"release/SKILL.md":                {"---\nname: release\ndescription: Prepare and verify a release; use before publishing.\n---\n\nRead references/checklist.md, then run scripts/check.sh.\n", 0o644},
		"release/references/checklist.md": {"# Checklist\n\n- changelog\n- version\n- tag\n", 0o644},
		"release/scripts/check.sh":        {"#!/bin/sh\necho \"the release is checked\"\n", 0o755},
		"review/SKILL.md":                 {"---\nname: review\ndescription: Review a change the way this team does.\n---\n\nStart with the tests.\n", 0o644},
	} {
		path := filepath.Join(collection, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(file.text), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// copyOfRelease returns the directory named release in the cache of the shell account.
func (d *demonstration) copyOfRelease() (string, error) {
	found, err := filepath.Glob(filepath.Join(d.server.Home(demoShell), ".cache/berry/skills/*/release"))
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d copies of release on the target, not one", len(found))
	}
	return found[0], nil
}

func (d *demonstration) damage() error {
	dir, err := d.copyOfRelease()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "scripts/check.sh"), []byte("#!/bin/sh\necho tampered with\n"), 0o700),
		os.Remove(filepath.Join(dir, "references/checklist.md")),
		os.WriteFile(filepath.Join(dir, "extra"), nil, 0o600),
	)
}

// runScript runs the published script on the target, as an agent there would.
func (d *demonstration) runScript(ctx context.Context) error {
	conn, err := d.dial(ctx, transport.Target{Host: demoShell})
	if err != nil {
		return err
	}
	defer conn.Close()
	dir, err := d.copyOfRelease()
	if err != nil {
		return err
	}
	d.say("$ ssh %s scripts/check.sh\n", demoShell)
	return conn.Exec(ctx, transport.Cmd{Line: "cd '" + dir + "' && scripts/check.sh", Stdout: d.stdout, Stderr: d.stdout})
}
