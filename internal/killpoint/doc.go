//go:build !linux || !(amd64 || arm64)

// Package killpoint needs Linux's ptrace, on amd64 or arm64; elsewhere it is empty.
package killpoint
