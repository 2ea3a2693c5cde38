//go:build !unix

package sshconfig

// trusted accepts every file: who may write one is not in its mode here.
func trusted(string) error { return nil }
