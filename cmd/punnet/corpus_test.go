package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// eachCollection runs a test for each collection in the directory that PUNNET_CORPUS names:
// directories of skill directories, shaped as public ones are.
func eachCollection(t *testing.T, test func(t *testing.T, exe, dir string)) {
	t.Helper()
	corpus := os.Getenv("PUNNET_CORPUS")
	if corpus == "" {
		testenv.Missing(t, "a corpus: set PUNNET_CORPUS to a directory of collections")
	}
	collections, err := os.ReadDir(corpus)
	if err != nil || len(collections) == 0 {
		t.Fatalf("%d collections in %s, %v", len(collections), corpus, err)
	}
	exe := build(t)
	for _, c := range collections {
		t.Run(c.Name(), func(t *testing.T) { test(t, exe, filepath.Join(corpus, c.Name())) })
	}
}

// Every skill is pinned and verified, or named with the limit it is over.
func TestCollectionsShapedLikePublicOnesArePinned(t *testing.T) { eachCollection(t, pinCollection) }

// Every skill that is pinned is published by exec and by SFTP, and reads back equal.
func TestCollectionsShapedLikePublicOnesArePushed(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh, to read an ssh_config")
	}
	eachCollection(t, func(t *testing.T, exe, dir string) {
		server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{{Name: "devbox"}, {Name: "filesonly", NoExec: true}}})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		home := t.TempDir()
		for _, account := range []string{"devbox", "filesonly"} {
			pushCollection(t, exe, dir, home, server, account)
		}
	})
}

func pushCollection(t *testing.T, exe, dir, home string, server *transporttest.Server, account string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--json", "-q", "-F", server.ConfigFile(), "push", account}
	for _, e := range entries {
		args = append(args, filepath.Join(dir, e.Name()))
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	outcomes := map[string]int{}
	there := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		var e struct {
			Event, Outcome, Digest, Skill string
			Error                         struct{ Code, Message string }
		}
		if jerr := json.Unmarshal([]byte(line), &e); jerr != nil {
			t.Fatalf("%v, %v: %.300s", err, jerr, line)
		}
		if e.Event != "result" {
			continue
		}
		outcomes[e.Outcome]++
		if e.Outcome == "failed" && !overLimit(e.Error.Code) {
			t.Errorf("%s: %s failed with %s: %s", account, e.Skill, e.Error.Code, e.Error.Message)
		}
		if e.Digest != "" && e.Outcome != "failed" {
			there[e.Digest] = true
		}
	}
	t.Logf("%s: %v", account, outcomes)
	if outcomes["published"]+outcomes["present"]+outcomes["failed"] != len(entries) {
		t.Errorf("%s: outcomes %v for %d skills", account, outcomes, len(entries))
	}
	cache := filepath.Join(server.Home(account), ".cache/berry/skills")
	found, err := os.ReadDir(cache)
	if len(there) > 0 && err != nil || len(found) != len(there) {
		t.Errorf("%s: %d copies in the cache, %v; want %d", account, len(found), err, len(there))
	}
	if len(there) > 0 {
		compareWithTools(t, cache, filepath.Join(home, account))
	}
}

// overLimit reports whether a code says that a skill is over a limit.
func overLimit(code string) bool {
	return slices.Contains([]string{string(bundle.TooManyEntries), string(bundle.TooManyBytes), string(bundle.FileTooLarge)}, code)
}

func pinCollection(t *testing.T, exe, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--json", "pin"}
	for _, e := range entries {
		args = append(args, filepath.Join(dir, e.Name()))
	}
	home := t.TempDir()
	cmd := exec.Command(exe, args...)
	cmd.Env = []string{"HOME=" + home}
	out, err := cmd.Output()
	var got struct {
		Pins   []struct{ Skill, Digest string }
		Failed []struct{ Skill, Code, Message string }
	}
	if jerr := json.Unmarshal(out, &got); jerr != nil {
		t.Fatalf("%v, %v: %.300s", err, jerr, out)
	}
	if len(got.Pins)+len(got.Failed) != len(entries) {
		t.Errorf("%d pinned and %d failed of %d skills", len(got.Pins), len(got.Failed), len(entries))
	}
	for _, f := range got.Failed {
		if !overLimit(f.Code) {
			t.Errorf("%s failed with %s: %s", f.Skill, f.Code, f.Message)
		}
		t.Logf("over a limit: %s: %s", filepath.Base(f.Skill), f.Message)
	}
	store, err := bundle.OpenStore(filepath.Join(home, ".local/share/berry/skills/bundles"), bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range got.Pins {
		d, err := bundle.ParseDigest(p.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Verify(context.Background(), d); err != nil {
			t.Error(err)
		}
	}
	if len(got.Pins) > 0 {
		compareWithTools(t, store.Dir(), filepath.Join(home, "copy"))
	}
	t.Logf("%d skills pinned and verified, %d over a limit", len(got.Pins), len(got.Failed))
}

// compareWithTools recomputes every digest in a store or cache with find, sha256sum and sort, on a
// copy of it.
func compareWithTools(t *testing.T, dir, copied string) {
	t.Helper()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		testenv.Missing(t, "sha256sum")
	}
	const script = `cd "$1" || exit; export LC_ALL=C; for d in ????????????????????????????????????????????????????????????????; do
		got=$(cd "$d" && rm -f manifest && {
			find . ! -name . -type d -exec printf 'd %s\n' {} +
			find . -type f -perm 600 -exec sha256sum {} + | sed 's/^/f /'
			find . -type f -perm 700 -exec sha256sum {} + | sed 's/^/x /'
		} | sort | sha256sum | cut -d" " -f1)
		[ "$got" = "$d" ] || echo "$d is $got"
	done`
	if out, err := exec.Command("cp", "-a", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	out, err := exec.Command("sh", "-c", script, "sh", copied).CombinedOutput()
	if err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("plain tools disagree (%v):\n%.2000s", err, out)
	}
}
