package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/sftp"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// eachFS runs a test over every kind of file system this package reaches. root is an empty
// directory on it, which the test may also look at from this side.
func eachFS(t *testing.T, test func(t *testing.T, fsys FS, root string)) {
	t.Run("local", func(t *testing.T) {
		c := Local()
		defer c.Close()
		test(t, view(t, c), filepath.ToSlash(tempDir(t)))
	})
	t.Run("in-process", func(t *testing.T) {
		s := startServer(t, transporttest.Options{})
		test(t, view(t, borrowed(t, s, "user", Options{})), tempDir(t))
	})
	t.Run("no-posix-rename", func(t *testing.T) {
		test(t, startSFTPServer(t, "posix-rename@openssh.com", "fstatvfs@openssh.com"), tempDir(t))
	})
	t.Run("sftp-server", func(t *testing.T) {
		test(t, startSFTPServer(t), tempDir(t))
	})
	t.Run("sshd", func(t *testing.T) {
		d := startSSHD(t)
		test(t, view(t, dial(t, d.alias, d.options())), tempDir(t))
	})
	t.Run("control", func(t *testing.T) { test(t, view(t, dialControlled(t)), tempDir(t)) })
	t.Run("system", func(t *testing.T) { test(t, view(t, dialSystem(t)), tempDir(t)) })
}

func view(t *testing.T, c Conn) FS {
	t.Helper()
	fsys, err := c.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// borrowed is a Conn over a client of the test's own.
func borrowed(t *testing.T, s *transporttest.Server, account string, o Options) Conn {
	t.Helper()
	client, err := s.Client(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	c := NewConn(client, o)
	t.Cleanup(func() {
		c.Close()
		if _, _, err := client.SendRequest("still there?", true, nil); err != nil {
			t.Errorf("closing the Conn closed the caller's client: %v", err)
		}
		client.Close()
	})
	return c
}

// startSFTPServer runs OpenSSH's sftp-server on a pair of pipes. Those of its extensions whose names
// are given are unknown to the client.
func startSFTPServer(t *testing.T, without ...string) FS {
	t.Helper()
	cmd := exec.Command(sftpServer(t), "-e", "-l", "ERROR")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := sftp.Start(&renaming{r: out, names: without}, in, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		c.Wait()
		_ = cmd.Wait()
	})
	return sftpFiles{c.Files(t.Context())}
}

// renaming gives names in the first thing that it reads, a server's greeting, another last letter.
type renaming struct {
	r     io.Reader
	names []string
	done  bool
}

func (r *renaming) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if !r.done && n > 0 {
		r.done = true
		for _, name := range r.names {
			if i := bytes.Index(p[:n], []byte(name)); i < 0 {
				return 0, fmt.Errorf("the server offers no %s", name)
			} else {
				p[i+len(name)-1]++
			}
		}
	}
	return n, err
}

func put(t *testing.T, fsys FS, name, data string, perm fs.FileMode) {
	t.Helper()
	w, err := fsys.Create(name, perm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, fsys FS, name string) {
	t.Helper()
	if err := fsys.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

// wantIs checks an error's meaning and that it names the path as file errors do.
func wantIs(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v; want %v", what, err, want)
	}
	var pe *fs.PathError
	var le *os.LinkError
	if err != nil && !errors.As(err, &pe) && !errors.As(err, &le) {
		t.Errorf("%s: %T is neither a PathError nor a LinkError", what, err)
	}
}

func TestFilesArriveWithContentModeAndTime(t *testing.T) {
	umask(t, 0o027)
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		when := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
		for name, c := range map[string]struct {
			data string
			perm fs.FileMode
		}{
			"empty": {"", 0o600}, "text": {"hello\n", 0o600}, "script": {"#!/bin/sh\n", 0o700}, "open": {"x", 0o666},
			"odd name $(x)'q\".txt": {"odd", 0o600}, "large": {strings.Repeat("0123456789abcdef", 3<<16+1), 0o600},
		} {
			p := path.Join(root, name)
			w, err := fsys.Create(p, c.perm)
			if err != nil {
				t.Fatal(err)
			}
			w.SetModTime(when)
			// In pieces, so that several writes are in flight.
			for data := c.data; data != ""; {
				n := min(len(data), 50000)
				if m, err := io.WriteString(w, data[:n]); err != nil || m != n {
					t.Fatal(m, err)
				}
				data = data[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := fsys.ReadFile(p, int64(len(c.data)))
			if err != nil || string(got) != c.data {
				t.Errorf("%s: read back %d bytes, %v; want %d", name, len(got), err, len(c.data))
			}
			fi, err := fsys.Lstat(p)
			if err != nil {
				t.Fatal(err)
			}
			if fi.Name() != name || fi.Size() != int64(len(c.data)) || fi.Mode() != c.perm || !fi.ModTime().Equal(when) {
				t.Errorf("%s: %s, %d bytes, %v, %v", name, fi.Name(), fi.Size(), fi.Mode(), fi.ModTime())
			}
			if local, err := os.ReadFile(filepath.FromSlash(p)); err != nil || string(local) != c.data {
				t.Errorf("%s: on disk %d bytes, %v", name, len(local), err)
			}
			if uid, _, ok := Owner(fi); runtime.GOOS != "windows" && (!ok || int(uid) != os.Getuid()) {
				t.Errorf("%s: owner %d, %v", name, uid, ok)
			}
		}
	})
}

func TestReadsAreBoundedExactlyAtTheLimit(t *testing.T) {
	const chunk = 32 << 10 // what one request reads over SFTP
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 2*chunk - 1, 2 * chunk, 2*chunk + 1, 5*chunk + 7} {
			p := path.Join(root, fmt.Sprint("f", n))
			data := strings.Repeat("x", n)
			put(t, fsys, p, data, 0o600)
			for _, limit := range []int{n - 1, n, n + 1} {
				got, err := fsys.ReadFile(p, int64(limit))
				switch {
				case limit < 0:
					wantIs(t, "negative limit", err, fs.ErrInvalid)
				case limit < n:
					wantIs(t, fmt.Sprintf("%d bytes, limit %d", n, limit), err, ErrTooLarge)
				case err != nil || string(got) != data:
					t.Errorf("%d bytes, limit %d: %d bytes, %v", n, limit, len(got), err)
				}
			}
			f, err := fsys.Open(p)
			if err != nil {
				t.Fatal(err)
			}
			if fi, err := f.Stat(); err != nil || fi.Size() != int64(n) {
				t.Errorf("Stat: %v, %v", fi, err)
			}
			buf := make([]byte, n+10)
			if m, err := f.ReadAt(buf, 0); m != n || err != io.EOF {
				t.Errorf("ReadAt past the end of %d bytes: %d, %v", n, m, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestListingsStopAtTheLimit(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		dir := path.Join(root, "d")
		mkdir(t, fsys, dir)
		for i := range 250 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%03d", i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, max := range []int{1, 249, 250, 251} {
			list, err := fsys.ReadDir(dir, max)
			if len(list) != min(max, 250) {
				t.Errorf("limit %d: %d entries", max, len(list))
			}
			if max < 250 {
				wantIs(t, fmt.Sprint("limit ", max), err, ErrTooLarge)
			} else if err != nil {
				t.Errorf("limit %d: %v", max, err)
			}
		}
		_, err := fsys.ReadDir(dir, 0)
		wantIs(t, "no limit", err, fs.ErrInvalid)
	})
}

func TestListingsDescribeLinksAndNotWhatTheyPointTo(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/dir")
		put(t, fsys, root+"/file", "x", 0o600)
		symlink(t, "/nowhere/at all", root+"/link")
		symlink(t, "dir", root+"/dirlink")
		list, err := fsys.ReadDir(root, 10)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]fs.FileMode{}
		for _, fi := range list {
			kinds[fi.Name()] = fi.Mode().Type()
		}
		want := map[string]fs.FileMode{"dir": fs.ModeDir, "file": 0, "link": fs.ModeSymlink, "dirlink": fs.ModeSymlink}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", kinds, want)
		}
		if fi, err := fsys.Lstat(root + "/dirlink"); err != nil || fi.Mode().Type() != fs.ModeSymlink {
			t.Errorf("Lstat of a link: %v, %v", fi, err)
		}
		if to, err := fsys.ReadLink(root + "/link"); err != nil || to != "/nowhere/at all" {
			t.Errorf("ReadLink: %q, %v", to, err)
		}
		if _, err := fsys.ReadLink(root + "/file"); err == nil {
			t.Error("ReadLink of a file succeeded")
		}
	})
}

func TestModesAndTimesChange(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		mkdir(t, fsys, root+"/d")
		when := time.Unix(1234567890, 0)
		if err := errors.Join(fsys.Chmod(root+"/d", 0o750), fsys.Chtimes(root+"/d", when)); err != nil {
			t.Fatal(err)
		}
		fi, err := fsys.Lstat(root + "/d")
		if err != nil || fi.Mode() != fs.ModeDir|0o750 || !fi.ModTime().Equal(when) {
			t.Errorf("%v, %v", fi, err)
		}
	})
}

func TestDirectoriesHaveExactlyTheModeAskedFor(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "mode bits")
	}
	umask(t, 0o077)
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		if err := os.Chmod(root, 0o777|fs.ModeSetgid); err != nil {
			t.Fatal(err)
		}
		for _, perm := range []fs.FileMode{0o700, 0o755} {
			p := fmt.Sprintf("%s/%o", root, perm)
			if err := fsys.Mkdir(p, perm); err != nil {
				t.Fatal(err)
			}
			if fi, err := fsys.Lstat(p); err != nil || fi.Mode() != fs.ModeDir|perm {
				t.Errorf("%v, %v", fi.Mode(), err)
			}
		}
	})
}

func TestRealPathKnowsTheStartDirectory(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		home, err := fsys.RealPath(".")
		if err != nil || !path.IsAbs(home) {
			t.Errorf("start directory: %q, %v", home, err)
		}
		if got, err := fsys.RealPath(root + "/."); err != nil || got != root {
			t.Errorf("RealPath: %q, %v; want %q", got, err, root)
		}
		if got, err := fsys.RealPath(root + "/not there yet"); err != nil || got != root+"/not there yet" {
			t.Errorf("RealPath of a missing name: %q, %v", got, err)
		}
	})
}

func TestFreeSpaceIsKnown(t *testing.T) {
	eachFS(t, func(t *testing.T, fsys FS, root string) {
		n, err := fsys.FreeSpace(root)
		if err != nil && !errors.Is(err, errors.ErrUnsupported) || err == nil && n == 0 {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.FromSlash(name)); err != nil {
		if runtime.GOOS == "windows" || errors.Is(err, syscall.EPERM) {
			testenv.Missing(t, "the right to make links: "+err.Error())
		}
		t.Fatal(err)
	}
}
