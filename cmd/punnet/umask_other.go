//go:build !unix

package main

// private does nothing: there is no umask here.
func private() {}
