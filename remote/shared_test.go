//go:build unix

package remote

import (
	"bufio"
	"fmt"
	"testing"
	"time"

	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// TestAPushOverASharedConnectionDoesNotStarveIt has a harness's own session ask and be answered, over
// and over, while megabytes are published over its connection, by either way.
func TestAPushOverASharedConnectionDoesNotStarveIt(t *testing.T) {
	b := noiseSkill(6<<20).pin(t, "release")
	for _, noExec := range []bool{false, true} {
		t.Run(fmt.Sprintf("SFTP alone %v", noExec), func(t *testing.T) {
			s, err := transporttest.Start(transporttest.Options{Dir: sftpTemp(t), Faults: transporttest.Faults{Delay: 5 * time.Millisecond}})
			must(t, err)
			defer s.Close()
			client, err := s.Client(t.Context(), "user")
			must(t, err)
			defer client.Close()
			own, err := client.NewSession()
			must(t, err)
			defer own.Close()
			in, err := own.StdinPipe()
			must(t, err)
			out, err := own.StdoutPipe()
			must(t, err)
			must(t, own.Start("cat"))

			conn := transport.NewConn(client, transport.Options{})
			defer conn.Close()
			c, err := Open(conn, Options{Dir: sftpDir, NoExec: noExec})
			must(t, err)
			published := make(chan error, 1)
			go func() {
				results, err := c.Publish(t.Context(), b)
				if err == nil && results[0].Outcome != Published {
					err = fmt.Errorf("%+v", results[0])
				}
				published <- err
			}()
			answers, lines := 0, bufio.NewScanner(out)
			for done := false; !done; {
				fmt.Fprintln(in, "are you there?")
				if !lines.Scan() {
					t.Fatalf("the harness's session ended: %v", lines.Err())
				}
				select {
				case err := <-published:
					must(t, err)
					done = true
				default:
					answers++
				}
			}
			if answers < 3 {
				t.Errorf("%d answers while the bundle went out", answers)
			}
			if n := s.MostSessions(); n > transport.MaxChannels+1 {
				t.Errorf("%d channels at a time beside the harness's own", n-1)
			}
		})
	}
}
