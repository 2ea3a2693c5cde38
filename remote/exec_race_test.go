//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A race has so many publishers and rounds.
const (
	racers     = 8
	raceRounds = 20
)

// race has many publish one bundle at once, and a reader watch the copy. from prepares a round.
func race(t *testing.T, from func(copyDir string), while func(stop <-chan struct{}, copyDir string), judge func(outcomes map[Outcome]int)) {
	t.Helper()
	rounds := raceRounds
	if testing.Short() {
		rounds = 3
	}
	conn, home := newShellConn(t)
	b := testSkill{"SKILL.md": "x", "scripts/run.sh": "#!/bin/sh\n"}.pin(t, "release")
	d := b.Manifest.Digest().String()
	root := filepath.Join(home, ".cache/berry/skills")
	for range rounds {
		from(filepath.Join(root, d))
		stop := make(chan struct{})
		var beside sync.WaitGroup
		beside.Go(func() { while(stop, filepath.Join(root, d)) })
		var mu sync.Mutex
		outcomes := map[Outcome]int{}
		var all sync.WaitGroup
		for range racers {
			all.Go(func() {
				results, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
				if err == nil {
					err = results[0].Err
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					outcomes[Failed]++
					t.Log(err)
				} else {
					outcomes[results[0].Outcome]++
				}
			})
		}
		all.Wait()
		close(stop)
		beside.Wait()
		judge(outcomes)
		if r := publishOne(t, openCache(t, conn, Options{}), b); r.Path == "" || recomputed(t, filepath.Join(root, d)) != d {
			t.Fatalf("in the end it is not whole: %+v", r)
		}
		if got := names(t, root); len(got) != 1 {
			t.Fatalf("in the end the cache holds %q", got)
		}
		if t.Failed() {
			return
		}
	}
}

// seen describes what a reader finds under a name: nothing, the whole, or something else.
func seen(t testing.TB, copyDir string) string {
	if _, err := os.Lstat(copyDir); err != nil {
		return "nothing"
	}
	a, err1 := os.ReadFile(filepath.Join(copyDir, "release/SKILL.md"))
	b, err2 := os.ReadFile(filepath.Join(copyDir, "release/scripts/run.sh"))
	if err1 == nil && err2 == nil && string(a) == "x" && string(b) == "#!/bin/sh\n" {
		return "whole"
	}
	return "other"
}

func TestOneOfManyPublishersWinsAndReadersSeeNothingOrAll(t *testing.T) {
	race(t, func(dir string) { must(t, os.RemoveAll(dir)) },
		func(stop <-chan struct{}, dir string) {
			for whole := false; ; time.Sleep(time.Millisecond) {
				select {
				case <-stop:
					return
				default:
				}
				s := seen(t, dir)
				if s == "other" || whole && s != "whole" {
					t.Errorf("a reader saw %s (after the whole: %v)", s, whole)
					return
				}
				whole = s == "whole"
			}
		},
		func(o map[Outcome]int) {
			if o[Published] != 1 || o[Present] != racers-1 {
				t.Errorf("outcomes %v", o)
			}
		})
}

func TestADamagedCopyIsReplacedOnceByManyAndNeverAWholeOne(t *testing.T) {
	race(t, func(dir string) {
		must(t, os.MkdirAll(filepath.Join(dir, "release"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "release", "SKILL.md"), []byte("evil"), 0o600))
	},
		func(stop <-chan struct{}, dir string) {
			for whole := false; ; time.Sleep(time.Millisecond) {
				select {
				case <-stop:
					return
				default:
				}
				s := seen(t, dir)
				if whole && s != "whole" {
					t.Errorf("a whole copy became %s", s)
					return
				}
				whole = s == "whole"
			}
		},
		func(o map[Outcome]int) {
			if o[Repaired] != 1 || o[Present] != racers-1 {
				t.Errorf("outcomes %v", o)
			}
		})
}

func TestATamperersRaceEndsWhole(t *testing.T) {
	race(t, func(dir string) { must(t, os.RemoveAll(dir)) },
		func(stop <-chan struct{}, dir string) {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(7 * time.Millisecond):
				}
				switch i % 4 {
				case 0:
					_ = os.WriteFile(filepath.Join(dir, "release/SKILL.md"), []byte("evil"), 0o600)
				case 1:
					_ = os.WriteFile(filepath.Join(dir, "release/extra"), nil, 0o600)
				case 2:
					_ = os.RemoveAll(filepath.Join(dir, "release"))
				case 3:
					_ = os.Remove(filepath.Join(dir, "release/scripts/run.sh"))
				}
			}
		},
		func(o map[Outcome]int) {
			// Who is tampered with all the time may fail; what counts is what is there afterwards.
			if o[Failed] == racers {
				t.Errorf("outcomes %v", o)
			}
		})
}
