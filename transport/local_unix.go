//go:build unix

package transport

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// readFlags open a file or directory without waiting, should it be a FIFO.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// shell prepares /bin/sh for line, in a process group of its own so that ending it ends what it
// started.
func shell(ctx context.Context, line string) (*exec.Cmd, error) {
	p := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.Cancel = func() error { return syscall.Kill(-p.Process.Pid, syscall.SIGTERM) }
	return p, nil
}

// proxyShell prepares the user's shell for a ProxyCommand, as ssh does.
func proxyShell(line string) (*exec.Cmd, error) {
	sh := os.Getenv("SHELL")
	if sh == "" {
		sh = "/bin/sh"
	}
	p := exec.Command(sh, "-c", "exec "+line)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p, nil
}

// killProxy ends what proxyShell started.
func killProxy(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGTERM) }

func exitError(st *os.ProcessState) error {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return &ExitError{Status: -1, Signal: signalName(ws.Signal())}
	}
	return &ExitError{Status: st.ExitCode()}
}

// signalName returns a signal's name as SSH writes it.
func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGABRT:
		return "ABRT"
	case syscall.SIGALRM:
		return "ALRM"
	case syscall.SIGFPE:
		return "FPE"
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGILL:
		return "ILL"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGKILL:
		return "KILL"
	case syscall.SIGPIPE:
		return "PIPE"
	case syscall.SIGQUIT:
		return "QUIT"
	case syscall.SIGSEGV:
		return "SEGV"
	case syscall.SIGTERM:
		return "TERM"
	}
	return s.String()
}

func localOwner(fi fs.FileInfo) (uid, gid uint32, ok bool) {
	if st, is := fi.Sys().(*syscall.Stat_t); is {
		return st.Uid, st.Gid, true
	}
	return 0, 0, false
}

// unlink and rmdir are the system's own, so that neither removes what the other is for.
func unlink(name string) error { return retryEINTR(func() error { return syscall.Unlink(name) }) }
func rmdir(name string) error  { return retryEINTR(func() error { return syscall.Rmdir(name) }) }

func retryEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// noSpace reports whether err says that a file system or quota is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
