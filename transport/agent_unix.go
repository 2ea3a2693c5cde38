//go:build !windows

package transport

import (
	"context"
	"net"
)

// dialAgent connects to the agent's socket.
func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}
