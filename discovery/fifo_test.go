//go:build unix

package discovery

import (
	"os"
	"syscall"
	"testing"
)

func TestWhatBlocksIsNeverOpened(t *testing.T) {
	fs, home := here(t)
	fifo := func(name string) { must(t, syscall.Mkfifo(name, 0o600)) }
	c := home + "/.agents/skills"
	put(t, c+"/good")
	must(t, os.Mkdir(c+"/file", 0o755))
	fifo(c + "/file/SKILL.md")
	fifo(c + "/entry")
	must(t, os.Mkdir(c+"/inside", 0o755))
	fifo(c + "/inside/pipe")
	link(t, "pipe", c+"/inside/SKILL.md")
	link(t, "/dev/zero", c+"/zero/SKILL.md")
	fifo(home + "/.git")
	fifo(home + "/collection")
	link(t, "collection", home+"/linked")
	q := user(99)
	q.Dir = home
	q.Roots = append(q.Roots, Root{ID: 1, Path: home + "/collection", Entries: 9}, Root{ID: 2, Path: home + "/linked", Entries: 9}, Root{ID: 3, Path: "/dev/zero", Entries: 9})
	const want = `
0 ~/.agents/skills
  "file" special-file
  "good"
  "inside" filelink special-file
  "zero" filelink link-escapes
1 ~/collection not-a-directory
2 ~/linked real ~/collection not-a-directory
3 /dev/zero not-a-directory
`
	// A marker that is neither a file nor a directory makes no repository.
	wantStory(t, read(t, fs, q), "dir ~ repo\n"+want[1:])
	remote, err := overOpenSSH(t, home, 0).Files(t.Context())
	must(t, err)
	wantStory(t, read(t, remote, q), "dir ~ repo\n"+want[1:])
}
