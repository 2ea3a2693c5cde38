//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
	"github.com/punnet/punnet/transport"
)

func TestWhatAnAccountMayNotReadIsSaid(t *testing.T) {
	needRoot(t)
	conn, home := newPlainConn(t)
	w := skillTree{t, home}
	w.put(".agents/skills/ok/SKILL.md", plainFront)
	must(t, os.Chmod(w.put(".agents/skills/file/SKILL.md", plainFront), 0))
	w.put(".agents/skills/dir/SKILL.md", plainFront)
	w.put("shut/SKILL.md", "x")
	w.put("below/skills/x/SKILL.md", "x")
	give(t, home)
	must(t, os.Chmod(filepath.Join(home, ".agents/skills/dir"), 0))
	must(t, os.Chmod(filepath.Join(home, "shut"), 0o311))
	must(t, os.Chmod(filepath.Join(home, "below"), 0))
	q := discovery.Query{Dir: filepath.Join(home, "below/skills"), Roots: []discovery.Root{
		{ID: 0, Path: "~/.agents/skills", Entries: 9}, {ID: 1, Path: "~/shut", Entries: 9}, {ID: 2, Path: "~/below/skills", Entries: 9}, {ID: 3, Path: "x", Entries: 1},
	}}
	skills := filepath.Join(home, ".agents/skills")
	sameListing(t, listCollections(t, conn, Options{}, q), &discovery.Listing{
		Home: home, Dir: q.Dir, Problem: discovery.Unreadable,
		Collections: []discovery.Collection{
			{Path: skills, Real: skills, Entries: []discovery.Entry{
				{Name: "dir", Real: skills + "/dir", Problem: discovery.Unreadable},
				{Name: "file", Real: skills + "/file", Size: int64(len(plainFront)), Problem: discovery.Unreadable},
				{Name: "ok", Real: skills + "/ok", Size: int64(len(plainFront)), Head: []byte(plainFront)},
			}},
			{Root: 1, Path: home + "/shut", Real: home + "/shut", Problem: discovery.Unreadable},
			{Root: 2, Path: home + "/below/skills", Real: home + "/below/skills", Problem: discovery.Unreadable},
		},
	})
	// What can be read and not entered, as a working directory and as a collection.
	must(t, os.Chmod(filepath.Join(home, "shut"), 0o444))
	q = discovery.Query{Dir: filepath.Join(home, "shut"), Roots: []discovery.Root{{ID: 0, Path: "x", Entries: 9}, {ID: 1, Path: "~/shut", Entries: 9}}}
	sameListing(t, listCollections(t, conn, Options{}, q), &discovery.Listing{
		Home: home, Dir: q.Dir, Problem: discovery.Unreadable,
		Collections: []discovery.Collection{{Root: 1, Path: q.Dir, Real: q.Dir, Problem: discovery.Unreadable}},
	})
}

func TestAListingIsBoundedAlikeByBothWays(t *testing.T) {
	conn, home := newShellConn(t)
	w := skillTree{t, home}
	open := "---\n" + strings.Repeat("x", skill.MaxFileBytes-4)
	for i := range 140 {
		w.put(fmt.Sprintf(".agents/skills/%03d/SKILL.md", i), open)
	}
	q := discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 256}, {ID: 1, Path: "~/.agents/skills", Entries: 256}}}
	want := localListing(t, home, q)
	if e := want.Collections[1].Entries[139]; e.Problem != discovery.ListingFull {
		t.Fatalf("the last entry is %q", e.Problem)
	}
	sameListing(t, listCollections(t, conn, Options{}, q), want)
	conn.only, conn.env["PATH"] = true, newUserland(t).link("awk").dir
	sameListing(t, listCollections(t, conn, Options{}, q), want)
}

func TestAFileThatChangesIsNeverWronglyRead(t *testing.T) {
	conn, home := newShellConn(t)
	w := skillTree{t, home}
	u := newUserland(t).link("stat")
	file := w.put(".agents/skills/s/SKILL.md", "---\nname: one\n")
	q := discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 9}}}
	conn.only, conn.env["PATH"] = true, u.dir
	for name, change := range map[string]string{
		"grown":  "printf 'more: x\n' >>" + quoted(file),
		"shrunk": "printf -- '---\n' >" + quoted(file),
		"gone":   "rm -f " + quoted(file),
	} {
		t.Run(name, func(t *testing.T) {
			w.put(".agents/skills/s/SKILL.md", "---\nname: one\n")
			u.wrap("stat", `/usr/bin/stat "$@"; [ -e `+quoted(home+"/changed"+name)+` ] && exit; : >`+quoted(home+"/changed"+name)+"; "+change)
			sameListing(t, listCollections(t, conn, Options{}, q), localListing(t, home, q))
			if n := conn.commands.Load(); n < 2 {
				t.Errorf("%d commands: nothing was read again", n)
			}
		})
	}
}

func TestACollectionOfTenThousandIsCutInByteOrder(t *testing.T) {
	conn, home := newShellConn(t)
	for i := range 10_000 {
		must(t, os.MkdirAll(filepath.Join(home, fmt.Sprintf(".agents/skills/%05d", i*7919%10_000)), 0o755))
	}
	for _, i := range []int{0, 255, 256, 9999} {
		skillTree{t, home}.put(fmt.Sprintf(".agents/skills/%05d/SKILL.md", i), plainFront)
	}
	q := discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 256}}}
	l := listCollections(t, conn, Options{}, q)
	sameListing(t, l, localListing(t, home, q))
	if c := l.Collections[0]; len(c.Entries) != 2 || !c.More {
		t.Errorf("%d entries, more %v", len(c.Entries), c.More)
	}
}

func TestWithoutAHomeThatIsOneTheStartIsHome(t *testing.T) {
	conn, home := newShellConn(t)
	skillTree{t, home}.put(".agents/skills/s/SKILL.md", plainFront)
	fix := func(cmd *transport.Cmd) { cmd.Line = "cd " + quoted(home) + " && " + cmd.Line }
	for _, said := range []string{"", "relative", ".", "~", "$HOME", "-"} {
		conn.env["HOME"], conn.fix = said, fix
		l := listCollections(t, conn, Options{}, discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 9}}})
		if l.Home != home || len(l.Collections) != 1 || len(l.Collections[0].Entries) != 1 {
			t.Errorf("HOME=%q: %+v", said, l)
		}
	}
}
