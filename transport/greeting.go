package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
)

// greeting is a connection that keeps what the server sends before its version: a server that will
// not have us says why there, and SSH itself has no use for it.
type greeting struct {
	net.Conn
	kept []byte
	over bool // the version came, or as much as is kept
}

// errOld is a server that speaks the first version of SSH alone, which the library would wait for.
var errOld = errors.New("the server speaks SSH 1 alone")

func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if !g.over {
		g.kept = append(g.kept, b[:min(n, display.SaidBytes-len(g.kept))]...)
		g.over = len(g.kept) == display.SaidBytes
		if at := bytes.Index(append([]byte{'\n'}, g.kept...), []byte("\nSSH-")); at >= 0 {
			version, whole := g.kept[at:], len(g.kept) >= at+len("SSH-1.99")
			g.over = g.over || whole || bytes.ContainsRune(version, '\n')
			if g.over && bytes.HasPrefix(version, []byte("SSH-1.")) && !bytes.HasPrefix(version, []byte("SSH-1.99")) {
				return 0, errOld
			}
			if g.over {
				g.kept = g.kept[:at]
			}
		}
	}
	return n, err
}

// words returns what the server said in place of its version. The handshake must be over.
func (g *greeting) words() string { return strings.TrimSpace(string(g.kept)) }

// droppedError is a connection that ended before the server had said who it is.
type droppedError struct {
	words string // what it said instead
	addr  string
	err   error
}

func (d *droppedError) Error() string {
	const closed = "the server closed the connection before the handshake"
	proxy, _ := errors.AsType[*proxyError](d.err)
	switch {
	case d.words != "":
		return closed + " and said: " + display.Said(d.words)
	case proxy != nil:
		return closed + ": " + proxy.Error()
	case errors.Is(d.err, syscall.ECONNRESET):
		return closed + ": connection reset"
	case fault.IsEnd(d.err):
		return closed
	}
	return closed + ": " + display.Said(d.err.Error())
}

func (d *droppedError) Unwrap() error { return d.err }

// penalised reports whether the server keeps this address out for a while, for what came from it
// before (PerSourcePenalties). Another attempt makes that longer.
func (d *droppedError) penalised() bool { return strings.Contains(d.words, "Not allowed at this time") }

// advice returns what a person can do.
func (d *droppedError) advice() string {
	switch {
	case d.words != "" && !d.penalised() && !strings.Contains(d.words, "MaxStartups"):
		return "check that it is an SSH server that listens at " + d.addr
	case d.penalised():
		return "the server keeps this address out for a while, after failed or unfinished logins from it (PerSourcePenalties); wait, mend the login, and try again"
	}
	return fmt.Sprintf("too many connections that are not logged in yet (MaxStartups), or a server that has had enough of this address, end so, %d attempts here; wait and try again", dialAttempts)
}
