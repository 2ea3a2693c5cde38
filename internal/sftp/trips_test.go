package sftp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRoundTrips counts what each operation waits for, with a clock of its own.
func TestRoundTrips(t *testing.T) {
	read := func(n int) func(t *testing.T, fsys *FS) {
		return func(t *testing.T, fsys *FS) {
			if got, err := fsys.ReadFile("/f", 1<<20); err != nil || len(got) != n {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
	}
	holds := func(n int) answers { return holding(strings.Repeat("x", n), int64(n), 1<<20) }
	list := func(t *testing.T, fsys *FS) {
		if _, err := fsys.ReadDir("/d", 10000); err != nil {
			t.Error(err)
		}
	}
	create := func(t *testing.T, fsys *FS) {
		w, err := fsys.Create("/f", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		w.SetModTime(time.Unix(1, 0))
		_, _ = w.Write(make([]byte, 5*chunkBytes))
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	mkdir := func(t *testing.T, fsys *FS) {
		if err := fsys.Mkdir("/d", 0o700); err != nil {
			t.Error(err)
		}
	}
	const inOrder = extFstatvfs
	for name, c := range map[string]struct {
		trips  int
		ext    string
		answer answers
		do     func(t *testing.T, fsys *FS)
	}{
		"an empty file":              {2, "", holds(0), read(0)},
		"a small file":               {2, "", holds(5000), read(5000)},
		"a chunk":                    {2, "", holds(chunkBytes), read(chunkBytes)},
		"almost two chunks":          {2, "", holds(2*chunkBytes - 1), read(2*chunkBytes - 1)},
		"three chunks":               {3, "", holds(3 * chunkBytes), read(3 * chunkBytes)},
		"an empty directory":         {2, "", inBatches(), list},
		"128 entries as OpenSSH's":   {2, "", inBatches(numbered(130, 100)...), list},
		"1000 entries as OpenSSH's":  {3, "", inBatches(numbered(1000, 100)...), list},
		"5000 entries as OpenSSH's":  {6, "", inBatches(numbered(5000, 100)...), list},
		"a file written to OpenSSH":  {2, inOrder, holds(0), create},
		"a file written elsewhere":   {3, "", holds(0), create},
		"a directory with OpenSSH":   {1, inOrder, holds(0), mkdir},
		"a directory made elsewhere": {2, "", holds(0), mkdir},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsys := distant(t, time.Second, []string{c.ext}, c.answer)
				start := time.Now()
				c.do(t, fsys)
				if took := fmt.Sprint(time.Since(start)); took != fmt.Sprint(time.Duration(c.trips)*time.Second) {
					t.Errorf("took %s, want %d round trips of 1s", took, c.trips)
				}
			})
		})
	}
}
