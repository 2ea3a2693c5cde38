package remote

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// shellConn is this machine as another machine would be: a login shell of choice gets the line, in
// an environment of its own.
type shellConn struct {
	transport.Conn
	login []string          // the login shell and its words before -c
	sh    string            // what /bin/sh is there, "" for this machine's
	env   map[string]string // the whole environment
	only  bool              // PATH is not added to
	fix   func(*transport.Cmd)

	noFiles bool // it has no SFTP

	commands atomic.Int64
}

// newShellConn returns a connection to a new account, and its home.
func newShellConn(t testing.TB) (*shellConn, string) {
	home := t.TempDir()
	must(t, os.Chmod(home, 0o755))
	must(t, os.Chmod(filepath.Dir(home), 0o755)) // for an account other than the tests' own
	conn := transport.Local()
	t.Cleanup(func() { conn.Close() })
	return &shellConn{
		Conn: conn, login: []string{"/bin/sh"},
		env: map[string]string{"HOME": home, "PATH": os.Getenv("PATH")},
	}, home
}

// pathTail is what the script adds to PATH. A test of a machine that lacks a program takes it away,
// for this one has the program there.
const pathTail = ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

func (c *shellConn) Exec(ctx context.Context, cmd transport.Cmd) error {
	c.commands.Add(1)
	if c.sh != "" {
		cmd.Line = strings.Replace(cmd.Line, "exec /bin/sh ", "exec "+c.sh+" ", 1)
	}
	if c.only {
		before := cmd.Line
		if cmd.Line = strings.Replace(cmd.Line, pathTail, "", 1); cmd.Line == before {
			return errors.New("the script adds something else to PATH")
		}
	}
	words := []string{"exec", "env", "-i"}
	for k, v := range c.env {
		words = append(words, quoted(k+"="+v))
	}
	for _, word := range c.login {
		words = append(words, quoted(word))
	}
	cmd.Line = strings.Join(append(words, "-c", quoted(cmd.Line)), " ")
	if c.fix != nil {
		c.fix(&cmd)
	}
	return c.Conn.Exec(ctx, cmd)
}

func (c *shellConn) Files(ctx context.Context) (transport.FS, error) {
	if c.noFiles {
		return nil, &transport.Error{Op: "files", Kind: transport.ErrNoFiles}
	}
	return c.Conn.Files(ctx)
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// shellNamed returns the path of a shell, called sh where it is to stand in for /bin/sh.
func shellNamed(t testing.TB, name string, standIn bool) string {
	t.Helper()
	program := name
	if name == "busybox" || name == "toybox" {
		standIn = true
	}
	p, err := exec.LookPath(program)
	if err != nil {
		testenv.Missing(t, name)
	}
	if !standIn {
		return p
	}
	link := filepath.Join(t.TempDir(), "sh")
	must(t, os.Symlink(p, link))
	return link
}

func openCache(t testing.TB, conn transport.Conn, o Options) *Cache {
	t.Helper()
	o.Dir = "berry/skills"
	c, err := Open(conn, o)
	must(t, err)
	return c
}
