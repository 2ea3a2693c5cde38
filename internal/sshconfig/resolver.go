package sshconfig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/punnet/punnet/internal/proc"
)

// Remember is how long a Resolver gives the same answer: long enough for the hops and reconnections
// of one piece of work, short enough that a changed file or a Match exec that thinks otherwise by now
// is heard.
const Remember = time.Minute

// maxAnswers bounds how many answers a Resolver keeps.
const maxAnswers = 256

// Resolver answers questions and remembers the answers for Remember. Equal questions that come at the
// same time are asked once. The zero value is ready, and it may be used by several goroutines; it must
// not be copied after its first use.
type Resolver struct {
	mu      sync.Mutex
	answers map[string]*asked

	// now and ask stand in for the clock and for ask in tests.
	now func() time.Time
	ask func(ctx context.Context, q Query) (*answer, error)
}

// answer is what the configuration says, before it is expanded.
type answer struct {
	raw     map[string][]string
	sources []string
}

// asked is a question, and once done is closed its answer.
type asked struct {
	done    chan struct{}
	waiting int    // how many wait for it
	cancel  func() // stops asking

	answer *answer
	err    error
	until  time.Time // when it is to be forgotten
}

// Resolve returns what the configuration says, for the caller to keep. A nil Resolver remembers
// nothing.
func (r *Resolver) Resolve(ctx context.Context, q Query) (*Settings, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	var a *answer
	var err error
	if r == nil {
		a, err = find(ctx, q)
	} else {
		a, err = r.shared(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	s, err := expandSettings(a.raw, q)
	if err != nil {
		return nil, err
	}
	s.Sources = slices.Concat(q.sources(), a.sources)
	return s, nil
}

// Resolve returns what the configuration says. Where there is no ssh program to ask, the files are
// read here.
func Resolve(ctx context.Context, q Query) (*Settings, error) {
	return (*Resolver)(nil).Resolve(ctx, q)
}

// find finds the answer to q.
func find(ctx context.Context, q Query) (*answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("reading the ssh configuration took longer than %v; does a Match exec or a canonical name hang?", askTimeout))
	defer cancel()
	ssh, err := exec.LookPath("ssh")
	if errors.Is(err, exec.ErrNotFound) {
		q.Log.Info("no ssh program was found; reading the ssh configuration without it", "target", q.Host)
		return readFiles(ctx, q)
	}
	if err != nil {
		return nil, &BrokenError{Path: ssh, Err: err}
	}
	return ask(ctx, ssh, q)
}

// shared finds the answer to q, or waits for or returns the one that is there.
func (r *Resolver) shared(ctx context.Context, q Query) (*answer, error) {
	key := q.key()
	r.mu.Lock()
	a := r.answers[key]
	if a == nil || a.over() && !r.time().Before(a.until) {
		a = r.start(ctx, key, q)
	}
	a.waiting++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if a.waiting--; a.waiting == 0 && !a.over() {
			a.cancel() // nobody wants to know any more
			r.forget(key, a)
		}
	}()
	if a.over() { // an answer that is there costs no wait, even with an ended ctx
		return a.answer, a.err
	}
	select {
	case <-a.done:
		return a.answer, a.err
	case <-ctx.Done():
		return nil, proc.Ended(ctx)
	}
}

// start begins to ask. r.mu is held.
func (r *Resolver) start(ctx context.Context, key string, q Query) *asked {
	// Its end is not that of the first who asked, whose values it keeps.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &asked{done: make(chan struct{}), cancel: cancel}
	if r.answers == nil || len(r.answers) >= maxAnswers {
		r.answers = make(map[string]*asked)
	}
	r.answers[key] = a
	look := r.ask
	if look == nil {
		look = find
	}
	go func() {
		defer cancel()
		found, err := look(ctx, q)
		r.mu.Lock()
		defer r.mu.Unlock()
		a.answer, a.err, a.until = found, err, r.time().Add(Remember)
		if err != nil {
			r.forget(key, a)
		}
		close(a.done)
	}()
	return a
}

// forget removes a, if it is what is remembered. r.mu is held.
func (r *Resolver) forget(key string, a *asked) {
	if r.answers[key] == a {
		delete(r.answers, key)
	}
}

func (r *Resolver) time() time.Time {
	if r.now != nil {
		return r.now()
	}
	return time.Now()
}

func (a *asked) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}
