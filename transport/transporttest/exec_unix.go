//go:build unix

package transporttest

import (
	"os"
	"os/exec"
	"syscall"
)

// shell prepares /bin/sh for line.
func shell(line string) *exec.Cmd { return program([]string{"/bin/sh", "-c", line}) }

// program prepares a program, in a process group of its own.
func program(argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// signal sends a signal by its SSH name to everything the command started.
func (p *process) signal(name string) {
	sig, ok := map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
		"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}[name]
	if ok {
		p.send(sig)
	}
}

func (p *process) kill() { p.send(syscall.SIGKILL) }

func (p *process) send(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.p != nil {
		_ = syscall.Kill(-p.p.Pid, sig)
	}
}

func signalOf(st *os.ProcessState) string {
	ws, ok := st.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return ""
	}
	switch ws.Signal() {
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGKILL:
		return "KILL"
	case syscall.SIGPIPE:
		return "PIPE"
	case syscall.SIGTERM:
		return "TERM"
	}
	return "USR1"
}
