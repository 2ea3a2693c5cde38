package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// gcHome is a home for processes of the built command.
type gcHome struct {
	t               *testing.T
	exe, home, work string
}

func newGcHome(t *testing.T) *gcHome { return &gcHome{t, build(t), t.TempDir(), t.TempDir()} }

func (h *gcHome) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), h.exe, args...)
	cmd.Dir = h.work
	cmd.Env = append(os.Environ(), "HOME="+h.home, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "PUNNET_PROFILE=")
	return cmd
}

func (h *gcHome) run(args ...string) string {
	h.t.Helper()
	out, err := h.command(args...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("punnet %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (h *gcHome) bundles() []string {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.home, ".local/share/berry/skills/bundles", "????????????????????????????????????????????????????????????????"))
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func TestGcWaitsForALoadBetweenItsPinAndItsRecord(t *testing.T) {
	h := newGcHome(t)
	makeSkill(t, filepath.Join(h.home, ".config/berry/skills"))
	h.run("chat", "start", "--id", "c")
	// Whoever has the journal's lock keeps the load from recording what it has pinned.
	lock := flock.New(filepath.Join(h.home, ".local/state/punnet/conversations/.c.lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	load := h.command("chat", "say", "c", "/skill release")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); len(h.bundles()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("nothing was pinned")
		}
	}
	out, err := h.command("--json", "--timeout", "300ms", "store", "gc", "--keep-days", "0").Output()
	var said struct{ Error struct{ Code string } }
	if jerr := json.Unmarshal(out, &said); err == nil || jerr != nil || said.Error.Code != "timeout" {
		t.Errorf("gc did not wait for the load: %v, %s", err, out)
	}
	lock.Close()
	if err := load.Wait(); err != nil {
		t.Fatal(err)
	}
	h.run("store", "gc", "--keep-days", "0")
	h.run("chat", "prompt", "c")
	if n := len(h.bundles()); n != 1 {
		t.Errorf("%d bundles in the store, want the one that is loaded", n)
	}
}

func TestLoadsWhileGcRunsLoseNothing(t *testing.T) {
	h := newGcHome(t)
	const chats, loads = 3, 4
	var g sync.WaitGroup
	for c := range chats {
		name, id := fmt.Sprintf("skill-%d", c), fmt.Sprint("c", c)
		h.run("chat", "start", "--id", id)
		g.Go(func() {
			for i := range loads {
				dir := filepath.Join(h.home, ".config/berry/skills", name)
				text := fmt.Sprintf("---\nname: %s\ndescription: d\n---\n%d\n", name, i)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Error(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
				if out, err := h.command("chat", "say", id, "/skill "+name).CombinedOutput(); err != nil {
					t.Errorf("load %d of %s: %v\n%s", i, name, err, out)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		h.run("store", "gc", "--keep-days", "0")
	}
	for c := range chats {
		h.run("chat", "prompt", fmt.Sprint("c", c))
	}
	if n := len(h.bundles()); n != chats*loads {
		t.Errorf("%d bundles in the store, want the %d that histories refer to", n, chats*loads)
	}
}
