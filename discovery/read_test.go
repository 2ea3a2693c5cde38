package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/skill"
)

var project = Root{ID: 7, Path: ".agents/skills", Walk: true, Entries: 256}

func TestProjectCollectionsGoThroughTheNearestRepositoryRoot(t *testing.T) {
	fs, home := here(t)
	for _, dir := range []string{"w", "w/repo", "w/repo/a", "w/repo/a/b", ""} {
		put(t, home+"/"+dir+"/.agents/skills/s")
	}
	q := Query{Dir: home + "/w/repo/a/b", Roots: []Root{project}}
	const outside = "dir ~/w/repo/a/b repo\n7 ~/w/repo/a/b/.agents/skills\n  \"s\"\n"
	const inside = `dir ~/w/repo/a/b repo ~/w/repo
7 ~/w/repo/a/b/.agents/skills
  "s"
7 ~/w/repo/a/.agents/skills
  "s"
7 ~/w/repo/.agents/skills
  "s"
`
	wantStory(t, read(t, fs, q), outside)
	for _, marker := range []string{".git", ".jj"} {
		must(t, os.Mkdir(home+"/w/repo/"+marker, 0o755))
		wantStory(t, read(t, fs, q), inside)
		must(t, os.Remove(home+"/w/repo/"+marker))
		write(t, home+"/w/repo/"+marker, "gitdir: elsewhere")
		wantStory(t, read(t, fs, q), inside)
		must(t, os.Remove(home+"/w/repo/"+marker))
	}
	must(t, os.MkdirAll(home+"/w/repo/.git", 0o755))
	must(t, os.MkdirAll(home+"/w/repo/a/b/.git", 0o755)) // the nearest counts
	wantStory(t, read(t, fs, q), strings.Replace(outside, "repo\n", "repo ~/w/repo/a/b\n", 1))
	q.Roots[0].Walk = false
	must(t, os.Remove(home+"/w/repo/a/b/.git"))
	wantStory(t, read(t, fs, q), strings.Replace(outside, "repo\n", "repo ~/w/repo\n", 1))
}

func TestWorkingDirectoryBehindALinkIsWhereItReallyIs(t *testing.T) {
	fs, home := here(t)
	must(t, os.MkdirAll(home+"/repo/.git", 0o755))
	put(t, home+"/repo/.agents/skills/s")
	must(t, os.MkdirAll(home+"/repo/sub", 0o755))
	link(t, "repo/sub", home+"/here")
	wantStory(t, read(t, fs, Query{Dir: home + "/here/.", Roots: []Root{project}}), "dir ~/repo/sub repo ~/repo\n7 ~/repo/.agents/skills\n  \"s\"\n")
}

func TestHomeIsAWorkingDirectoryByAWordOfItsOwn(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/s")
	put(t, home+"/~/.agents/skills/another")
	q := Query{Dir: Home, Roots: []Root{project}}
	wantStory(t, read(t, local, q), "dir ~ repo\n7 ~/.agents/skills\n  \"s\"\n")
	homeless := oddFS{FS: local, realPath: func(string) (string, error) { return "", fs.ErrPermission }}
	l := read(t, homeless, q)
	if l.Dir != Home || l.Problem != NoDirectory || len(l.Collections) > 0 {
		t.Errorf("without a home it is %+v", l)
	}
}

func TestWorkingDirectoryThatIsNoneIsSaidAndTheRestIsRead(t *testing.T) {
	fs, home := here(t)
	put(t, home+"/.agents/skills/s")
	write(t, home+"/file", "")
	link(t, "nowhere", home+"/dangling")
	for _, dir := range []string{"gone", "file", "file/below", "dangling"} {
		q := user(9)
		q.Dir = home + "/" + dir
		q.Roots = append(q.Roots, project)
		wantStory(t, read(t, fs, q), "dir ~/"+dir+" repo  no-directory\n0 ~/.agents/skills\n  \"s\"\n")
	}
}

func TestCollectionIsADirectoryOrALinkToOne(t *testing.T) {
	fs, home := here(t)
	put(t, home+"/skills/s")
	link(t, "../skills", home+"/.agents/skills")
	write(t, home+"/file", "")
	link(t, "nowhere", home+"/dangling")
	link(t, "circle", home+"/circle")
	q := user(9)
	for _, at := range []string{"/file", "/file/below", "/gone", "/dangling", "/circle", "/.agents/skills/../../skills"} {
		q.Roots = append(q.Roots, Root{ID: 1, Path: home + at, Entries: 9})
	}
	wantStory(t, read(t, fs, q), `
0 ~/.agents/skills real ~/skills
  "s"
1 ~/file not-a-directory
1 ~/dangling not-a-directory
1 ~/circle not-a-directory
1 ~/skills
  "s"
`)
}

// oddEntries makes every shape of a skill directory that was met in public collections, and those
// that were not.
func oddEntries(t testing.TB, home string) {
	t.Helper()
	c := home + "/.agents/skills"
	put(t, c+"/good")
	put(t, home+"/elsewhere/target")
	link(t, "../../elsewhere/target", c+"/linked")
	link(t, "good", c+"/alias")
	link(t, "gone", c+"/dangling")
	link(t, "loop-b", c+"/loop-a")
	link(t, "loop-a", c+"/loop-b")
	write(t, home+"/empty/README.md", "")
	link(t, "../../empty", c+"/link-to-no-skill")
	write(t, c+"/README.md", "no skill")
	link(t, "README.md", c+"/link-to-file")
	must(t, os.Mkdir(c+"/empty", 0o755))
	put(t, c+"/nested/inner")
	write(t, c+"/lower/skill.md", front("lower", "d"))
	put(t, c+"/both")
	write(t, c+"/both/skill.md", "another file")
	write(t, c+"/inside/docs/main.md", front("inside", "d"))
	link(t, "docs/main.md", c+"/inside/SKILL.md")
	link(t, "../../../elsewhere/target/SKILL.md", c+"/escapes/SKILL.md")
	link(t, c+"/good/SKILL.md", c+"/absolute/SKILL.md")
	link(t, "../../../../gone/SKILL.md", c+"/gone-file/SKILL.md")
	link(t, "SKILL.md", c+"/circle-file/SKILL.md")
	link(t, "docs", c+"/file-to-dir/SKILL.md")
	must(t, os.Mkdir(c+"/file-to-dir/docs", 0o755))
	must(t, os.MkdirAll(c+"/directory/SKILL.md", 0o755))
	write(t, c+"/max/SKILL.md", strings.Repeat("a", skill.MaxFileBytes))
	write(t, c+"/over/SKILL.md", strings.Repeat("a", skill.MaxFileBytes+1))
	write(t, c+"/giant/SKILL.md", "")
	must(t, os.Truncate(c+"/giant/SKILL.md", 1<<40))
	link(t, "..", c+"/parent")
	put(t, c+"/a b'\"\n\x1b[2J")
	put(t, c+"/-dash")
	put(t, c+"/\xff\xfe")
}

func TestWhatAnEntryCanBe(t *testing.T) {
	fs, home := here(t)
	c := home + "/.agents/skills"
	oddEntries(t, home)
	want := []string{
		`"-dash"`, `"a b'\"\n\x1b[2J"`, `"absolute" link-escapes`, `"alias" real ~/.agents/skills/good link`, `"both"`,
		`"circle-file" link-dangles`, `"dangling" real  link link-dangles`, `"directory" special-file`, `"escapes" link-escapes`,
		`"file-to-dir" special-file`, `"giant" file-too-large`, `"gone-file" link-dangles`, `"good"`, `"inside"`,
		`"linked" real ~/elsewhere/target link`, `"loop-a" real  link link-dangles`, `"loop-b" real  link link-dangles`,
		`"lower" misnamed`, `"max"`, `"over" file-too-large`, `"\xff\xfe"`,
	}
	for i, w := range want {
		if slices.ContainsFunc([]string{"absolute", "circle-file", "escapes", "file-to-dir", "gone-file", "inside"}, func(name string) bool {
			return strings.HasPrefix(w, `"`+name+`"`)
		}) {
			name, problem, _ := strings.Cut(w, " ")
			want[i] = strings.TrimSpace(name + " filelink " + problem)
		}
	}
	l := read(t, fs, user(100))
	wantStory(t, l, "0 ~/.agents/skills\n  "+strings.Join(want, "\n  ")+"\n")
	for _, e := range l.Collections[0].Entries {
		if e.Name == "good" && (string(e.Head) != front("good", "from "+c+"/good") || e.Size != int64(len(e.Head)+5)) {
			t.Errorf("the head of good is %q, its size %d", e.Head, e.Size)
		}
	}
}

func TestEntriesAreTheFirstInByteOrder(t *testing.T) {
	fs, home := here(t)
	c := home + "/.agents/skills"
	for _, name := range []string{"Z", "a", "b", "é", "ab", "_"} {
		put(t, c+"/"+name)
	}
	write(t, c+"/0-file", "counts too")
	wantStory(t, read(t, fs, user(5)), "0 ~/.agents/skills more\n  \"Z\"\n  \"_\"\n  \"a\"\n  \"ab\"\n")
	wantStory(t, read(t, fs, user(7)), "0 ~/.agents/skills\n  \"Z\"\n  \"_\"\n  \"a\"\n  \"ab\"\n  \"b\"\n  \"é\"\n")
}

func TestTenThousandEntriesAndMoreAreLookedAtInPart(t *testing.T) {
	fs, home := here(t)
	c := home + "/.agents/skills"
	put(t, c+"/00000")
	for i := range MaxListed + 10 {
		must(t, os.WriteFile(fmt.Sprintf("%s/x%d", c, i), nil, 0o644))
	}
	l := read(t, fs, user(256))
	if got := l.Collections[0]; !got.More || got.Problem != "" || len(got.Entries) > 1 {
		t.Errorf("got %+v", got)
	}
}

func TestOneUnreadableEntryHidesNoOther(t *testing.T) {
	testenv.AsOther(t, func(t *testing.T) {
		fs, home := here(t)
		c := home + "/.agents/skills"
		for _, name := range []string{"a", "b", "c", "d"} {
			put(t, c+"/"+name)
		}
		must(t, os.Chmod(c+"/b", 0))
		must(t, os.Chmod(c+"/c/SKILL.md", 0))
		t.Cleanup(func() { os.Chmod(c+"/b", 0o755) })
		put(t, home+"/closed/x")
		must(t, os.Chmod(home+"/closed", 0))
		t.Cleanup(func() { os.Chmod(home+"/closed", 0o755) })
		q := user(9)
		q.Roots = append(q.Roots, Root{ID: 1, Path: home + "/closed", Entries: 9}, Root{ID: 2, Path: home + "/closed/x", Entries: 9})
		wantStory(t, read(t, fs, q), `
0 ~/.agents/skills
  "a"
  "b" unreadable
  "c" unreadable
  "d"
1 ~/closed unreadable
2 ~/closed/x unreadable
`)
	})
}

func TestListingIsBoundedInAll(t *testing.T) {
	files, home := here(t)
	big := "---\n" + strings.Repeat("#", skill.MaxFileBytes-8) + "\n"
	for i := range 400 {
		write(t, fmt.Sprintf("%s/.agents/skills/s%03d/SKILL.md", home, i), big)
	}
	var reads atomic.Int64
	counting := oddFS{FS: files, readFile: func(name string, max int64) ([]byte, error) {
		reads.Add(1)
		return files.ReadFile(name, max)
	}}
	entries := read(t, counting, user(400)).Collections[0].Entries
	total, full := 0, 0
	for i, e := range entries {
		total += len(e.Head)
		if e.Problem == ListingFull {
			full++
		} else if full > 0 || e.Problem != "" {
			t.Fatalf("%d of %d: %s is %q after the listing was full", i, len(entries), e.Name, e.Problem)
		}
	}
	if len(entries) != 400 || total > MaxListing || total < MaxListing-2*skill.MaxFileBytes {
		t.Errorf("%d entries of %d bytes, %d past the bound", len(entries), total, full)
	}
	if n := reads.Load(); n > MaxListing/skill.MaxFileBytes+filesAtOnce {
		t.Errorf("%d files were read for it", n)
	}
}

// oddFS is a machine's files that are not what this test's own are.
type oddFS struct {
	FS
	lstat    func(name string) (fs.FileInfo, error)
	readDir  func(name string, max int) ([]fs.FileInfo, error)
	readFile func(name string, max int64) ([]byte, error)
	realPath func(name string) (string, error)
}

func (o oddFS) RealPath(name string) (string, error) {
	if o.realPath != nil {
		return o.realPath(name)
	}
	return o.FS.RealPath(name)
}

func (o oddFS) Lstat(name string) (fs.FileInfo, error) {
	if o.lstat != nil {
		return o.lstat(name)
	}
	return o.FS.Lstat(name)
}

func (o oddFS) ReadDir(name string, max int) ([]fs.FileInfo, error) {
	if o.readDir != nil {
		return o.readDir(name, max)
	}
	return o.FS.ReadDir(name, max)
}

func (o oddFS) ReadFile(name string, max int64) ([]byte, error) {
	if o.readFile != nil {
		return o.readFile(name, max)
	}
	return o.FS.ReadFile(name, max)
}

func TestNameIsExactWhereTheFileSystemIsNot(t *testing.T) {
	local, home := here(t)
	c := home + "/.agents/skills"
	put(t, c+"/right")
	write(t, c+"/wrong/skill.md", front("wrong", "d"))
	// Every name in another case answers too, as on macOS and Windows.
	fold := oddFS{FS: local, lstat: func(name string) (fs.FileInfo, error) {
		info, err := local.Lstat(name)
		for _, other := range []string{"SKILL.md", "skill.md"} {
			if i := strings.LastIndex(name, "/"); err != nil && strings.EqualFold(name[i+1:], other) {
				info, err = local.Lstat(name[:i+1] + other)
			}
		}
		return info, err
	}}
	wantStory(t, read(t, fold, user(9)), "0 ~/.agents/skills\n  \"right\"\n  \"wrong\" misnamed\n")
}

// plainFS resolves no links, as some SFTP servers do not.
type plainFS struct {
	FS
	home string
}

func (p plainFS) RealPath(name string) (string, error) {
	if name == "." {
		return p.home, nil
	}
	return name, nil
}

func TestLinkThatTheServerDoesNotFollowIsNotTrusted(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/good")
	link(t, "../../../secret", home+"/.agents/skills/bad/SKILL.md")
	write(t, home+"/secret", front("bad", "d"))
	wantStory(t, read(t, plainFS{local, home}, user(9)), "0 ~/.agents/skills\n  \"bad\" filelink link-dangles\n  \"good\"\n")
}

type namedInfo struct {
	fs.FileInfo
	name string
}

func (n namedInfo) Name() string { return n.name }

func TestHostileNamesLeadNowhere(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/good")
	put(t, home+"/.agents") // which ".." would lead to
	hostile := oddFS{FS: local, readDir: func(name string, max int) ([]fs.FileInfo, error) {
		infos, err := local.ReadDir(name, max)
		for _, n := range []string{"", ".", "..", "../skills/good", "/", "good/.", "a\x00b", strings.Repeat("x", 300)} {
			infos = append(infos, namedInfo{infos[0], n})
		}
		return infos, err
	}}
	wantStory(t, read(t, hostile, user(99)), "0 ~/.agents/skills\n  \"good\"\n")
}

func TestFileThatGrewSinceItWasSeenIsTooLarge(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/grown")
	put(t, home+"/.agents/skills/gone")
	odd := oddFS{FS: local, readFile: func(name string, max int64) ([]byte, error) {
		if strings.Contains(name, "gone") {
			return nil, fs.ErrNotExist
		}
		return make([]byte, skill.MaxFileBytes+1), nil
	}}
	wantStory(t, read(t, odd, user(9)), "0 ~/.agents/skills\n  \"grown\" file-too-large\n")
}

func TestMachineThatDoesNotAnswerIsAnError(t *testing.T) {
	local, home := here(t)
	put(t, home+"/.agents/skills/s")
	lost := errors.New("connection lost")
	var gone atomic.Bool
	fail := oddFS{FS: local,
		readFile: func(string, int64) ([]byte, error) { gone.Store(true); return nil, lost },
		lstat: func(name string) (fs.FileInfo, error) {
			if gone.Load() {
				return nil, lost
			}
			return local.Lstat(name)
		},
	}
	if l, err := Read(t.Context(), fail, user(9)); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("got %+v, %v", l, err)
	}
	// A server that only says "failure" of one file does answer.
	fail.lstat = nil
	wantStory(t, read(t, fail, user(9)), "0 ~/.agents/skills\n  \"s\" unreadable\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lost)
	if _, err := Read(ctx, local, user(9)); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// slowFS takes a round trip of a second for each question, as SFTP would.
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
	s.wait(3, true) // open, the entries, the end
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
		if n != 8 {
			t.Errorf("%d round trips", n)
		}
		q.Dir = Home
		if _, n := trips(); n != 9 {
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

// The start of a file is all that is read of it here, and all that is needed.
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
