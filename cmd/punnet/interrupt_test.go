package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cancelOnWrite cancels a context at the first thing that is written to it.
type cancelOnWrite struct{ cancel func() }

func (c cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestInterruptedPinExits130AndLeavesNothingHalfDone(t *testing.T) {
	home := t.TempDir()
	args := []string{"pin"}
	for i := range 40 {
		args = append(args, makeSkill(t, filepath.Join(home, fmt.Sprint(i))))
		// One bundle each: the content differs.
		if err := os.WriteFile(filepath.Join(args[len(args)-1], "n"), []byte(fmt.Sprint(i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stderr strings.Builder
	exit := run(ctx, args, system{
		stdout: cancelOnWrite{cancel}, stderr: &stderr,
		getenv: func(name string) string { return map[string]string{"HOME": home}[name] },
	})
	if exit != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, want %d; %s", exit, exitInterrupted, stderr.String())
	}
	entries, err := os.ReadDir(filepath.Join(home, ".local/share/berry/skills/bundles"))
	if err != nil || len(entries) == 0 || len(entries) > 40 {
		t.Errorf("%d entries in the store, %v; want some of 40", len(entries), err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".tmp-") || strings.HasPrefix(e.Name(), ".trash-") {
			t.Errorf("%s is left", e.Name())
		}
	}
	// With nobody to interrupt it, the rest is pinned.
	exit = run(context.Background(), args, system{
		stdout: io.Discard, stderr: &stderr,
		getenv: func(name string) string { return map[string]string{"HOME": home}[name] },
	})
	if exit != exitDone {
		t.Errorf("the next run: exit code %d; %s", exit, stderr.String())
	}
}
