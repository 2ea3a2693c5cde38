//go:build unix

package main

import "syscall"

// private makes what this process creates its user's alone, whatever umask it was started with: one
// of 777 would even keep the process out of what it has just made.
func private() { syscall.Umask(0o077) }
