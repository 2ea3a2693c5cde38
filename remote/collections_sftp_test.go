//go:build linux

package remote

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

func TestWithoutCommandsCollectionsAreReadBySFTP(t *testing.T) {
	for name, account := range map[string]transporttest.Account{"no exec": {NoExec: true}, "refused": {RefuseExec: true}} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			account.Name = "user"
			s, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{account}})
			must(t, err)
			defer s.Close()
			client, err := s.Client(t.Context(), "user")
			must(t, err)
			conn := transport.NewConn(client, transport.Options{})
			defer conn.Close()
			q := plainSkills(t, s.Home("user"))
			c := openCache(t, conn, Options{})
			l, err := c.Collections(t.Context(), q)
			must(t, err)
			sameListing(t, l, localListing(t, s.Home("user"), q))
			if c.Class() != "sftp" {
				t.Errorf("the class is %q", c.Class())
			}
		})
	}
}

func TestAToolThatIsMissingMeansSFTP(t *testing.T) {
	conn, home := newShellConn(t)
	q := hostileSkills(t, home)
	want := localListing(t, home, q)
	conn.only, conn.env["PATH"] = true, newUserland(t).link("od").dir
	c := openCache(t, conn, Options{})
	l, err := c.Collections(t.Context(), q)
	must(t, err)
	sameListing(t, l, want)
	conn.noFiles = true
	if _, err := openCache(t, conn, Options{}).Collections(t.Context(), q); !errors.Is(err, ErrNoAccess) || !errors.Is(err, ErrTools) {
		t.Errorf("without SFTP the error is %v", err)
	}
}

func TestAQuestionTooLongForACommandIsAskedBySFTP(t *testing.T) {
	conn, home := newShellConn(t)
	w := skillTree{t, home}
	deep := strings.Repeat(strings.Repeat("é", 100)+"/", 8)
	w.put(deep+".agents/skills/s/SKILL.md", plainFront)
	q := discovery.Query{Dir: filepath.Join(home, deep), Roots: []discovery.Root{{Path: ".agents/skills", Entries: 9}}}
	want := localListing(t, home, q)
	if len(want.Collections) != 1 {
		t.Fatalf("%+v", want)
	}
	c := openCache(t, conn, Options{})
	l, err := c.Collections(t.Context(), q)
	must(t, err)
	sameListing(t, l, want)
	if conn.commands.Load() != 0 {
		t.Error("a command was run")
	}
}
