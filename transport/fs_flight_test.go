package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/punnet/punnet/transport/transporttest"
)

func TestManyFilesAreInFlightAtOnce(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				p := fmt.Sprintf("%s/f%d", root, i)
				data := strings.Repeat(fmt.Sprint(i, " "), 20000)
				w, err := fsys.Create(p, 0o600)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.WriteString(w, data)
				if err := errors.Join(err, w.Close()); err != nil {
					t.Error(err)
				}
				if got, err := fsys.ReadFile(p, 1<<20); err != nil || string(got) != data {
					t.Errorf("file %d: %d bytes, %v", i, len(got), err)
				}
			})
		}
		wg.Wait()
	})
}

func TestAViewEndsWithItsContext(t *testing.T) {
	for name, c := range map[string]Conn{
		"local": Local(), "in-process": borrowed(t, startServer(t, transporttest.Options{}), "user", Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			ctx, cancel := context.WithCancel(t.Context())
			fsys, err := c.Files(ctx)
			if err != nil {
				t.Fatal(err)
			}
			w, err := fsys.Create(dir+"/f", 0o600)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			_, err = fsys.Lstat(dir)
			wantIs(t, "lstat", err, context.Canceled)
			_, err = w.Write([]byte("late"))
			wantIs(t, "write", err, context.Canceled)
			if err := w.Close(); err == nil {
				t.Error("Close said that everything arrived")
			}
			if fsys, err = c.Files(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Lstat(dir); err != nil {
				t.Errorf("another view: %v", err)
			}
		})
	}
}

func TestPublishingByFilesCostsFewRoundTrips(t *testing.T) {
	const delay = 40 * time.Millisecond
	s := startServer(t, transporttest.Options{Faults: transporttest.Faults{Delay: delay}})
	c := borrowed(t, s, "user", Options{})
	fsys := view(t, c)
	dir := s.Home("user")
	start := time.Now()
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			w, err := fsys.Create(fmt.Sprintf("%s/f%d", dir, i), 0o600)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = w.Write(bytes.Repeat([]byte{'x'}, 4000))
			if err := errors.Join(err, w.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Two round trips: the opens, and then permissions, data and close together.
	if took := time.Since(start); took > 7*delay {
		t.Errorf("64 files took %v, %.1f round trips of %v", took, float64(took)/float64(2*delay), 2*delay)
	}
}
