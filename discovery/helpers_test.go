package discovery

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/transport"
)

// here returns this machine's files, with a home directory of the test's own, and that directory by
// its real path.
func here(t testing.TB) (FS, string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	return files(t), filepath.ToSlash(home)
}

func files(t testing.TB) FS {
	t.Helper()
	conn := transport.Local()
	t.Cleanup(func() { conn.Close() })
	fs, err := conn.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(path.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

func front(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", name, description)
}

// put writes a skill directory whose name is the skill's.
func put(t testing.TB, dir string) {
	t.Helper()
	write(t, dir+"/SKILL.md", front(path.Base(dir), "from "+dir)+"body\n")
}

func link(t testing.TB, to, name string) {
	t.Helper()
	must(t, os.MkdirAll(path.Dir(name), 0o755))
	must(t, os.Symlink(to, name))
}

func read(t testing.TB, fs FS, q Query) *Listing {
	t.Helper()
	type result struct {
		l   *Listing
		err error
	}
	done := make(chan result, 1)
	go func() {
		l, err := Read(context.Background(), fs, q)
		done <- result{l, err}
	}()
	select {
	case r := <-done:
		must(t, r.err)
		return r.l
	case <-time.After(time.Minute):
		t.Fatal("still reading: something was opened that blocks")
		return nil
	}
}

// user is the query for one collection below the home directory.
func user(entries int) Query {
	return Query{Roots: []Root{{Path: "~/.agents/skills", Entries: entries}}}
}

// story says what a listing holds, one line for each thing, without the home directory's path.
func story(l *Listing) string {
	var b strings.Builder
	short := func(p string) string { return strings.ReplaceAll(p, l.Home, "~") }
	if l.Dir != "" || l.Problem != "" {
		fmt.Fprintf(&b, "dir %s repo %s", short(l.Dir), short(l.Repository))
		if l.Problem != "" {
			fmt.Fprintf(&b, " %s", l.Problem)
		}
		b.WriteByte('\n')
	}
	for _, c := range l.Collections {
		fmt.Fprintf(&b, "%d %s", c.Root, short(c.Path))
		if c.Real != c.Path {
			fmt.Fprintf(&b, " real %s", short(c.Real))
		}
		if c.More {
			b.WriteString(" more")
		}
		fmt.Fprintf(&b, " %s\n", c.Problem)
		for _, e := range c.Entries {
			fmt.Fprintf(&b, "  %q", e.Name)
			if want := c.Real + "/" + e.Name; e.Real != want {
				fmt.Fprintf(&b, " real %s", short(e.Real))
			}
			if e.Link {
				b.WriteString(" link")
			}
			if e.FileLink {
				b.WriteString(" filelink")
			}
			fmt.Fprintf(&b, " %s\n", e.Problem)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

func wantStory(t testing.TB, l *Listing, want string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if got := story(l); got != want {
		t.Errorf("the listing is\n%s\nwant\n%s", got, want)
	}
}
