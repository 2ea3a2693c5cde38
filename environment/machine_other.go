//go:build !windows

package environment

// localMachine returns nothing: the id is in a file, or what a command says.
func localMachine() string { return "" }
