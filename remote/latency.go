package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/punnet/punnet/transport"
)

// trips is how many round trips are measured.
const trips = 3

// median returns the middle one of the times that do takes.
func median(do func() error) (time.Duration, error) {
	var times []time.Duration
	for range trips {
		start := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[trips/2], nil
}

// echo measures a round trip by a command that sends back what it is sent. It returns 0 where that
// does not come about.
func (c *Cache) echo(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	in, send := io.Pipe()
	back := &listener{heard: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		err := c.conn.Exec(ctx, transport.Cmd{Line: "exec cat", Stdin: in, Stdout: back})
		in.CloseWithError(io.ErrClosedPipe)
		cancel()
		done <- err
	}()
	ask := func() error {
		line := append([]byte(rand.Text()), '\n')
		back.listen(line)
		if _, err := send.Write(line); err != nil {
			return err
		}
		select {
		case <-back.heard:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := ask() // with this the command is there, and the account has printed what it prints
	var trip time.Duration
	if err == nil {
		trip, err = median(ask)
	}
	send.Close()
	if err != nil {
		cancel()
	}
	<-done
	return trip
}

// listener waits for words among what is written to it.
type listener struct {
	heard chan struct{}

	mu   sync.Mutex
	want []byte
	got  []byte
	size int
}

func (l *listener) listen(want []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want, l.got = want, nil
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size += len(p); l.size > transport.MaxNoise {
		return 0, errors.New("the account prints more than is listened to")
	}
	l.got = append(l.got, p...)
	if len(l.want) > 0 && bytes.Contains(l.got, l.want) {
		l.want, l.got = nil, nil
		l.heard <- struct{}{}
	}
	return len(p), nil
}
