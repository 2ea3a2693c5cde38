package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/punnet/punnet/skill"
)

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
