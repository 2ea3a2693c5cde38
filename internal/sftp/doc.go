// Package sftp is a client of the SSH file transfer protocol, version 3, over any pair of streams: it
// knows nothing of SSH.
//
// Start speaks the opening words and returns a Client; Client.Files returns a view of the server's
// files that lasts as long as a context. Every call waits for as few round trips as the protocol lets
// it, and calls of many goroutines are in flight together.
//
// A server decides nothing about memory: a reply is bounded by what was asked for, a listing by
// entries and bytes, a file by its caller's limit. Its words are quoted and cut before they stand in
// an error.
//
// # Errors
//
// File operations fail with *fs.PathError or *os.LinkError, for which errors.Is with fs.ErrExist,
// fs.ErrNotExist, fs.ErrPermission, errors.ErrUnsupported and the values below holds where it is so.
// SFTP has one code for most failures, so the server is asked again what it was.
package sftp

import "errors"

// Limits on what a server can make this process hold or wait for.
const (
	// MaxNoise is how many bytes may come before the server's version.
	MaxNoise = 64 << 10
	// MaxListing is how many bytes one directory listing may take on the wire.
	MaxListing = 8 << 20
	// MaxName is how many bytes one name from a server may have.
	MaxName = 4096
)

// What went wrong, for errors.Is.
var (
	// ErrTimeout is a server that owes a reply and sent nothing for the idle limit.
	ErrTimeout = errors.New("timed out")
	// ErrLost is a server or stream that ended while it was needed.
	ErrLost = errors.New("connection lost")
	// ErrClosed is a Client that was closed.
	ErrClosed = errors.New("connection closed")
	// ErrProtocol is a server that does not keep to the protocol or to its limits.
	ErrProtocol = errors.New("protocol violated")
	// ErrTooLarge is a directory or file above the limit it was to be read with.
	ErrTooLarge = errors.New("larger than the limit")
	// ErrNoSpace is a file system without room, or an account without quota.
	ErrNoSpace = errors.New("no space left")
)
