package transport

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"

	"github.com/punnet/punnet/internal/fault"
)

// shell fails: there is no POSIX shell to count on.
func shell(context.Context, string) (*exec.Cmd, error) {
	return nil, errors.ErrUnsupported
}

// proxyShell prepares cmd.exe for a ProxyCommand, as Windows' ssh does.
func proxyShell(line string) (*exec.Cmd, error) {
	p := exec.Command("cmd.exe")
	p.SysProcAttr = &syscall.SysProcAttr{CmdLine: "/c " + line}
	return p, nil
}

// killProxy ends what proxyShell started.
func killProxy(p *os.Process) { _ = p.Kill() }

func exitError(st *os.ProcessState) error { return &ExitError{Status: st.ExitCode()} }

// readFlags open a file or directory.
const readFlags = os.O_RDONLY

func localOwner(fs.FileInfo) (uid, gid uint32, ok bool) { return 0, 0, false }

func unlink(name string) error {
	fi, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return &fs.PathError{Op: "remove", Path: name, Err: fault.ErrIsDir}
	}
	return os.Remove(name)
}

func rmdir(name string) error {
	fi, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return &fs.PathError{Op: "remove", Path: name, Err: fault.ErrNotDir}
	}
	err = os.Remove(name)
	if errors.Is(err, syscall.ERROR_DIR_NOT_EMPTY) {
		return fault.ErrNotEmpty
	}
	return err
}

// noSpace reports whether err says that a disk is full.
func noSpace(err error) bool {
	const errorDiskFull, errorHandleDiskFull = syscall.Errno(112), syscall.Errno(39)
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}

func freeSpace(string) (uint64, error) { return 0, errors.ErrUnsupported }
