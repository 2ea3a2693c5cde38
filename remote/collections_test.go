//go:build linux

package remote

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/transport"
)

// localListing is what this machine says of its own files.
func localListing(t *testing.T, home string, q discovery.Query) *discovery.Listing {
	t.Helper()
	t.Setenv("HOME", home)
	conn := transport.Local()
	defer conn.Close()
	files, err := conn.Files(t.Context())
	must(t, err)
	l, err := discovery.Read(t.Context(), files, q)
	must(t, err)
	return l
}

// sameListing holds one listing to another.
func sameListing(t testing.TB, got, want *discovery.Listing) {
	t.Helper()
	if got == nil {
		t.Fatal("there is no listing")
	}
	where := func(l *discovery.Listing) string {
		return fmt.Sprintf("home %q dir %q repository %q problem %q", l.Home, l.Dir, l.Repository, l.Problem)
	}
	if where(got) != where(want) {
		t.Errorf("it is said %s\nwant %s", where(got), where(want))
	}
	paths := func(l *discovery.Listing) (all []string) {
		for _, c := range l.Collections {
			all = append(all, fmt.Sprint(c.Root, " ", c.Path))
		}
		return all
	}
	if !slices.Equal(paths(got), paths(want)) {
		t.Fatalf("the collections are %q\nwant %q", paths(got), paths(want))
	}
	for i := range want.Collections {
		g, w := got.Collections[i], want.Collections[i]
		entries := make(map[string]discovery.Entry)
		for _, e := range w.Entries {
			entries[e.Name] = e
		}
		for j, e := range g.Entries {
			if j < len(w.Entries) && w.Entries[j].Name != e.Name {
				t.Errorf("%q: entry %d is %q, want %q", g.Path, j, e.Name, w.Entries[j].Name)
			}
			x, ok := entries[e.Name]
			delete(entries, e.Name)
			if string(e.Head) != string(x.Head) {
				t.Errorf("%q: %q has the head %.200q of %d, want %.200q of %d", g.Path, e.Name, e.Head, len(e.Head), x.Head, len(x.Head))
			}
			e.Head, x.Head = nil, nil
			if !ok || !reflect.DeepEqual(e, x) {
				t.Errorf("%q: it has %+q\nwant %+q", g.Path, fmt.Sprintf("%+v", e), fmt.Sprintf("%+v", x))
			}
		}
		for name := range entries {
			t.Errorf("%q: %q is missing", g.Path, name)
		}
		g.Entries, w.Entries = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("the collection is %+v\nwant %+v", g, w)
		}
	}
}

func listCollections(t testing.TB, conn transport.Conn, o Options, q discovery.Query) *discovery.Listing {
	t.Helper()
	c := openCache(t, conn, o)
	l, err := c.Collections(t.Context(), q)
	must(t, err)
	if want := map[bool]string{false: "exec", true: "sftp"}[o.NoExec]; c.Class() != want {
		t.Errorf("the class is %q, want %q", c.Class(), want)
	}
	return l
}

func TestBothWaysListTheSameCollections(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		q := hostileSkills(t, s.home)
		want := localListing(t, s.home, q)
		if n := len(want.Collections); n < 20 || len(want.Collections[3].Entries) < 100 {
			t.Fatalf("the tree has %d collections, want more", n)
		}
		sameListing(t, listCollections(t, s.conn, Options{}, q), want)
		if strings.HasSuffix(t.Name(), "in-process") {
			// Its SFTP follows no links, as that of some servers.
			q = plainSkills(t, s.home)
			want = localListing(t, s.home, q)
		}
		sameListing(t, listCollections(t, s.conn, Options{NoExec: true}, q), want)
	})
}

func TestEveryLoginShellPassesTheQuestionOn(t *testing.T) {
	conn, home := newShellConn(t)
	q := hostileSkills(t, home)
	want := localListing(t, home, q)
	for _, name := range loginShells {
		t.Run(name, func(t *testing.T) {
			conn.login = []string{shellNamed(t, name, name == "busybox")}
			sameListing(t, listCollections(t, conn, Options{}, q), want)
		})
	}
}

func TestEveryShellAndUserlandAndAwkListsTheSame(t *testing.T) {
	_, home := newShellConn(t)
	q := hostileSkills(t, home)
	want := localListing(t, home, q)
	nowhere := discovery.Query{Roots: []discovery.Root{{Path: "~/many", Entries: 20}, {Path: ".agents/skills", Entries: 9}}}
	wantNowhere := localListing(t, home, nowhere)
	atHome := discovery.Query{Dir: discovery.Home, Roots: []discovery.Root{{Path: "many", Walk: true, Entries: 20}}}
	wantAtHome := localListing(t, home, atHome)
	gnu := func(t testing.TB) userland { return newUserland(t).link() }
	with := func(name string) func(testing.TB) userland {
		return func(t testing.TB) userland {
			u := newUserland(t).link("awk")
			u.put("awk", shellNamed(t, name, false))
			return u
		}
	}
	without := func(names ...string) func(testing.TB) userland {
		return func(t testing.TB) userland { return newUserland(t).link(names...) }
	}
	cases := []struct {
		name, sh string
		land     func(testing.TB) userland
	}{
		{"busybox", "busybox", busyboxland}, {"dash-busybox", "dash", busyboxland}, {"zsh-bsd", "zsh", bsdland},
		{"mawk", "dash", with("mawk")}, {"gawk", "dash", with("gawk")}, {"original-awk", "dash", with("original-awk")},
		{"no awk", "dash", without("awk")}, {"no gzip", "dash", without("gzip")}, {"no stat", "dash", without("stat")},
		{"nothing", "dash", without("stat", "gzip", "awk")},
		{"tearing awk", "dash", func(t testing.TB) userland {
			u := newUserland(t).link("awk")
			u.wrap("awk", `/usr/bin/awk "$@" | /usr/bin/cut -c -1000`)
			return u
		}},
	}
	for _, sh := range shells {
		cases = append(cases, struct {
			name, sh string
			land     func(testing.TB) userland
		}{sh, sh, gnu})
	}
	for _, c := range cases {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			conn, _ := newShellConn(t)
			conn.env["HOME"] = home
			conn.sh, conn.only = shellNamed(t, c.sh, true), true
			conn.env["PATH"] = c.land(t).dir
			sameListing(t, listCollections(t, conn, Options{}, q), want)
			sameListing(t, listCollections(t, conn, Options{}, nowhere), wantNowhere)
			sameListing(t, listCollections(t, conn, Options{}, atHome), wantAtHome)
		})
	}
}

func TestHomeIsAskedAboutAsAWorkingDirectoryByBothWays(t *testing.T) {
	onSFTPTargets(t, func(t *testing.T, s *sftpTarget) {
		plainSkills(t, s.home)
		w := skillTree{t, s.home}
		w.dir("repo/~/skills/no-home")
		q := discovery.Query{Dir: discovery.Home, Roots: []discovery.Root{
			{ID: 3, Path: "repo/.agents/skills", Walk: true, Entries: 100}, {ID: 1, Path: "~/repo/.agents/skills", Entries: 100},
		}}
		for _, repository := range []string{"", s.home} {
			if repository != "" {
				w.dir(".git")
			}
			want := localListing(t, s.home, q)
			if want.Dir != want.Home || len(want.Collections) != 2 || want.Repository != repository {
				t.Fatalf("here it is %q in %q with %d collections", want.Dir, want.Repository, len(want.Collections))
			}
			sameListing(t, listCollections(t, s.conn, Options{}, q), want)
			sameListing(t, listCollections(t, s.conn, Options{NoExec: true}, q), want)
		}
	})
	conn, home := newShellConn(t)
	conn.env["HOME"] = home + "/gone"
	l := listCollections(t, conn, Options{}, discovery.Query{Dir: discovery.Home})
	if l.Dir != home+"/gone" || l.Problem != discovery.NoDirectory {
		t.Errorf("a home that is not there is said to be %q, %q", l.Dir, l.Problem)
	}
}

func TestNoiseAroundTheAnswerIsNotTheAnswer(t *testing.T) {
	conn, home := newShellConn(t)
	q := hostileSkills(t, home)
	want := localListing(t, home, q)
	for name, text := range map[string]string{
		"before": "echo hello; printf 'Last login: '", "NUL": `printf "\0\0\n"`, "binary": `printf "\037\213\010\n"`,
		"after": `trap "echo bye; printf more" 0; eval "$2"; exit; :`,
	} {
		t.Run(name, func(t *testing.T) {
			conn.login = []string{"/bin/bash", "-c", text + `; eval "$2"`, "bash"}
			conn.fix = nil
			if name == "after" {
				conn.fix = func(cmd *transport.Cmd) { cmd.Line = strings.Replace(cmd.Line, "exec /bin/sh", "/bin/sh", 1) }
			}
			sameListing(t, listCollections(t, conn, Options{}, q), want)
		})
	}
}
