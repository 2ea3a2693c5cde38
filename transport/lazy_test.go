package transport

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/transport/transporttest"
)

// harness is a program with a connection of its own.
type harness struct {
	t *testing.T
	s *transporttest.Server

	mu      sync.Mutex
	clients []*ssh.Client
	fail    error // what dialling fails with
}

func newHarness(t *testing.T, o transporttest.Options) *harness {
	noLeaks(t)
	h := &harness{t: t, s: startServer(t, o)}
	t.Cleanup(h.hangUp)
	return h
}

func (h *harness) dial(ctx context.Context) (*ssh.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return nil, h.fail
	}
	c, err := h.s.Client(ctx, "user")
	if err == nil {
		h.clients = append(h.clients, c)
	}
	return c, err
}

// dialled returns how many clients there were.
func (h *harness) dialled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// hangUp closes every client.
func (h *harness) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.clients {
		c.Close()
		_ = c.Wait()
	}
}

func (h *harness) lazy(o Options) Conn {
	c := Lazy(Target{Host: "box"}, h.dial, o)
	h.t.Cleanup(func() { c.Close() })
	return c
}

func TestALazyConnIsDialledOnceByTheFirstCall(t *testing.T) {
	h := newHarness(t, transporttest.Options{})
	c := h.lazy(Options{})
	if h.dialled() != 0 || c.Server() != "" || c.Way() != WayGiven {
		t.Errorf("before any call: %d clients, server %q, way %q", h.dialled(), c.Server(), c.Way())
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if out, _, err := run(t.Context(), c, "echo hi", ""); err != nil || out != "hi\n" {
				t.Errorf("%q, %v", out, err)
			}
			if _, err := c.Files(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if h.dialled() != 1 || h.s.MostSessions() > MaxChannels || !strings.HasPrefix(c.Server(), "SSH-2.0-") {
		t.Errorf("%d clients, %d channels, server %q", h.dialled(), h.s.MostSessions(), c.Server())
	}
	c.Close()
	if _, _, err := h.clients[0].SendRequest("still there?", true, nil); err != nil {
		t.Errorf("Close closed the harness's client: %v", err)
	}
	if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := c.Files(t.Context()); !errors.Is(err, ErrClosed) || h.dialled() != 1 {
		t.Errorf("files after Close: %v, %d clients", err, h.dialled())
	}
}

func TestALazyConnIsDialledAgainAfterTheClientEnded(t *testing.T) {
	h := newHarness(t, transporttest.Options{})
	c := h.lazy(Options{})
	use := map[string]func() error{
		"exec": func() error { _, _, err := run(t.Context(), c, "true", ""); return err },
		"files": func() error {
			fsys, err := c.Files(t.Context())
			if err == nil {
				_, err = fsys.RealPath(".")
			}
			if errors.Is(err, ErrLost) { // the view was had before the end was noticed
				_, err = c.Files(t.Context())
			}
			return err
		},
	}
	n := 0
	for name, f := range use {
		for range 2 {
			n++
			if err := f(); err != nil || h.dialled() != n {
				t.Errorf("%s: %v with client %d of %d", name, err, n, h.dialled())
			}
			h.hangUp()
		}
	}
}

func TestACommandThatHadBegunIsNotRunTwice(t *testing.T) {
	h := newHarness(t, transporttest.Options{})
	c := h.lazy(Options{})
	dir := tempDir(t)
	started := &signalWriter{c: make(chan struct{})}
	go func() { <-started.c; h.hangUp() }()
	err := c.Exec(t.Context(), Cmd{Line: "mkdir " + dir + "/ran; echo ready; sleep 5", Stdout: started})
	if !errors.Is(err, ErrLost) || h.dialled() != 1 {
		t.Errorf("%v with %d clients", err, h.dialled())
	}
	if _, _, err := run(t.Context(), c, "rmdir "+dir+"/ran", ""); err != nil || h.dialled() != 2 {
		t.Errorf("the next command: %v with %d clients", err, h.dialled())
	}
}

func TestAClientThatAnswersNothingIsReplaced(t *testing.T) {
	h := newHarness(t, transporttest.Options{})
	c := h.lazy(Options{Idle: 300 * time.Millisecond})
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Fatal(err)
	}
	h.s.SetFaults(transporttest.Faults{StallChannels: true})
	if _, _, err := run(t.Context(), c, "true", ""); !errors.Is(err, ErrTimeout) || h.dialled() != 1 {
		t.Errorf("while it answers nothing: %v with %d clients", err, h.dialled())
	}
	h.s.SetFaults(transporttest.Faults{})
	if _, _, err := run(t.Context(), c, "true", ""); err != nil || h.dialled() != 2 {
		t.Errorf("afterwards: %v with %d clients", err, h.dialled())
	}
	h.hangUp() // what waits on the first client is freed by its owner alone
}

func TestWhatADialFailsWithIsTypedAndKept(t *testing.T) {
	h := newHarness(t, transporttest.Options{})
	c := h.lazy(Options{})
	own := errors.New("the pool is empty\x1b[2J")
	h.fail = own
	_, _, err := run(t.Context(), c, "true", "")
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Op != "dial" || e.Target.Host != "box" || !errors.Is(err, ErrUnreachable) || !errors.Is(err, own) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
	h.fail = &Error{Op: "handshake", Kind: ErrAuth}
	if _, err := c.Files(t.Context()); !errors.Is(err, ErrAuth) || errors.Is(err, ErrUnreachable) {
		t.Errorf("a typed one: %v", err)
	}
	h.fail = nil
	if _, _, err := run(t.Context(), c, "true", ""); err != nil {
		t.Errorf("after failures: %v", err)
	}
	none := Lazy(Target{Host: "box"}, func(context.Context) (*ssh.Client, error) { return nil, nil }, Options{})
	defer none.Close()
	if _, _, err := run(t.Context(), none, "true", ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("no client and no error: %v", err)
	}
}

func TestADialIsBoundedByTheCallAndByClose(t *testing.T) {
	noLeaks(t)
	var calls atomic.Int32
	release := make(chan struct{})
	defer close(release)
	for name, dial := range map[string]func(ctx context.Context) (*ssh.Client, error){
		"that heeds its context": func(ctx context.Context) (*ssh.Client, error) { calls.Add(1); <-ctx.Done(); return nil, ctx.Err() },
		"that does not":          func(context.Context) (*ssh.Client, error) { calls.Add(1); <-release; return nil, errors.New("late") },
	} {
		c := Lazy(Target{Host: "box"}, dial, Options{})
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if _, _, err := run(ctx, c, "true", ""); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		time.AfterFunc(50*time.Millisecond, func() { c.Close() })
		if _, err := c.Files(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("%s, closed: %v", name, err)
		}
	}
	if n := calls.Load(); n != 4 { // three by the first, one by the second, which holds the turn
		t.Errorf("%d calls", n)
	}
}
