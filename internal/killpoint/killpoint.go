//go:build linux && (amd64 || arm64)

// Package killpoint ends a program at a chosen one of its state-changing system calls, so that a
// test can look at what a crash leaves behind at every point where one could happen.
package killpoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mutating names the system calls that can change what is on a disk. openat and write change it
// only with some arguments; see changes.
// The map is never changed.
var mutating = map[uint64]string{
	unix.SYS_OPENAT: "openat", unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_WRITEV: "writev",
	unix.SYS_COPY_FILE_RANGE: "copy_file_range", unix.SYS_SENDFILE: "sendfile", unix.SYS_SPLICE: "splice",
	unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_MKDIRAT: "mkdirat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_RENAMEAT: "renameat", unix.SYS_UNLINKAT: "unlinkat",
	unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHMODAT: "fchmodat",
	unix.SYS_FCHMODAT2: "fchmodat2", unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UTIMENSAT: "utimensat", unix.SYS_FLOCK: "flock",
}

// syscallInfo is what PTRACE_GET_SYSCALL_INFO fills in for a stop at the entry to a call.
type syscallInfo struct {
	op   uint8
	_    [3]uint8
	arch uint32
	ip   uint64
	sp   uint64
	nr   uint64
	args [6]uint64
	_    [8]uint64 // room for what later kernels add
}

const (
	getSyscallInfo   = 0x420e // PTRACE_GET_SYSCALL_INFO, Linux 5.3
	syscallInfoEntry = 1
)

// Run runs cmd and kills it with SIGKILL as it enters its nth state-changing system call, counted
// from 1 over all its threads, before the call has any effect. It returns which call that was. If
// the program ended by itself before, killed is false and the error is how it ended, as cmd.Wait
// would tell it.
func Run(cmd *exec.Cmd, n int) (call string, killed bool, err error) {
	// Only the thread that traces may wait.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	pid := cmd.Process.Pid
	var ws unix.WaitStatus
	if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err != nil {
		return "", false, err
	}
	options := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(pid, options); err != nil {
		return "", false, fmt.Errorf("trace: %w", err)
	}
	if err := unix.PtraceSyscall(pid, 0); err != nil {
		return "", false, fmt.Errorf("trace: %w", err)
	}
	for {
		tid, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", false, fmt.Errorf("trace: %w", err)
		}
		switch {
		case ws.Exited() || ws.Signaled():
			if tid != pid {
				continue
			}
			cmd.Process.Release()
			return call, killed, ended(ws, killed)
		case ws.Stopped() && ws.StopSignal() == unix.SIGTRAP|0x80:
			if name, ok := entering(tid); ok && !killed {
				if n--; n == 0 {
					call, killed = name, true
					unix.Kill(pid, unix.SIGKILL)
				}
			}
			unix.PtraceSyscall(tid, 0)
		default:
			unix.PtraceSyscall(tid, forward(ws))
		}
	}
}

func ended(ws unix.WaitStatus, killed bool) error {
	switch {
	case killed || ws.ExitStatus() == 0:
		return nil
	case ws.Signaled():
		return fmt.Errorf("ended by %v", ws.Signal())
	}
	return fmt.Errorf("exit status %d", ws.ExitStatus())
}

// forward returns the signal that a stopped thread is to go on with.
func forward(ws unix.WaitStatus) int {
	if !ws.Stopped() || ws.StopSignal() == unix.SIGTRAP || ws.StopSignal() == unix.SIGSTOP {
		return 0 // a stop of the tracing itself
	}
	return int(ws.StopSignal())
}

// entering reports whether a thread is about to enter a state-changing call, and which.
func entering(tid int) (string, bool) {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, getSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 || info.op != syscallInfoEntry {
		return "", false
	}
	name, ok := mutating[info.nr]
	if !ok || !changes(tid, info) {
		return "", false
	}
	return name, true
}

// changes tells the calls that touch files from those of the same name that do not.
func changes(tid int, info syscallInfo) bool {
	switch info.nr {
	case unix.SYS_OPENAT:
		return info.args[2]&(unix.O_CREAT|unix.O_TRUNC) != 0
	case unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64:
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tid, info.args[0]))
		return err == nil && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/dev/")
	}
	return true
}
