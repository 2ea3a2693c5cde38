package transport

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownPeer reports why the process behind a Unix socket is not this user's.
func ownPeer(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if int(cred.Uid) != os.Getuid() {
		return errors.New("the process behind it belongs to another user")
	}
	return nil
}
