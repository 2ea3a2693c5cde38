//go:build linux

package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// skillTree makes collections of every shape below a home directory, and returns what to ask about them.
type skillTree struct {
	t    testing.TB
	home string
}

func (w skillTree) put(name, text string) string {
	w.t.Helper()
	name = filepath.Join(w.home, name)
	must(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(w.t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

func (w skillTree) dir(name string) { must(w.t, os.MkdirAll(filepath.Join(w.home, name), 0o755)) }

func (w skillTree) link(to, name string) {
	w.t.Helper()
	name = filepath.Join(w.home, name)
	must(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(w.t, os.Symlink(to, name))
}

const plainFront = "---\nname: plain\ndescription: d\n---\n"

// texts are what a SKILL.md may hold.
func texts() map[string]string {
	all := map[string]string{
		"plain":         plainFront + "body\n",
		"empty":         "",
		"fence":         "---",
		"fence-end":     "---\n",
		"two":           "---\n---",
		"two-end":       "---\n---\n",
		"none":          "# Heading\n" + plainFront,
		"none-no-end":   "# Heading",
		"blank":         "\n" + plainFront,
		"unclosed":      "---\nname: x\nno end",
		"unclosed-end":  "---\nname: x\n",
		"crlf":          "---\r\nname: x\r\n---\r\nbody\r\n",
		"bom":           "\ufeff---\nname: x\n---\nbody",
		"two-boms":      "\ufeff\ufeff---\nname: x\n---\nbody",
		"late-bom":      "---\nname: x\n\ufeff---\nbody\n---\nmore",
		"spaces":        "--- \t\r\nname: x\n---\t \nbody",
		"form-feed":     "---\f\nname: x\n---\nbody",
		"indented":      "---\nname: x\n ---\n---\nbody",
		"dashes":        "---\nname: x\n----\n--- x\n---x\n---\nbody",
		"no-last-end":   "---\nname: x\n---",
		"carriage":      "---\rname: x\r---\r",
		"NUL":           "---\nname: \x00x\ndescription: \x00\n---\nbody",
		"NUL-fence":     "---\nname: x\n---\x00\n---\nbody",
		"NUL-first":     "\x00---\nname: x\n---\n",
		"NUL-body":      plainFront + "\x00\x00",
		"NUL-unclosed":  "---\n\x00",
		"latin":         "---\nname: caf\xe9 \xff\xfe\n---\nbody",
		"latin-open":    "---\nname: caf\xe9 \xff\xfe",
		"utf-8":         "---\nname: 技能 é\n---\nbody",
		"utf-8-open":    "---\nname: 技能 é\n",
		"utf-16":        "\xff\xfe-\x00-\x00-\x00\n\x00",
		"control":       "---\nname: \x01\x1b[31m\\n%s %d\\\n---\nbody",
		"like-answers":  "---\n|x\ns 12\ndone\ne evil\n 41 42\nx\nfull\nend:\n---\n",
		"many-lines":    "---\n" + strings.Repeat("a: b\n", 6000) + "---\nbody\n",
		"long-line":     "---\nname: " + strings.Repeat("x", 60_000) + "\n---\n",
		"long-open":     "---\nname: " + strings.Repeat("x", 60_000),
		"long-first":    strings.Repeat("x", 65_536),
		"exact-unclose": "---\n" + strings.Repeat("\n", 65_532),
	}
	for _, n := range []int{65_535, 65_536, 65_537} {
		all[fmt.Sprint("size-", n)] = plainFront + strings.Repeat("x", n-len(plainFront))
		all[fmt.Sprint("open-", n)] = "---\n" + strings.Repeat("x", n-4)
	}
	return all
}

// hostileSkills makes a tree of everything that collections may hold.
func hostileSkills(t testing.TB, home string) discovery.Query {
	t.Helper()
	w := skillTree{t, home}
	for name, text := range texts() {
		w.put(".agents/skills/text-"+name+"/SKILL.md", text)
	}
	for _, name := range []string{
		"with space", " leading", "trailing ", "-n", "--", "-", "~", "*", "?", "[a]", "$HOME", "`x`", "$(x)", "a=b", "a;b",
		`quote"quote`, "quote'quote", `back\slash`, `\n`, "%s", "!x", "#x", "|x", "tab\tx", "line\nend", "line end\n", "\n",
		"cr\r", "\x01", "\x7f", "é", "技能", "\xff", "\xc3", "\u202eevil", ".hidden", "..hidden", "...", "=x", "e x",
		"s 1", "done", strings.Repeat("n", 255),
	} {
		w.put(".agents/skills/"+name+"/SKILL.md", plainFront)
	}
	w.put(".agents/skills/hollow/README.md", "x")
	w.put(".agents/skills/misnamed/skill.md", plainFront)
	w.put(".agents/skills/both/skill.md", plainFront)
	w.put(".agents/skills/both/SKILL.md", plainFront)
	w.put(".agents/skills/Skill/Skill.md", plainFront)
	w.put(".agents/skills/file", "x")
	w.put(".agents/skills/SKILL.md", plainFront)
	w.put(".agents/skills/nested/inner/SKILL.md", plainFront)
	w.dir(".agents/skills/dir-file/SKILL.md")
	must(t, syscall.Mkfifo(filepath.Join(w.home, ".agents/skills/hollow/fifo"), 0o644))
	for _, name := range []string{".agents/skills/fifo-file/SKILL.md", ".agents/skills/fifo"} {
		w.dir(filepath.Dir(name))
		must(t, syscall.Mkfifo(filepath.Join(w.home, name), 0o644))
	}
	giant := w.put(".agents/skills/giant/SKILL.md", "---\n")
	must(t, os.Truncate(giant, 1<<40))
	w.dir(".agents/skills/hard")
	must(t, os.Link(filepath.Join(home, ".agents/skills/text-plain/SKILL.md"), filepath.Join(home, ".agents/skills/hard/SKILL.md")))

	w.put("elsewhere/linked/SKILL.md", plainFront)
	w.put("elsewhere/line\nend/SKILL.md", plainFront)
	w.put("elsewhere/text\n", "---\nname: x\n---")
	for name, to := range map[string]string{
		"link": "text-plain", "link-out": "../../elsewhere/linked", "link-abs": filepath.Join(home, "elsewhere/linked"),
		"link-line": "../../elsewhere/line\nend", "link-link": "link-out", "dangling": "nowhere", "loop": "loop", "loop-a": "loop-b",
		"loop-b": "loop-a", "link-file": "file", "link-hollow": "hollow", "link-up": "..", "link-self": ".", "link-misnamed": "misnamed",
		"through-file": "file/x", "link-dangling": "dangling", "-link": "text-plain", "link\nline": "text-plain", "link-fifo": "fifo",
	} {
		w.link(to, ".agents/skills/"+name)
	}
	for name, to := range map[string]string{
		"in": "docs/real.md", "in-dot": "./docs/../docs/real.md", "in-link": "hop", "in-abs": filepath.Join(home, ".agents/skills/f-in-abs/docs/real.md"),
		"out": "../text-plain/SKILL.md", "out-back": "../f-out-back/docs/real.md", "out-dir": "../text-plain", "out-giant": "../giant/SKILL.md",
		"dangling": "nowhere", "loop": "SKILL.md", "dir": "docs", "self": ".", "up": "..", "root": "/", "dev": "/dev/zero", "fifo": "fifo",
		"line": "docs/line\n", "out-line": "../../../elsewhere/text\n", "giant": "giant.md", "slash": "docs/", "dash": "-x",
		"link-dir": "linked/real.md", "link-dir-out": "out/SKILL.md", "prefix": "../f-prefix-more/docs/real.md", "through": "docs/real.md/x",
	} {
		at := ".agents/skills/f-" + name
		w.put(at+"/docs/real.md", plainFront)
		w.put(at+"/docs/line\n", plainFront)
		w.put(at+"/-x", plainFront)
		must(t, os.Truncate(w.put(at+"/giant.md", "---\n"), 1<<30))
		must(t, syscall.Mkfifo(filepath.Join(w.home, at, "fifo"), 0o644))
		w.link("docs/real.md", at+"/hop")
		w.link("docs", at+"/linked")
		w.link("../text-plain", at+"/out")
		w.link(to, at+"/SKILL.md")
	}
	w.put(".agents/skills/f-prefix-more/docs/real.md", plainFront)
	w.link("f-in", ".agents/skills/f-via-link")

	w.put("work/repo \n\xff/.git", "gitdir: x")
	w.put("work/.agents/skills/above/SKILL.md", plainFront)
	w.put("work/repo \n\xff/.agents/skills/root/SKILL.md", plainFront)
	w.put("work/repo \n\xff/a/.agents/skills/line\nend/SKILL.md", "---\nname: x\x00\n---\n")
	w.put("work/repo \n\xff/a/b 'c/.agents/skills/near/SKILL.md", plainFront)
	w.link("work/repo \n\xff/a/b 'c", "here")
	w.dir("empty")
	w.put("a file", "x")
	w.link("nowhere", "dangling")
	w.link("a file", "to file")
	w.link("circle", "circle")
	w.link("elsewhere", "to dir")
	for i := range 5 {
		for _, first := range []string{"", ".", "..", "-", "+", "0", "~", "\x7f", "\x01", ".-", ".z", " "} {
			w.put(fmt.Sprintf("many/%s%02d/SKILL.md", first, i), plainFront)
		}
	}
	w.put("many/a-file", "x")
	q := discovery.Query{Dir: filepath.Join(home, "here"), Roots: []discovery.Root{
		{ID: 3, Path: ".agents/skills", Walk: true, Entries: 100},
		{ID: 1, Path: "~/.agents/skills", Entries: 500},
		{ID: 2, Path: filepath.Join(home, "to dir"), Entries: 100},
		{ID: 2, Path: "../nowhere", Entries: 100},
	}}
	for _, p := range []string{"gone", "empty", "a file", "dangling", "to file", "circle", "a file/x", "dangling/x", "circle/x", "dev"} {
		q.Roots = append(q.Roots, discovery.Root{ID: len(q.Roots), Path: "~/" + p, Entries: 9})
	}
	for _, n := range []int{1, 6, 14, 24, 29, 33, 37, 41, 46, 52, 60, 61, 62} {
		q.Roots = append(q.Roots, discovery.Root{ID: len(q.Roots), Path: "~/many", Entries: n})
	}
	return q
}

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

// plainSkills makes a tree without links.
func plainSkills(t testing.TB, home string) discovery.Query {
	w := skillTree{t, home}
	for name, text := range texts() {
		w.put("repo/.agents/skills/text-"+name+"/SKILL.md", text)
	}
	w.dir("repo/.git")
	w.put("repo/sub/.agents/skills/near/SKILL.md", plainFront)
	return discovery.Query{Dir: filepath.Join(home, "repo/sub"), Roots: []discovery.Root{
		{ID: 3, Path: ".agents/skills", Walk: true, Entries: 100}, {ID: 1, Path: "~/repo/.agents/skills", Entries: 20},
	}}
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
