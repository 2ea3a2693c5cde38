package sshconfig

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

// quiet is a question about host.
func quiet(host string) Query { return Query{Host: host, Log: slog.New(slog.DiscardHandler)} }

// heard is the answer of one host.
func heard(host string) *answer {
	return &answer{raw: map[string][]string{"hostname": {host}, "port": {"22"}, "user": {"u"}, "setenv": {"A=1"}}, sources: []string{"f"}}
}

func TestAnAnswerIsRememberedForAWhileAndPerQuestion(t *testing.T) {
	now := time.Unix(1000, 0)
	var asked int
	r := Resolver{now: func() time.Time { return now }, ask: func(_ context.Context, q Query) (*answer, error) {
		asked++
		return heard(q.Host), nil
	}}
	resolve := func(q Query, want int) *Settings {
		t.Helper()
		s, err := r.Resolve(t.Context(), q)
		if err != nil || s.Host != q.Host || asked != want {
			t.Fatalf("%+v, %v; asked %d times, want %d", s, err, asked, want)
		}
		return s
	}
	s := resolve(quiet("a"), 1)
	s.SetEnv[0], s.Sources[0] = "spoilt", "spoilt" // the caller's own
	if s := resolve(quiet("a"), 1); s.SetEnv[0] != "A=1" || s.Sources[0] != "f" {
		t.Errorf("one caller's settings are another's: %+v", s)
	}
	other := []func(q *Query){
		func(q *Query) { q.Host = "b" }, func(q *Query) { q.User = "b" }, func(q *Query) { q.Port = 1 },
		func(q *Query) { q.ConfigFile = "f" }, func(q *Query) { q.IdentityFiles = []string{"a b"} },
		func(q *Query) { q.IdentityFiles = []string{"a", "b"} }, func(q *Query) { q.Options = []string{"a=b"} },
		func(q *Query) { q.Home = "/h" },
	}
	for i, change := range other {
		q := quiet("a")
		change(&q)
		resolve(q, i+2)
	}
	now = now.Add(Remember - 1)
	resolve(quiet("a"), 1+len(other))
	now = now.Add(1)
	resolve(quiet("a"), 2+len(other))
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	bad := errors.New("bad")
	err := bad
	r := Resolver{ask: func(context.Context, Query) (*answer, error) { return heard("a"), err }}
	if _, got := r.Resolve(t.Context(), quiet("a")); !errors.Is(got, bad) {
		t.Fatal(got)
	}
	err = nil
	if _, got := r.Resolve(t.Context(), quiet("a")); got != nil {
		t.Error(got)
	}
}

func TestAResolverDoesNotGrowForEver(t *testing.T) {
	r := Resolver{ask: func(_ context.Context, q Query) (*answer, error) { return heard(q.Host), nil }}
	for i := range 3 * maxAnswers {
		q := quiet("a")
		q.Port = i + 1
		if _, err := r.Resolve(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.answers) > maxAnswers {
		t.Errorf("%d answers are kept", len(r.answers))
	}
}

func TestEqualQuestionsAreAskedOnceAndEachWaitsForItself(t *testing.T) {
	var asked atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	r := Resolver{ask: func(ctx context.Context, q Query) (*answer, error) {
		if asked.Add(1) == 1 {
			close(begun)
		}
		select {
		case <-release:
			return heard(q.Host), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := r.Resolve(ctx, quiet("a"))
		left <- err
	}()
	<-begun
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if s, err := r.Resolve(t.Context(), quiet("a")); err != nil || s.Host != "a" {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	for r.waiting("a") < 21 {
		time.Sleep(time.Millisecond)
	}
	leave() // the first who asked; the others still want to know
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the one who left: %v", err)
	}
	close(release)
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func (r *Resolver) waiting(host string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.answers[quiet(host).key()]; a != nil {
		return a.waiting
	}
	return 0
}

func TestNobodysQuestionIsGivenUp(t *testing.T) {
	stopped, begun, linger := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	r := Resolver{ask: func(ctx context.Context, q Query) (*answer, error) {
		if asked.Add(1) > 1 {
			return heard(q.Host), nil
		}
		close(begun)
		<-ctx.Done()
		close(stopped)
		<-linger // a program may take its time to end
		return nil, ctx.Err()
	}}
	defer close(linger)
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-begun; leave() }()
	if _, err := r.Resolve(ctx, quiet("a")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-stopped:
	case <-time.After(30 * time.Second):
		t.Fatal("it is still being asked")
	}
	within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := r.Resolve(within, quiet("a")); err != nil {
		t.Errorf("the next one waits for what was given up: %v", err)
	}
}

// program makes the PATH lead to a program named ssh that is this shell script.
func program(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a POSIX shell")
	}
	dir := t.TempDir()
	write(t, dir+"/ssh", "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(dir+"/ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

func TestABrokenProgramIsToldWithWhatMendsIt(t *testing.T) {
	for name, script := range map[string]string{
		"a missing library":   "echo 'error while loading shared libraries: libcrypto.so.3' >&2; exit 127",
		"nothing is printed":  "exit 0",
		"another program":     "echo 'usage: ssh [-abc]' >&2; exit 1",
		"another answer":      "echo 'hello world'",
		"too much is printed": "yes hostname | head -c 2000000",
		"killed":              "kill -9 $$",
	} {
		t.Run(name, func(t *testing.T) {
			program(t, script)
			_, err := Resolve(t.Context(), quiet("dev"))
			var broken *BrokenError
			if !errors.As(err, &broken) || !filepath.IsAbs(broken.Path) || !strings.Contains(broken.Hint(), "OpenSSH") || len(err.Error()) > 1000 {
				t.Errorf("got %v", err)
			}
			if name == "a missing library" && !strings.Contains(err.Error(), "libcrypto") {
				t.Errorf("what it said is lost: %v", err)
			}
		})
	}
	t.Run("not a program", func(t *testing.T) {
		program(t, "")
		dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
		write(t, dir+"/ssh", "\x7fELF no more")
		var broken *BrokenError
		if _, err := Resolve(t.Context(), quiet("dev")); !errors.As(err, &broken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAProgramOfTheWorkingDirectoryIsNotRun(t *testing.T) {
	program(t, "touch ran; echo hostname x; echo port 22")
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	t.Chdir(dir)
	t.Setenv("PATH", ".:/nowhere")
	_, err := Resolve(t.Context(), quiet("dev"))
	var broken *BrokenError
	if !errors.Is(err, exec.ErrDot) || !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "PATH") {
		t.Errorf("got %v", err)
	}
	if exists("ran") {
		t.Error("it was run")
	}
}

func TestAnErrorOfSSHIsReadableAmongItsDebugging(t *testing.T) {
	program(t, `i=0
echo "OpenSSH_9.2p1 Debian, OpenSSL 3" >&2
while [ $i -lt 3000 ]; do echo "debug1: line $i" >&2; i=$((i+1)); done
printf 'config line 3: Bad thing \033[31m\r\n' >&2; exit 255`)
	_, err := Resolve(t.Context(), quiet("dev"))
	if err == nil || !strings.Contains(err.Error(), "config line 3: Bad thing") || strings.Contains(err.Error(), "debug1") ||
		strings.ContainsAny(err.Error(), "\x1b\n") || strings.Contains(err.Error(), "OpenSSH_9.2p1") {
		t.Errorf("got %v", err)
	}
	var broken *BrokenError
	if errors.As(err, &broken) {
		t.Errorf("the program is blamed for the configuration: %v", err)
	}
}

func TestAProgramThatHangsIsGivenUp(t *testing.T) {
	program(t, "exec sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var r Resolver
	if _, err := r.Resolve(ctx, quiet("dev")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTheDiarysSizeIsBounded(t *testing.T) {
	var d diary
	long := strings.Repeat("x", 10*maxDiaryLine)
	for range 1000 {
		_, _ = d.Write([]byte("debug1: Reading configuration data \x1b[2J" + long + "\n"))
		_, _ = d.Write([]byte("debug1: " + long[:10] + " line 1: Applying options for " + long))
		_, _ = d.Write([]byte("\n"))
	}
	for i := range 1000 {
		d.sources.add(strings.Repeat("y", i))
	}
	if len(d.sources.list) != maxSources || cap(d.line) > 2*maxDiaryLine {
		t.Errorf("%d sources, a line of %d bytes", len(d.sources.list), cap(d.line))
	}
	for _, s := range d.sources.list {
		if len(s) > 1000 || strings.Contains(s, "\x1b") {
			t.Errorf("a source of %d bytes: %.50q", len(s), s)
		}
	}
}

func TestAConfigurationIsAskedOfSSHOnce(t *testing.T) {
	program(t, `echo x >> "$COUNT"; echo hostname h; echo port 22; echo user u`)
	count := filepath.Join(t.TempDir(), "count")
	t.Setenv("COUNT", count)
	var r Resolver
	for range 3 {
		if s, err := r.Resolve(t.Context(), quiet("dev")); err != nil || s.Host != "h" {
			t.Fatalf("%+v, %v", s, err)
		}
	}
	if text, err := os.ReadFile(count); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
}
