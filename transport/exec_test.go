package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// eachConn runs a test over every kind of connection that runs commands.
func eachConn(t *testing.T, test func(t *testing.T, c Conn)) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a POSIX shell")
	}
	t.Run("local", func(t *testing.T) {
		noLeaks(t)
		c := Local()
		t.Cleanup(func() { c.Close() })
		test(t, c)
	})
	t.Run("borrowed", func(t *testing.T) {
		noLeaks(t)
		test(t, borrowed(t, startServer(t, transporttest.Options{}), "user", Options{}))
	})
	t.Run("dialled", func(t *testing.T) {
		noLeaks(t)
		s := startServer(t, transporttest.Options{})
		test(t, dial(t, "user", needSSH(t, s)))
	})
	t.Run("sshd", func(t *testing.T) {
		noLeaks(t)
		d := startSSHD(t)
		test(t, dial(t, d.alias, d.options()))
	})
	t.Run("control", func(t *testing.T) {
		noLeaks(t)
		test(t, dialControlled(t))
	})
	t.Run("system", func(t *testing.T) {
		noLeaks(t)
		test(t, dialSystem(t))
	})
}

// ofSSHD reports whether c leads to a real sshd, also where its version cannot be known.
func ofSSHD(c Conn) bool {
	sc, ok := c.(*sshConn)
	return ok && (sc.shared || strings.Contains(sc.Server(), "OpenSSH"))
}

// sh makes a line that every login shell gives to sh.
func sh(script string) string { return "exec /bin/sh -c '" + script + "'" }

func TestACommandGetsItsInputAndGivesItsOutput(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		in := strings.Repeat("some input\n", 100000)
		out, errs, err := run(t.Context(), c, sh("cat; echo done >&2"), in)
		if err != nil || out != in || errs != "done\n" {
			t.Errorf("%d of %d bytes, %q, %v", len(out), len(in), errs, err)
		}
		if out, _, err := run(t.Context(), c, sh("pwd"), ""); err != nil || !filepath.IsAbs(strings.TrimSpace(out)) {
			t.Errorf("pwd: %q, %v", out, err)
		}
		if err := c.Exec(t.Context(), Cmd{Line: sh("cat; echo out; echo err >&2")}); err != nil {
			t.Errorf("without input and writers: %v", err)
		}
	})
}

func TestAnExitStatusIsAnExitError(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		for _, want := range []int{1, 3, 127, 255} {
			_, _, err := run(t.Context(), c, sh(fmt.Sprint("exit ", want)), "")
			var exit *ExitError
			if !errors.As(err, &exit) || exit.Status != want || exit.Signal != "" {
				t.Errorf("exit %d: %#v", want, err)
			}
		}
		_, _, err := run(t.Context(), c, sh("kill -KILL $$"), "")
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Status != -1 || exit.Signal != "KILL" {
			t.Errorf("killed: %#v", err)
		}
	})
}

func TestAnEarlyExitIsReportedWhateverBecomesOfTheInput(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		// Far more than any buffer on the way, and nobody reads it.
		_, _, err := run(t.Context(), c, sh("exit 7"), strings.Repeat("x", 16<<20))
		var exit *ExitError
		if !errors.As(err, &exit) || exit.Status != 7 {
			t.Errorf("unread input: %v", err)
		}
		// A reader that never returns must not hold the result up.
		r, w := io.Pipe()
		defer w.Close()
		done := make(chan error, 1)
		go func() { done <- c.Exec(t.Context(), Cmd{Line: sh("exit 8"), Stdin: r}) }()
		select {
		case err := <-done:
			if !errors.As(err, &exit) || exit.Status != 8 {
				t.Errorf("blocked reader: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("a reader that blocks held up the result")
		}
	})
}

func TestAWriterThatRefusesEndsTheCommand(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		full := errors.New("enough")
		for name, cmd := range map[string]Cmd{
			"stdout": {Line: sh("yes"), Stdout: &cappedWriter{left: 1 << 20, err: full}},
			"stderr": {Line: sh("yes >&2"), Stderr: &cappedWriter{left: 1 << 20, err: full}},
		} {
			start := time.Now()
			if err := c.Exec(t.Context(), cmd); !errors.Is(err, full) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: took %v", name, took)
			}
		}
		if out, _, err := run(t.Context(), c, sh("echo still here"), ""); err != nil || out != "still here\n" {
			t.Errorf("afterwards: %q, %v", out, err)
		}
	})
}

type cappedWriter struct {
	left int
	err  error
}

func (w *cappedWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

func TestABrokenInputIsNotTakenForItsEnd(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		broken := errors.New("the disk is gone")
		dir := tempDir(t)
		in := io.MultiReader(strings.NewReader("half"), failingReader{broken})
		err := c.Exec(t.Context(), Cmd{Line: sh("trap \"exit 9\" TERM HUP; cat >/dev/null && sleep 3 && : >" + dir + "/complete"), Stdin: in})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(dir + "/complete"); err == nil {
			t.Error("the command took half its input for all of it")
		}
	})
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestCancellingLetsTheCommandCleanUp(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		dir := tempDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, w := io.Pipe()
		defer w.Close()
		started := &signalWriter{c: make(chan struct{})}
		done := make(chan error, 1)
		line := sh("trap \"rm -f " + dir + "/staging; exit 1\" TERM HUP INT; : >" + dir + "/staging; echo ready; cat >/dev/null; rm -f " + dir + "/staging")
		go func() { done <- c.Exec(ctx, Cmd{Line: line, Stdin: r, Stdout: started}) }()
		<-started.c
		start := time.Now()
		cancel()
		err := <-done
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if !strings.Contains(err.Error(), "exec ") {
			t.Errorf("%v does not say what was being done", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("ending it took %v", took)
		}
		waitGone(t, dir+"/staging")

		if ofSSHD(c) && os.Geteuid() == 0 {
			return // sshd delivers no signals to root
		}
		// One that does not look at its input has the signal alone to learn from.
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		started = &signalWriter{c: make(chan struct{})}
		line = sh("trap \"rm -f " + dir + "/staging; exit 1\" TERM; : >" + dir + "/staging; echo ready; while :; do sleep 0.1; done")
		go func() { done <- c.Exec(ctx, Cmd{Line: line, Stdout: started}) }()
		<-started.c
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		waitGone(t, dir+"/staging")
		if out, _, err := run(t.Context(), c, sh("echo still here"), ""); err != nil || out != "still here\n" {
			t.Errorf("the connection after a cancelled command: %q, %v", out, err)
		}
	})
}

func waitGone(t *testing.T, name string) {
	t.Helper()
	for range 200 {
		if _, err := os.Lstat(name); errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s is still there", name)
}

// signalWriter says when something was written.
type signalWriter struct {
	once sync.Once
	c    chan struct{}
}

func (w *signalWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.c) })
	return len(p), nil
}

func TestADeadlineEndsACommandThatIgnoresIt(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		within(t, 8*time.Second, func() {
			_, _, err := run(ctx, c, sh("trap \"\" TERM HUP INT PIPE; i=0; while [ $i -lt 8 ]; do sleep 1; i=$((i+1)); done"), "")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
		if !ofSSHD(c) {
			return
		}
		// It still runs, and sshd does not give its channel back before it ends.
		time.Sleep(closeGrace + 500*time.Millisecond)
		if out, _, err := run(t.Context(), c, sh("echo still here"), ""); err != nil || out != "still here\n" {
			t.Errorf("the connection afterwards: %q, %v", out, err)
		}
	})
}

func TestNothingIsWrittenAfterExecReturned(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &lateWriter{first: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- c.Exec(ctx, Cmd{Line: sh("yes"), Stdout: w}) }()
		<-w.first
		cancel()
		<-done
		w.over.Store(true)
		time.Sleep(100 * time.Millisecond)
		if w.late.Load() {
			t.Error("a writer was used after Exec had returned")
		}
	})
}

type lateWriter struct {
	once       sync.Once
	first      chan struct{}
	over, late atomic.Bool
}

func (w *lateWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.first) })
	if w.over.Load() {
		w.late.Store(true)
	}
	return len(p), nil
}

func TestAPrimedCommandAnswersAfterAnyPause(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	c := borrowed(t, s, "user", Options{Idle: 150 * time.Millisecond})
	r, w := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- c.Exec(t.Context(), Cmd{Line: "read x; echo got $x; read y; echo got $y", Stdin: r, Stdout: &out})
	}()
	for _, q := range []string{"one", "two"} {
		time.Sleep(600 * time.Millisecond) // four times the limit: the command owes nothing
		fmt.Fprintln(w, q)
	}
	w.Close()
	if err := <-done; err != nil || out.String() != "got one\ngot two\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestASilentCommandIsGivenUp(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	c := borrowed(t, s, "user", Options{Idle: 200 * time.Millisecond})
	start := time.Now()
	_, _, err := run(t.Context(), c, "sleep 20", "")
	if !errors.Is(err, ErrTimeout) || time.Since(start) > 8*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	start = time.Now()
	_, _, err = run(t.Context(), c, "sleep 20", strings.Repeat("x", 16<<20))
	if !errors.Is(err, ErrTimeout) || time.Since(start) > 8*time.Second {
		t.Errorf("one that does not read its input: %v after %v", err, time.Since(start))
	}
	if out, _, err := run(t.Context(), c, "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done", ""); err != nil || out != "1\n2\n3\n4\n5\n6\n" {
		t.Errorf("a slow command that moves: %q, %v", out, err)
	}
	if err := c.Exec(t.Context(), Cmd{Line: "sleep 0.6", Idle: -1}); err != nil {
		t.Errorf("a silent command without a limit: %v", err)
	}
}
