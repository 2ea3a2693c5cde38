package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is also the process that a test puts on a terminal of its own: it asks what
// PUNNET_TEST_ASK says, and prints the answer on standard output.
func TestMain(m *testing.M) {
	kind := os.Getenv("PUNNET_TEST_ASK")
	if kind == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p := New(func(string) string { return "" })
	if p == nil {
		fmt.Print("nobody")
		return
	}
	answer, err := p.Ask(ctx, Question{Text: "question: ", Secret: kind == "secret", Confirm: kind == "confirm"})
	fmt.Printf("answer %q, error %v", answer, err)
}

// screen is a pseudo-terminal, seen from the person's side.
type screen struct {
	keys  *os.File
	inner *os.File // its other side, held open so that its state can be looked at

	mu    sync.Mutex
	shown bytes.Buffer
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(keys.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{keys: keys, inner: inner}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1024)
		for {
			n, err := keys.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		inner.Close()
		<-done
		keys.Close()
	})
	return s
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// typeIn types once the screen shows something.
func (s *screen) typeIn(t *testing.T, after, text string) {
	t.Helper()
	s.await(t, after)
	if _, err := io.WriteString(s.keys, text); err != nil {
		t.Error(err)
	}
}

func (s *screen) await(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(s.text(), what); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("the screen does not show %q: %q", what, s.text())
			return
		}
	}
}

// state is the terminal's modes.
func (s *screen) state(t *testing.T) unix.Termios {
	t.Helper()
	st, err := unix.IoctlGetTermios(int(s.inner.Fd()), getTermios)
	if err != nil {
		t.Error(err)
		return unix.Termios{}
	}
	return *st
}

func TestASecretIsNotShownAndTheTerminalIsAsBefore(t *testing.T) {
	s := newScreen(t)
	before := s.state(t)
	if _, err := io.WriteString(s.keys, "typed before\n"); err != nil {
		t.Fatal(err)
	}
	s.await(t, "typed before")
	go s.typeIn(t, "Passphrase: ", "hunter2\r")
	got, err := askOn(t.Context(), s.inner.Name(), Question{Text: "Passphrase: ", Secret: true})
	if err != nil || got != "hunter2" {
		t.Errorf("got %q, %v", got, err)
	}
	s.await(t, "Passphrase: \r\n")
	if strings.Contains(s.text(), "hunter2") {
		t.Errorf("the screen shows %q", s.text())
	}
	if s.state(t) != before {
		t.Error("the terminal is not as it was before")
	}
}

func TestTheEndOfTheContextEndsAQuestionOnTheTerminal(t *testing.T) {
	for _, secret := range []bool{true, false} {
		s := newScreen(t)
		before := s.state(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			s.await(t, "Question: ")
			if secret == (s.state(t).Lflag&unix.ECHO != 0) {
				t.Errorf("secret %v, and echo is %v", secret, !secret)
			}
			cancel()
		}()
		if _, err := askOn(ctx, s.inner.Name(), Question{Text: "Question: ", Secret: secret}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if s.state(t) != before {
			t.Error("the terminal is not as it was before")
		}
	}
}

func TestTheEndOfInputIsNoAnswer(t *testing.T) {
	s := newScreen(t)
	go s.typeIn(t, "Question: ", "\x04")
	if _, err := askOn(t.Context(), s.inner.Name(), Question{Text: "Question: ", Secret: true}); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
}

// onItsOwnTerminal runs a process on s that asks, and returns what it printed.
func onItsOwnTerminal(t *testing.T, s *screen, kind string) (wait func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PUNNET_TEST_ASK="+kind)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if s != nil {
		cmd.ExtraFiles = []*os.File{s.inner}
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 3
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	return func() string {
		err := cmd.Wait()
		limit.Stop()
		if err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
		return out.String()
	}
}

func TestAProcessAsksOnItsTerminalWhateverItsStreamsAre(t *testing.T) {
	for _, c := range []struct{ kind, typed, want string }{
		{"secret", "hunter2\r", `answer "hunter2", error <nil>`},
		{"shown", "hunter2\r", `answer "hunter2", error <nil>`},
		{"confirm", "yes\r", `answer "yes", error <nil>`},
		{"secret", "\x03", `answer "", error interrupt signal received`}, // Ctrl-C
		{"shown", "\x03", `answer "", error interrupt signal received`},
	} {
		s := newScreen(t)
		before := s.state(t)
		wait := onItsOwnTerminal(t, s, c.kind)
		s.typeIn(t, "question", c.typed)
		if got := wait(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %q: %s", c.kind, c.typed, got)
		}
		if shown := strings.Contains(s.text(), "hunter2"); shown != (c.kind == "shown" && c.typed != "\x03") {
			t.Errorf("%s: the screen shows %q", c.kind, s.text())
		}
		if s.state(t) != before {
			t.Errorf("%s %q: the terminal is not as it was before", c.kind, c.typed)
		}
	}
	if got := onItsOwnTerminal(t, nil, "secret")(); got != "nobody" {
		t.Errorf("without a terminal: %s", got)
	}
}

func TestAnAnswerOnTheTerminalIsBounded(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString(strings.Repeat("x", 2*maxAnswer)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := readLine(ctx, int(r.Fd())); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
}
