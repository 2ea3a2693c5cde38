package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// build returns the path of the built command.
func build(t testing.TB) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "punnet")
	if runtime.GOOS == "windows" {
		exe += ".exe"
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

// makeSkill writes a skill directory of a few files and returns its path.
func makeSkill(t testing.TB, dir string) string {
	t.Helper()
	skill := filepath.Join(dir, "release")
	for name, text := range map[string]string{
		"SKILL.md":           "---\nname: release\ndescription: fine\n---\n",
		"scripts/run.sh":     "#!/bin/sh\n",
		"references/deep/a":  "a",
		"references/another": "b",
	} {
		p := filepath.Join(skill, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return skill
}
