package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport/transporttest"
)

func TestManyCommandsShareFourChannels(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				out, _, err := run(t.Context(), c, sh(fmt.Sprint("cat; echo ", i)), "in ")
				if want := fmt.Sprintf("in %d\n", i); err != nil || out != want {
					t.Errorf("command %d: %q, %v", i, out, err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAtMostFourChannelsAreOpenAtATime(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	c := borrowed(t, s, "user", Options{})
	dir := tempDir(t)
	var wg sync.WaitGroup
	for i := range 3 * MaxChannels {
		wg.Go(func() {
			line := fmt.Sprintf("mkdir %s/%d; ls %s | wc -l; sleep 0.1; rmdir %s/%d", dir, i, dir, dir, i)
			out, _, err := run(t.Context(), c, line, "")
			var n int
			fmt.Sscan(out, &n)
			if err != nil || n > MaxChannels {
				t.Errorf("%d commands at a time, %v", n, err)
			}
		})
	}
	wg.Wait()
}

func TestAnAccountWithoutCommandsSaysSo(t *testing.T) {
	s := startServer(t, transporttest.Options{Accounts: []transporttest.Account{
		{Name: "refuses", RefuseExec: true}, {Name: "sftponly", NoExec: true}, {Name: "nofiles", NoFiles: true, Noise: "go away\n"},
	}})
	_, _, err := run(t.Context(), borrowed(t, s, "refuses", Options{}), "echo hi", "")
	if !errors.Is(err, ErrNoExec) {
		t.Errorf("refused: %v", err)
	}
	out, _, err := run(t.Context(), borrowed(t, s, "sftponly", Options{}), "echo hi", "")
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Status != 1 || !strings.Contains(out, "sftp connections only") {
		t.Errorf("sftp only: %q, %v", out, err)
	}
	if _, err := borrowed(t, s, "sftponly", Options{}).Files(t.Context()); err != nil {
		t.Errorf("sftp only, files: %v", err)
	}
	if _, err := borrowed(t, s, "nofiles", Options{}).Files(t.Context()); !errors.Is(err, ErrNoFiles) {
		t.Errorf("no files: %v", err)
	}
}

func TestNoiseOfALoginShellDoesNotBreakFiles(t *testing.T) {
	s := startServer(t, transporttest.Options{Accounts: []transporttest.Account{
		{Name: "noisy", Noise: "Welcome!\n\x00\x00\x00\x05\x02\x00\x00\x00\x04\x1b[31m"},
		{Name: "brim", Noise: strings.Repeat("x", MaxNoise)},
		{Name: "flood", Noise: strings.Repeat("x", MaxNoise+1)},
	}})
	for _, name := range []string{"noisy", "brim"} {
		fsys := view(t, borrowed(t, s, name, Options{}))
		if got, err := fsys.RealPath("."); err != nil || got != s.Home(name) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_, err := borrowed(t, s, "flood", Options{}).Files(t.Context())
	if !errors.Is(err, ErrNoFiles) || !errors.Is(err, ErrProtocol) || len(err.Error()) > 2*display.SaidBytes {
		t.Errorf("flood: %v", err)
	}
}

func TestAClosedConnRefusesEverything(t *testing.T) {
	eachConn(t, func(t *testing.T, c Conn) {
		r, w := io.Pipe()
		defer w.Close()
		started := &signalWriter{c: make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- c.Exec(t.Context(), Cmd{Line: sh("echo ready; cat"), Stdin: r, Stdout: started}) }()
		<-started.c
		fsys, err := c.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("the command under way: %v", err)
		}
		if _, _, err := run(t.Context(), c, "echo hi", ""); !errors.Is(err, ErrClosed) {
			t.Errorf("another command: %v", err)
		}
		if _, err := c.Files(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("files: %v", err)
		}
		_, err = fsys.Lstat("/")
		wantIs(t, "a view from before", err, ErrClosed)
		if err := c.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}
