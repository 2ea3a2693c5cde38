package transport

import (
	"context"
	"errors"
	"net"
	"os"
)

// systemSSH fails: Windows' ssh cannot share a connection.
func systemSSH() (string, error) {
	return "", errors.New("ssh on Windows does not share connections, so that the system's ssh cannot be used")
}

// master is the system's ssh holding a connection, which there is none of on Windows.
type master struct{ socket string }

func startMaster(string, func(socket, log string) []string, bool) (*master, error) {
	return nil, errors.ErrUnsupported
}

func (m *master) await(context.Context) error { return errors.ErrUnsupported }
func (m *master) stop() string                { return "" }
func (m *master) lastWords() string           { return "" }

func duplicate(*net.UnixConn) *os.File     { return nil }
func startHolder(*os.File) (string, error) { return "", errors.ErrUnsupported }
