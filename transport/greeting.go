package transport

import (
	"bytes"
	"fmt"
	"net"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// greeting is a connection that keeps what the server sends before its version: a server that will
// not have us says why there, and SSH itself has no use for it.
type greeting struct {
	net.Conn
	kept []byte
	over bool // the version came, or as much as is kept
}

func (g *greeting) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if !g.over {
		g.kept = append(g.kept, b[:min(n, display.SaidBytes-len(g.kept))]...)
		at := bytes.Index(append([]byte{'\n'}, g.kept...), []byte("\nSSH-"))
		if at >= 0 {
			g.kept = g.kept[:at]
		}
		g.over = at >= 0 || len(g.kept) == display.SaidBytes
	}
	return n, err
}

// words returns what the server said in place of its version. The handshake must be over.
func (g *greeting) words() string { return strings.TrimSpace(string(g.kept)) }

// droppedError is a connection that ended before the server had said who it is.
type droppedError struct {
	words string // what it said instead
	err   error
}

func (d *droppedError) Error() string {
	if d.words != "" {
		return "the server closed the connection before the handshake and said: " + display.Said(d.words)
	}
	return "the server closed the connection before the handshake: " + display.Said(d.err.Error())
}

func (d *droppedError) Unwrap() error { return d.err }

// penalised reports whether the server keeps this address out for a while, for what came from it
// before (PerSourcePenalties). Another attempt makes that longer.
func (d *droppedError) penalised() bool { return strings.Contains(d.words, "Not allowed at this time") }

// advice returns what a person can do.
func (d *droppedError) advice() string {
	if d.penalised() {
		return "the server keeps this address out for a while, after failed or unfinished logins from it (PerSourcePenalties); wait, mend the login, and try again"
	}
	return fmt.Sprintf("too many connections that are not logged in yet (MaxStartups), or a server that has had enough of this address, end so, %d attempts here; wait and try again", dialAttempts)
}
