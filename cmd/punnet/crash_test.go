//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/killpoint"
)

// A pin is killed at every one of its state-changing system calls, in a store that is empty and in
// one where the bundle is damaged. Each time the store is left without the name, with the damaged
// bundle it had, or with the whole one; and the next pin succeeds and clears away what was left.
func TestPinKilledAnywhereLeavesTheNameAbsentOrWhole(t *testing.T) {
	exe := build(t)
	for _, start := range []string{"empty", "damaged"} {
		t.Run(start, func(t *testing.T) {
			calls := map[string]int{}
			points := 0
			for n := 1; ; n++ {
				home := t.TempDir()
				skill := makeSkill(t, home)
				store, err := bundle.OpenStore(filepath.Join(home, ".local/share/berry/skills/bundles"), bundle.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				pin := func() *exec.Cmd {
					cmd := exec.Command(exe, "pin", skill)
					cmd.Env = []string{"HOME=" + home}
					return cmd
				}
				if start == "damaged" {
					if out, err := pin().CombinedOutput(); err != nil {
						t.Fatalf("first pin: %v\n%s", err, out)
					}
					damage(t, store)
				}
				call, killed, err := killpoint.Run(pin(), n)
				if err != nil {
					t.Fatalf("point %d: %v", n, err)
				}
				if !killed {
					break
				}
				points++
				calls[call]++
				checkKilled(t, store, start, n, call)
				if out, err := pin().CombinedOutput(); err != nil {
					t.Fatalf("point %d, %s: the next pin failed: %v\n%s", n, call, err, out)
				}
				checkWhole(t, store, n, call)
			}
			t.Logf("%d points, none bad: %v", points, calls)
			for _, want := range []string{"mkdirat", "openat", "write", "fsync", "renameat"} {
				if calls[want] == 0 && calls[want+"2"] == 0 {
					t.Errorf("no %s among the points: the calls are not all seen", want)
				}
			}
		})
	}
}

// damage changes a file of the only bundle in a store.
func damage(t *testing.T, store *bundle.Store) {
	t.Helper()
	infos, err := store.List(context.Background())
	if err != nil || len(infos) != 1 {
		t.Fatalf("%d bundles, %v", len(infos), err)
	}
	if err := os.WriteFile(filepath.Join(store.Path(infos[0].Digest, infos[0].Name), "SKILL.md"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func checkKilled(t *testing.T, store *bundle.Store, start string, n int, call string) {
	t.Helper()
	infos, err := store.List(context.Background())
	if err != nil || len(infos) > 1 {
		t.Fatalf("point %d, %s: %d bundles, %v", n, call, len(infos), err)
	}
	for _, i := range infos {
		err := store.Verify(context.Background(), i.Digest)
		_, damaged := errors.AsType[*bundle.DamagedError](err)
		if err != nil && !(start == "damaged" && damaged) {
			t.Errorf("point %d, %s: the store has a bundle that is not whole: %v", n, call, err)
		}
	}
}

func checkWhole(t *testing.T, store *bundle.Store, n int, call string) {
	t.Helper()
	infos, err := store.List(context.Background())
	if err != nil || len(infos) != 1 {
		t.Fatalf("point %d, %s: %d bundles after the next pin, %v", n, call, len(infos), err)
	}
	if err := store.Verify(context.Background(), infos[0].Digest); err != nil {
		t.Errorf("point %d, %s: %v", n, call, err)
	}
	entries, err := os.ReadDir(store.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".tmp-") || strings.HasPrefix(e.Name(), ".trash-") {
			t.Errorf("point %d, %s: the next pin left %s", n, call, e.Name())
		}
	}
}
