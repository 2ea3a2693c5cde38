package remote

import (
	"context"
	"errors"
	"io"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
)

const (
	// silence is how long the target may say nothing before it has said that it waits for the
	// stream. Then the stream ends, for a command that is not ours may wait for that.
	silence = time.Minute
	// streams is how many streams are under way at once where one command cannot name all bundles.
	streams = 2
)

// publish sends what lacks in as few streams as the commands' length allows.
func (w *execWay) publish(ctx context.Context, bundles []*bundle.Bundle) ([]Result, error) {
	results := make([]Result, len(bundles))
	at := make(map[bundle.Digest][]int)
	items := make(map[string]item)
	var words []string
	for i, b := range bundles {
		d := b.Manifest.Digest()
		results[i] = Result{Digest: d, Name: b.Manifest.Name(), Outcome: Failed}
		if at[d] = append(at[d], i); len(at[d]) > 1 {
			continue
		}
		it := w.item(b)
		items[it.word()] = it
		words = append(words, it.word())
	}
	var g errgroup.Group
	g.SetLimit(streams)
	for _, batch := range batches(verbPublish, w.o.Dir, words) {
		g.Go(func() error {
			s := &stream{w: w}
			for _, word := range batch {
				s.add(items[word])
			}
			err := s.publish(ctx)
			for j, it := range s.items {
				for k, i := range at[it.digest()] {
					results[i] = s.results[j]
					if k > 0 {
						results[i].Sent = 0
					}
				}
			}
			return err
		})
	}
	return results, g.Wait()
}

// item is a bundle to be published.
type item struct {
	*bundle.Bundle
	older *bundle.Manifest // an earlier version that it may be made from, or nil
	whole bool             // nothing that is there may be used
}

func (w *execWay) item(b *bundle.Bundle) item {
	it := item{Bundle: b}
	if w.o.Older != nil {
		it.older = w.o.Older(b.Manifest)
	}
	if it.older != nil && it.older.Digest() == it.digest() {
		it.older = nil
	}
	return it
}

func (it item) digest() bundle.Digest { return it.Manifest.Digest() }

// word names the bundle in the command.
func (it item) word() string {
	if it.older != nil {
		return it.digest().String() + ":" + it.older.Digest().String()
	}
	return it.digest().String()
}

// stream publishes the bundles of one command.
type stream struct {
	w       *execWay
	items   []item
	results []Result // one for each item
	plans   []plan   // one for each item
}

func (s *stream) add(it item) {
	s.items = append(s.items, it)
	s.plans = append(s.plans, plan{})
	s.results = append(s.results, Result{Digest: it.digest(), Name: it.Manifest.Name(), Outcome: Failed})
}

// publish publishes, and where what was already there turned out to be no good, once more whole.
func (s *stream) publish(ctx context.Context) error {
	again, err := s.send(ctx)
	if err == nil && len(again) > 0 {
		second := &stream{w: s.w}
		for j, i := range again {
			second.add(item{Bundle: s.items[i].Bundle, whole: true})
			second.results[j] = s.results[i]
		}
		_, err = second.send(ctx)
		for j, i := range again {
			s.results[i] = second.results[j]
		}
	}
	if err != nil {
		for i := range s.results {
			if r := &s.results[i]; r.Outcome == Failed && r.Err == nil {
				r.Err = err
			}
		}
	}
	return err
}

// send runs one command and its stream. It returns which bundles want sending whole.
func (s *stream) send(ctx context.Context) (again []int, err error) {
	ready, heard := make(chan struct{}), make(chan struct{}, 1)
	r := &reply{verb: verbPublish, asked: make(map[bundle.Digest]*asked), ready: func() { close(ready) }, heard: heard}
	words := make([]string, len(s.items))
	for i, it := range s.items {
		words[i] = it.word()
		r.asked[it.digest()] = &asked{manifest: it.Manifest, older: it.older != nil}
	}
	blind, err := s.blind()
	if err != nil {
		return nil, side(verbPublish, "on this side", err)
	}
	if blind {
		s.w.log.Debug("sending without asking", "bundles", len(s.items))
	}

	pr, pw := io.Pipe()
	in := &countingReader{r: pr}
	over := make(chan struct{})
	var packing sync.WaitGroup
	var packErr error
	packing.Go(func() {
		if !blind && !s.w.waitReady(ready, heard, over) {
			pw.Close()
			return
		}
		if !blind {
			s.plan(r)
		}
		packErr = s.pack(ctx, pw)
		pw.CloseWithError(packErr)
	})
	err = s.w.run(ctx, r, words, in)
	close(over)
	pr.CloseWithError(io.ErrClosedPipe) // nobody reads any more
	packing.Wait()
	if packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) && ctx.Err() == nil {
		err = side(verbPublish, "on this side", packErr)
	}
	s.share(in.n.Load())
	if err != nil {
		return nil, err
	}
	return s.settle(r)
}

// waitReady waits until the target wants the stream, and reports whether it does.
func (w *execWay) waitReady(ready, heard, over <-chan struct{}) bool {
	for {
		t := time.NewTimer(w.silence)
		select {
		case <-ready:
			return true
		case <-heard:
		case <-over:
			return false
		case <-t.C:
			w.log.Debug("the target is silent, sending nothing")
			return false
		}
	}
}

// settle turns a whole answer into results.
func (s *stream) settle(r *reply) (again []int, err error) {
	for i, it := range s.items {
		a, res := r.asked[it.digest()], &s.results[i]
		res.Path = path.Join(r.root, res.Digest.String(), res.Name)
		res.Err = nil
		switch {
		case a.state == "ok" || a.result == "had":
			res.Outcome = Present
		case a.result == "mended" || a.result == "new" && a.state == "damaged":
			res.Outcome = Repaired
		case a.result == "new":
			res.Outcome = Published
		case a.result == "bad" && s.plans[i].keep != nil:
			again = append(again, i)
		default:
			res.Path = ""
			if res.Err = s.failed(r, res); errors.Is(res.Err, ErrNoSpace) || a.result == "torn" {
				err = res.Err
			}
		}
	}
	return again, err
}

// failed says why a bundle was not placed. A full disk shows in whatever was being written.
func (s *stream) failed(r *reply, res *Result) error {
	e := failure(verbPublish, r.root, r.said)
	switch r.asked[res.Digest].result {
	case "torn":
		if e.Kind == nil {
			e.Err = errors.New("the stream did not arrive whole")
		}
	case "bad":
		if e.Kind == nil {
			return &DamagedError{Digest: res.Digest, Name: res.Name, Said: r.said}
		}
	case "refused":
		e.Err = errors.New("the name " + res.Digest.Short() + "... is taken again and again")
	}
	return e
}

// countingReader counts what is read.
type countingReader struct {
	r io.Reader
	n atomic.Int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
