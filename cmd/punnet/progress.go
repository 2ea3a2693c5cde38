package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// progressPause is how often the line is written again, and after how long it first is: what is
// faster needs no progress.
const progressPause = 300 * time.Millisecond

// progress shows on a terminal what is being waited for, and for how long, until the function it
// returns is called. Elsewhere it shows nothing.
func (a *app) progress(what string) (done func()) {
	f, ok := a.stderr.(*os.File)
	if !ok || a.quiet || a.json || a.getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(progressPause)
		defer tick.Stop()
		shown := false
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(f, "\r\x1b[K")
				}
				return
			case <-tick.C:
				line := fmt.Sprintf("%s ... %ds", what, int(time.Since(start).Seconds()))
				if width, _, err := term.GetSize(int(f.Fd())); err == nil && len(line) >= width {
					line = line[:max(0, width-1)]
				}
				fmt.Fprintf(f, "\r\x1b[K%s", line)
				shown = true
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
