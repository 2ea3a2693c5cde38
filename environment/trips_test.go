package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

const tripDelay = 100 * time.Millisecond // of each direction

// trips returns how many round trips f takes on a connection that is open, in a process that opens a
// conversation and knows of others what they recorded; believed says whether also what they published.
func (l *lab) trips(id string, believed bool, f func(session.Config, *session.Conversation) error) float64 {
	l.t.Helper()
	ctx := context.Background()
	conn, err := l.o.Dial(ctx, transport.Target{Host: "dev"})
	if err != nil {
		l.t.Fatal(err)
	}
	o := l.o
	o.Believed = func(transport.Target, bundle.Digest) bool { return believed }
	cfg := l.cfg
	cfg.Reach = func(_ context.Context, t session.Target) (session.Environment, error) { return New(conn, t, o) }
	c, err := session.Open(ctx, cfg, id)
	if err != nil {
		l.t.Fatal(err)
	}
	start := time.Now()
	err = f(cfg, c)
	took := time.Since(start)
	if err := errors.Join(err, c.Close(), conn.Close()); err != nil {
		l.t.Fatal(err)
	}
	return float64(took) / float64(2*tripDelay)
}

// The figures of the package documentation.
func TestWhatAConversationDoesTakesFewRoundTrips(t *testing.T) {
	ctx := context.Background()
	load := func(name string) func(session.Config, *session.Conversation) error {
		return func(_ session.Config, c *session.Conversation) error {
			_, err := c.Load(ctx, name)
			return err
		}
	}
	for what, c := range map[string]struct {
		most     float64
		believed bool // what is loaded before is there, and known to be
		f        func(session.Config, *session.Conversation) error
	}{
		"start": {2, false, func(cfg session.Config, _ *session.Conversation) error {
			_, err := session.Start(ctx, cfg, "", session.Target{Host: "dev"}, "") // closed with the connection
			return err
		}},
		"catalog": {2, false, func(_ session.Config, c *session.Conversation) error {
			_, err := c.Catalog(ctx)
			return err
		}},
		"load of the host's":               {5, false, load("release")},
		"load of the host's that is there": {4, true, load("release")},
		"load of the environment's":        {14, false, load("quokka")},
		"prompt": {2, true, func(_ session.Config, c *session.Conversation) error {
			p, err := c.Prompt(ctx, session.PromptOptions{})
			if len(p.Active) != 3 {
				return errors.Join(err, errors.New("not all is loaded"))
			}
			return err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			l := newLab(t, "berry")
			home := l.server.Home("dev")
			l.skill(filepath.Join(home, "w/.agents/skills"), "quokka", "feed it")
			conv := l.start("dev", filepath.Join(home, "w"))
			for _, name := range []string{"release", "review", "deploy"} {
				l.skill(filepath.Join(l.home, ".config/berry/skills"), name, "text")
				if c.believed {
					l.command(conv, "/skill "+name)
				}
			}
			got := 0.0
			for range 4 { // a machine that is busy adds to what the link takes
				l.server.SetFaults(transporttest.Faults{Delay: tripDelay})
				got = l.trips(conv.ID(), c.believed, c.f)
				l.server.SetFaults(transporttest.Faults{})
				if got < c.most+1 {
					t.Logf("%.2f round trips", got)
					return
				}
				if !c.believed {
					if err := os.RemoveAll(filepath.Join(home, ".cache")); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Errorf("it took %.1f round trips; want %.0f", got, c.most)
		})
	}
}
