package discovery

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/punnet/punnet/skill"
)

type slowFS struct {
	FS
	mu            sync.Mutex
	handles, most int
}

func (s *slowFS) wait(trips int, handle bool) {
	if handle {
		s.mu.Lock()
		s.handles++
		s.most = max(s.most, s.handles)
		s.mu.Unlock()
	}
	time.Sleep(time.Duration(trips) * time.Second)
	if handle {
		s.mu.Lock()
		s.handles--
		s.mu.Unlock()
	}
}

func (s *slowFS) Lstat(name string) (fs.FileInfo, error) { s.wait(1, false); return s.FS.Lstat(name) }
func (s *slowFS) RealPath(name string) (string, error)   { s.wait(1, false); return s.FS.RealPath(name) }
func (s *slowFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	s.wait(2, true) // open, and the entries with the end
	return s.FS.ReadDir(name, max)
}
func (s *slowFS) ReadFile(name string, max int64) ([]byte, error) {
	s.wait(2, true) // open and read
	return s.FS.ReadFile(name, max)
}

func TestRoundTripsDoNotGrowWithTheSkills(t *testing.T) {
	local, home := here(t)
	dir := home + "/repo/a/b/c/d/e"
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.Mkdir(home+"/repo/.git", 0o755))
	for i := range 128 {
		put(t, fmt.Sprintf("%s/.agents/skills/s%d", home, i))
		if i < 10 {
			put(t, fmt.Sprintf("%s/repo/.agents/skills/p%d", home, i))
		}
	}
	link(t, "s1", home+"/.agents/skills/linked")
	link(t, "gone", home+"/.agents/skills/dangling")
	q := user(256)
	q.Dir, q.Roots = dir, append(q.Roots, project)
	synctest.Test(t, func(t *testing.T) {
		slow := &slowFS{FS: local}
		trips := func() (*Listing, int) {
			start := time.Now()
			l, err := Read(t.Context(), slow, q)
			must(t, err)
			return l, int(time.Since(start).Seconds())
		}
		l, n := trips()
		if n != 7 {
			t.Errorf("%d round trips", n)
		}
		q.Dir = Home
		if _, n := trips(); n != 8 {
			t.Errorf("%d round trips with the home directory", n)
		}
		if n := len(l.Collections[0].Entries); n != 130 {
			t.Errorf("%d entries", n)
		}
		if slow.most > filesAtOnce {
			t.Errorf("%d handles at once", slow.most)
		}
	})
}

func TestDirectoryThatIsTwoCollectionsIsReadOnce(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/a")
	put(t, home+"/.agents/skills/b")
	var reads atomic.Int64
	counting := oddFS{FS: local, readFile: func(name string, max int64) ([]byte, error) {
		reads.Add(1)
		return local.ReadFile(name, max)
	}}
	q := user(9)
	q.Dir, q.Roots = home, append(q.Roots, project, Root{ID: 8, Path: ".agents/skills", Entries: 1})
	wantStory(t, read(t, counting, q), `dir ~ repo
0 ~/.agents/skills
  "a"
  "b"
7 ~/.agents/skills
  "a"
  "b"
8 ~/.agents/skills more
  "a"
`)
	if n := reads.Load(); n != 3 {
		t.Errorf("%d files were read", n)
	}
}

func TestHeadIsTheSameHoweverMuchIsReadAtFirst(t *testing.T) {
	local, home := here(t)
	c := home + "/.agents/skills/s"
	long := func(n int) string { return strings.Repeat("#", n-len("---\n---\n")-1) + "\n" }
	for name, text := range map[string]string{
		"empty": "", "short": front("s", "d") + "body", "no front": strings.Repeat("a", 3*headBytes) + "\nb",
		"unclosed":           "---\n" + strings.Repeat("a: b\n", headBytes),
		"closed just before": "---\n" + long(headBytes-1) + "---\nbody",
		"closed at":          "---\n" + long(headBytes) + "---\nbody",
		"closed no more":     "---\n" + long(headBytes) + "---\n",
		"closed just after":  "---\n" + long(headBytes+1) + "---\nbody",
		"no fence, cut":      "---\n" + long(headBytes+1) + "---x\nname: s\n---\nbody",
		"fence cut in two":   "---\n" + long(headBytes+2) + "---\nbody",
	} {
		write(t, c+"/SKILL.md", text)
		want := read(t, oddFS{FS: local}, user(9)).Collections[0].Entries[0]
		got := read(t, local, user(9)).Collections[0].Entries[0]
		if !reflect.DeepEqual(got, want) || string(got.Head) != text[:skill.Head([]byte(text))] {
			t.Errorf("%s: %d bytes of head, not %d", name, len(got.Head), len(want.Head))
		}
	}
}
