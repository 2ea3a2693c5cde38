//go:build linux

package remote

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
)

// TestReport23Compose11677: people whose server opens one or two sessions on a connection saw
// a tool that opens several fail. What does not fit waits for what is open, by either way.
func TestReport23Compose11677(t *testing.T) {
	for _, sessions := range []int{1, 2} {
		for _, noExec := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d sessions, SFTP alone %v", sessions, noExec), func(t *testing.T) {
				s := opensshTarget(t, fmt.Sprint("MaxSessions ", sessions))
				c, err := Open(s.conn, Options{Dir: sftpDir, NoExec: noExec})
				must(t, err)
				b := plainSkill().pin(t, "release")
				w := &wayTest{t: t, c: c, home: s.home, root: s.cache()}
				w.result(b, Published)
				w.result(b, Present)
				// As many as take several commands, which are under way at once.
				digests := append([]bundle.Digest{b.Manifest.Digest()}, someDigests(400)...)
				copies, err := c.Check(t.Context(), digests...)
				must(t, err)
				if len(copies) != len(digests) || copies[0].State != Whole || copies[400].State != Absent {
					t.Errorf("%d copies, the first %+v", len(copies), copies[0])
				}
				if p, err := c.Probe(t.Context()); err != nil || p.Class != map[bool]string{false: "exec", true: "sftp"}[noExec] || p.Files != nil || p.Latency <= 0 {
					t.Errorf("a probe: %+v, %v", p, err)
				}
			})
		}
	}
	t.Run("none left", func(t *testing.T) {
		s := opensshTarget(t, "MaxSessions 0")
		c, err := Open(s.conn, Options{Dir: sftpDir})
		must(t, err)
		_, err = c.Publish(t.Context(), plainSkill().pin(t, "release"))
		if !errors.Is(err, transport.ErrRefused) || transport.Hint(err) == "" {
			t.Errorf("%v; hint %q", err, transport.Hint(err))
		}
		if found, _ := filepath.Glob(filepath.Join(s.home, "*")); len(found) > 0 {
			t.Errorf("it made %v", found)
		}
	})
}

// someDigests are digests of nothing.
func someDigests(n int) []bundle.Digest {
	all := make([]bundle.Digest, n)
	for i := range all {
		all[i] = bundle.Digest{byte(i), byte(i >> 8), 1}
	}
	return all
}
