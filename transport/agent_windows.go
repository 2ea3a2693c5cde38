package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"
)

// dialAgent opens the agent's named pipe, or the socket that some agents offer instead.
func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	if !strings.HasPrefix(path, `\\`) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return pipeConn{f}, nil
}

// pipeConn is a named pipe as a connection.
type pipeConn struct{ *os.File }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "agent" }

func (pipeConn) LocalAddr() net.Addr  { return pipeAddr{} }
func (pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

// SetDeadline does what os.File can, which for a pipe may be nothing.
func (p pipeConn) SetDeadline(t time.Time) error {
	if err := p.File.SetDeadline(t); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return err
	}
	return nil
}
