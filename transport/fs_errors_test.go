package transport

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

func TestFailuresMeanTheSameEverywhere(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/dir")
		put(t, fsys, root+"/dir/f", "x", 0o600)
		put(t, fsys, root+"/file", "x", 0o600)
		symlink(t, "nowhere", root+"/link")

		for _, name := range []string{"/dir", "/file", "/link"} {
			wantIs(t, "mkdir over "+name, fsys.Mkdir(root+name, 0o700), fs.ErrExist)
			_, err := fsys.Create(root+name, 0o600)
			wantIs(t, "create over "+name, err, fs.ErrExist)
		}
		for what, err := range map[string]error{
			"lstat":     second(fsys.Lstat(root + "/none")),
			"readdir":   second(fsys.ReadDir(root+"/none", 1)),
			"readlink":  second(fsys.ReadLink(root + "/none")),
			"open":      second(fsys.Open(root + "/none")),
			"read":      second(fsys.ReadFile(root+"/none", 1)),
			"mkdir":     fsys.Mkdir(root+"/none/d", 0o700),
			"create":    second(fsys.Create(root+"/none/f", 0o600)),
			"remove":    fsys.Remove(root + "/none"),
			"rmdir":     fsys.RemoveDir(root + "/none"),
			"rename":    fsys.Rename(root+"/none", root+"/other"),
			"to itself": fsys.Rename(root+"/none", root+"/none"),
			"rename on": fsys.Rename(root+"/none", root+"/file"),
			"chmod":     fsys.Chmod(root+"/none", 0o600),
			"chtimes":   fsys.Chtimes(root+"/none", time.Now()),
		} {
			wantIs(t, what+" of what is not there", err, fs.ErrNotExist)
			if errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %v is also ErrExist", what, err)
			}
		}
		wantIs(t, "rmdir of a full directory", fsys.RemoveDir(root+"/dir"), fs.ErrExist)
		for what, err := range map[string]error{
			"remove of a directory": fsys.Remove(root + "/dir"),
			"rmdir of a file":       fsys.RemoveDir(root + "/file"),
			"rmdir of a link":       fsys.RemoveDir(root + "/link"),
			"readdir of a file":     second(fsys.ReadDir(root+"/file", 1)),
		} {
			if err == nil || errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, name := range []string{"/dir/f", "/file", "/link"} {
			if _, err := os.Lstat(root + name); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		}
		for _, name := range []string{"", "relative", "./x", root + "/nul\x00"} {
			if _, err := fsys.Lstat(name); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Lstat(%q): %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestPermissionDeniedIsSaid(t *testing.T) {
	if os.Geteuid() == 0 {
		// Hardly anything is denied to root; sysfs takes no directories from anybody.
		if err := os.Mkdir("/sys/punnet", 0o700); !errors.Is(err, fs.ErrPermission) {
			testenv.Missing(t, "an account that is not root")
		}
		eachFS(t, func(t *testing.T, fsys FS, _ string) {
			wantIs(t, "mkdir", fsys.Mkdir("/sys/punnet", 0o700), fs.ErrPermission)
		})
		return
	}
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/shut")
		if err := fsys.Chmod(root+"/shut", 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(root+"/shut", 0o700)
		wantIs(t, "mkdir", fsys.Mkdir(root+"/shut/d", 0o700), fs.ErrPermission)
		_, err := fsys.ReadDir(root+"/shut", 1)
		wantIs(t, "readdir", err, fs.ErrPermission)
	})
}

func TestRenameNeverReplacesADirectoryThatHoldsSomething(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/stage")
		put(t, fsys, root+"/stage/new", "new", 0o600)
		mkdir(t, fsys, root+"/final")
		put(t, fsys, root+"/final/old", "old", 0o600)
		wantIs(t, "onto a full directory", fsys.Rename(root+"/stage", root+"/final"), fs.ErrExist)
		symlink(t, "final", root+"/link")
		wantIs(t, "directory onto a link", fsys.Rename(root+"/stage", root+"/link"), fs.ErrExist)
		put(t, fsys, root+"/file", "x", 0o600)
		wantIs(t, "directory onto a file", fsys.Rename(root+"/stage", root+"/file"), fs.ErrExist)
		if got, err := os.ReadFile(root + "/final/old"); err != nil || string(got) != "old" {
			t.Errorf("the old directory: %q, %v", got, err)
		}
		if _, err := os.Lstat(root + "/final/stage"); err == nil {
			t.Error("the new directory was put into the old one")
		}
		if err := fsys.Rename(root+"/stage", root+"/fresh"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(root + "/fresh/new"); err != nil || string(got) != "new" {
			t.Errorf("the new directory: %q, %v", got, err)
		}
		if _, err := os.Lstat(root + "/stage"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the old name: %v", err)
		}
		if err := fsys.Rename(root+"/fresh/new", root+"/fresh/new"); err != nil {
			t.Errorf("to itself: %v", err)
		}
		if got, err := os.ReadFile(root + "/fresh/new"); err != nil || string(got) != "new" {
			t.Errorf("after a rename to itself: %q, %v", got, err)
		}
	})
}

// TestReport28Lftp217: a rename onto a file that exists failed where the protocol has it fail, and the
// way around it, to remove that one first, could lose both.
func TestReport28Lftp217(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		put(t, fsys, root+"/new", "new", 0o600)
		put(t, fsys, root+"/old", "old", 0o600)
		err := fsys.Rename(root+"/new", root+"/old")
		got, rerr := os.ReadFile(root + "/old")
		switch {
		case rerr != nil:
			t.Fatal(rerr)
		case err == nil && string(got) != "new":
			t.Errorf("replaced, and holds %q", got)
		case err != nil && string(got) != "old":
			t.Errorf("refused, and holds %q", got)
		case err != nil:
			wantIs(t, "refusal", err, fs.ErrExist)
		}
	})
}

func TestRemovalTakesWhatItIsFor(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/dir")
		put(t, fsys, root+"/dir/f", "x", 0o600)
		symlink(t, "dir", root+"/link")
		for _, step := range []struct {
			what string
			err  error
		}{
			{"link", fsys.Remove(root + "/link")}, {"file", fsys.Remove(root + "/dir/f")}, {"directory", fsys.RemoveDir(root + "/dir")},
		} {
			if step.err != nil {
				t.Errorf("%s: %v", step.what, step.err)
			}
		}
		if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

func TestAFullLocalFileSystemIsRecognised(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testenv.Missing(t, "/dev/full")
	}
	w := &localWriter{fs: &localFS{ctx: t.Context()}, name: "/dev/full", f: f}
	_, err = w.Write([]byte("data"))
	wantIs(t, "write", err, ErrNoSpace)
	wantIs(t, "close", w.Close(), ErrNoSpace)
}
