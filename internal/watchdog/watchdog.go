// Package watchdog notices another side that owes bytes and moves none.
package watchdog

import (
	"sync"
	"time"
)

// A Watchdog fires when the other side owes bytes and moves none for a while.
type Watchdog struct {
	limit time.Duration
	fire  func()

	mu    sync.Mutex
	timer *time.Timer
	owed  int
	last  time.Time
	over  bool
}

// New returns a watchdog at rest. A limit below zero makes one that never fires.
func New(limit time.Duration, fire func()) *Watchdog {
	return &Watchdog{limit: limit, fire: fire}
}

// Owe changes the number of things the other side owes. The clock runs while it is above zero.
func (w *Watchdog) Owe(n int) {
	if w.limit < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.owed == 0 && n > 0 {
		w.last = time.Now()
		if w.timer == nil {
			w.timer = time.AfterFunc(w.limit, w.check)
		}
	}
	w.owed += n
}

// Moved says that bytes moved.
func (w *Watchdog) Moved() {
	w.mu.Lock()
	w.last = time.Now()
	w.mu.Unlock()
}

// Stop ends the watch; fire is not called later, though it may be running.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *Watchdog) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch left := w.limit - time.Since(w.last); {
	case w.over:
	case w.owed <= 0:
		w.timer = nil // Owe starts it again
	case left > 0:
		w.timer = time.AfterFunc(left, w.check)
	default:
		w.over = true
		go w.fire()
	}
}
