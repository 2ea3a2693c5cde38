//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// Group gives cmd, which was made with a context, a process group of its own, all of which is killed
// where the context ends.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// EndGroup kills what cmd, after Group, has left behind.
func EndGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
