package transporttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/testenv"
)

func client(t *testing.T, s *Server) *ssh.Client {
	t.Helper()
	c, err := s.Client(t.Context(), "user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAConfinedAccountSeesItsOwnRoot(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "file names with a colon")
	}
	s := start(t, Options{Version: "SSH-2.0-OpenSSH_for_Windows_9.5", Accounts: []Account{{Name: "user", Chroot: "/C:/Users/x"}}})
	c := client(t, s)
	if v := string(c.ServerVersion()); v != "SSH-2.0-OpenSSH_for_Windows_9.5" {
		t.Errorf("version %q", v)
	}
	files, err := sftp.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if dir, err := files.Getwd(); err != nil || dir != "/C:/Users/x" {
		t.Errorf("it starts at %q, %v", dir, err)
	}
	if list, err := files.ReadDir("/"); err != nil || len(list) != 1 || list[0].Name() != "C:" {
		t.Errorf("the root holds %v, %v", list, err)
	}
	if _, err := files.Stat("/../../etc/passwd"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("outside: %v", err)
	}
	if err := errors.Join(files.Mkdir("a"), files.PosixRename("/C:/Users/x/a", "/C:/Users/x/b")); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(filepath.Join(s.Home("user"), "b")); err != nil || !fi.IsDir() {
		t.Errorf("what was made: %v, %v", fi, err)
	}
}

func TestAShellTakesALineApartAndACommandStartsWhereItIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a POSIX shell")
	}
	s := start(t, Options{Accounts: []Account{{Name: "user", Start: "work", Shell: func(line string) ([]string, string) {
		if line == "odd" {
			return nil, "what?\n"
		}
		return strings.Split(line, "|"), ""
	}}}})
	c := client(t, s)
	for line, want := range map[string]string{"/bin/pwd": s.Home("user") + "/work\n", "/bin/echo|a  b|$HOME": "a  b $HOME\n", "odd": "what?\n"} {
		session, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, err := session.CombinedOutput(line)
		if string(out) != want || (err != nil) != (line == "odd") {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

func TestADroppedConnectionHearsWhyAndAStalledOneNothing(t *testing.T) {
	s := start(t, Options{Faults: Faults{Drop: 1, DropWords: "Exceeded MaxStartups\r\n"}})
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if said, err := io.ReadAll(nc); err != nil || string(said) != "Exceeded MaxStartups\r\n" {
		t.Errorf("%q, %v", said, err)
	}
	s.SetFaults(Faults{StallReceived: 500})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Client(ctx, "user"); err == nil || ctx.Err() == nil {
		t.Errorf("%v before the limit", err)
	}
}

// FuzzConfined holds that no path of a request leads out of the root, whatever the request holds.
func FuzzConfined(f *testing.F) {
	open := append([]byte{3, 0, 0, 0, 1}, appendString(nil, "/../../etc/passwd")...)
	f.Add(append(open, 0, 0, 0, 1, 0, 0, 0, 0))
	f.Add(append([]byte{200, 0, 0, 0, 2}, appendString(appendString(appendString(nil, "posix-rename@openssh.com"), "/a"), "/b")...))
	f.Add([]byte{18, 0, 0, 0, 1, 0, 0, 0, 200})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		c := &confined{root: "/the/root"}
		before := bytes.Clone(p)
		got := c.request(p)
		if !bytes.Equal(p, before) {
			t.Fatal("the packet was changed in place")
		}
		if len(p) > 5 && pathsOf[p[0]] == 1 {
			in, _, ok := cutString(p[5:])
			out, _, _ := cutString(got[5:])
			if ok && strings.HasPrefix(in, "/") && out != c.root && !strings.HasPrefix(out, c.root+"/") {
				t.Fatalf("%q became %q", in, out)
			}
		}
		c.answer(p)
	})
}
