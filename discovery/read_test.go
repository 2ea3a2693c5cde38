package discovery

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

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

// oddFS is a machine's files that are not what this test's own are.
// plainFS resolves no links, as some SFTP servers do not.
// slowFS takes a round trip of a second for each question, as SFTP would.
// The start of a file is all that is read of it here, and all that is needed.
