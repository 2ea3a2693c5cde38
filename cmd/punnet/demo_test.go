package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemoGoesTheWholeWayAndLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out, errs strings.Builder
	exit := run(context.Background(), []string{"demo"}, system{stdout: &out, stderr: &errs, getenv: os.Getenv})
	if exit != exitDone || errs.Len() > 0 {
		t.Fatalf("exit code %d\n%s\n%s", exit, errs.String(), out.String())
	}
	rest := out.String()
	for _, want := range []string{
		"$ punnet push --all devbox", "published release", "present release",
		"$ punnet push --all filesonly", "published release", "damaged release", "repaired release", "the release is checked",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is not where it should be:\n%s", want, out.String())
		}
		rest = after
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("the demo left %q", left)
	}
}
