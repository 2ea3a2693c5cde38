//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/punnet/punnet/internal/killpoint"
)

// An import is killed at every one of its state-changing system calls. Each time the collection is
// left without the skill or with the whole one, and lists nothing else; and the next import succeeds
// and clears away what was left.
func TestImportKilledAnywhereLeavesNoHalfSkill(t *testing.T) {
	exe := build(t)
	calls := map[string]int{}
	for n := 1; ; n++ {
		home := t.TempDir()
		source := makeSkill(t, filepath.Join(home, "src"))
		punnet := func(args ...string) *exec.Cmd {
			cmd := exec.Command(exe, append([]string{"--json"}, args...)...)
			cmd.Env, cmd.Dir = []string{"HOME=" + home}, home
			return cmd
		}
		call, killed, err := killpoint.Run(punnet("import", source), n)
		if err != nil {
			t.Fatalf("point %d: %v", n, err)
		}
		if !killed {
			break
		}
		calls[call]++
		placed := filepath.Join(home, ".config/berry/skills/release")
		out, err := punnet("list", "--all").Output()
		var got listJSON
		if jerr := json.Unmarshal(out, &got); err != nil || jerr != nil || len(got.Skills) > 1 || len(got.Diagnostics) > 0 {
			t.Fatalf("point %d, %s: list says %s (%v, %v)", n, call, out, err, jerr)
		}
		for _, s := range got.Skills {
			if diff, err := exec.Command("diff", "-r", source, placed).CombinedOutput(); err != nil || s.Path != placed {
				t.Errorf("point %d, %s: %s is listed and not whole: %s", n, call, s.Path, diff)
			}
		}
		if out, err := punnet("import", source).CombinedOutput(); err != nil {
			t.Fatalf("point %d, %s: the next import failed: %v\n%s", n, call, err, out)
		}
		entries, err := os.ReadDir(filepath.Dir(placed))
		if err != nil || len(entries) != 1 {
			t.Errorf("point %d, %s: the next import left %v, %v", n, call, entries, err)
		}
	}
	t.Logf("points: %v", calls)
	for _, want := range []string{"mkdirat", "openat", "write", "fsync", "renameat"} {
		if calls[want] == 0 && calls[want+"2"] == 0 {
			t.Errorf("no %s among the points: the calls are not all seen", want)
		}
	}
}
