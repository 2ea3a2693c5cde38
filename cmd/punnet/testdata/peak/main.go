//go:build unix

// Command peak runs a command and prints on standard error how much memory it had at most, in KiB on
// Linux. A child starts with its parent's peak, so the parent has to be a small one.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	err := cmd.Run()
	fmt.Fprintln(os.Stderr, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	if err != nil {
		os.Exit(1)
	}
}
