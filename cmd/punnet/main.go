// Command punnet carries Agent Skills to where the agent runs.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(punnet()) }

// punnet runs the command on this process's own arguments, streams and environment.
func punnet() int {
	private()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal lets what is under way clean up; a second one ends the process as usual.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], system{
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
	})
}
