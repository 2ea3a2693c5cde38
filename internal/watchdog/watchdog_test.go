package watchdog

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAWatchdogFiresOnceWhereWhatIsOwedDoesNotMove(t *testing.T) {
	const limit = time.Minute
	for name, c := range map[string]struct {
		limit time.Duration
		play  func(w *Watchdog)
		fires int
	}{
		"nothing is owed":                {limit, func(*Watchdog) {}, 0},
		"owed and never moved":           {limit, func(w *Watchdog) { w.Owe(1) }, 1},
		"one of two was paid":            {limit, func(w *Watchdog) { w.Owe(2); w.Owe(-1) }, 1},
		"paid":                           {limit, func(w *Watchdog) { w.Owe(1); w.Owe(-1) }, 0},
		"stopped":                        {limit, func(w *Watchdog) { w.Owe(1); w.Stop() }, 0},
		"stopped before anything":        {limit, func(w *Watchdog) { w.Stop(); w.Owe(1) }, 0},
		"owed again after a rest":        {limit, func(w *Watchdog) { w.Owe(1); w.Owe(-1); time.Sleep(3 * limit); w.Owe(1) }, 1},
		"a limit below zero never fires": {-1, func(w *Watchdog) { w.Owe(1) }, 0},
		"it moves until it is paid": {limit, func(w *Watchdog) {
			w.Owe(1)
			for range 10 {
				time.Sleep(limit - time.Second)
				w.Moved()
			}
			w.Owe(-1)
		}, 0},
		"the clock starts with what is owed": {limit, func(w *Watchdog) {
			w.Owe(1)
			w.Owe(-1)
			time.Sleep(limit - time.Second) // its timer runs yet
			w.Owe(1)
			time.Sleep(limit - time.Second)
			w.Owe(-1)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fired := make(chan bool, 10)
				w := New(c.limit, func() { fired <- true })
				c.play(w)
				time.Sleep(5 * limit)
				synctest.Wait()
				if len(fired) != c.fires {
					t.Errorf("it fired %d times, want %d", len(fired), c.fires)
				}
				w.Stop()
			})
		})
	}
}

func TestAWatchdogWaitsItsLimitFromTheLastMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan time.Time, 1)
		w := New(time.Minute, func() { fired <- time.Now() })
		w.Owe(1)
		time.Sleep(40 * time.Second)
		w.Moved()
		moved := time.Now()
		if waited := (<-fired).Sub(moved); waited != time.Minute {
			t.Errorf("it fired after %v", waited)
		}
	})
}
