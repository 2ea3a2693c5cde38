package transport

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/punnet/punnet/internal/sftp"
)

// Limits on what the other side can make this process hold or wait for.
const (
	// MaxChannels is how many channels one connection has open at a time: sshd allows ten by
	// default, and a user's own sessions may share them. Where the server opens fewer, fewer are used.
	MaxChannels = 4
	// MaxNoise is how many bytes a login shell may print before the SFTP server speaks.
	MaxNoise = sftp.MaxNoise
	// MaxListing is how many bytes one directory listing may take on the wire.
	MaxListing = sftp.MaxListing
	// MaxName is how many bytes one name from a server may have.
	MaxName = sftp.MaxName
)

// Cmd is one command for Conn.Exec.
type Cmd struct {
	// Line is what the account's login shell is given, as one exec request. Locally it is what
	// /bin/sh is given.
	Line string
	// Stdin is sent to the command, and then end of file; nil is end of file at once. When the
	// command ends first, a Read under way is left to end by itself.
	Stdin io.Reader
	// Stdout and Stderr receive what the command writes; nil discards it. They are written to from
	// different goroutines. An error from either ends the command, so a writer that refuses its
	// limit + 1st byte bounds it.
	Stdout, Stderr io.Writer
	// Idle is how long the other side may move no byte while it owes some: all of Stdin was read
	// or a write of it waits. Zero takes the connection's limit, a negative value sets none.
	Idle time.Duration
}

// Conn is a way to one machine and account. Its methods may be called from many goroutines at once.
type Conn interface {
	// Exec runs a command and waits for it. It returns nil when the command exits with status 0,
	// an *ExitError when it does otherwise, and an *Error when it could not be started, followed
	// to its end, or was given up. When ctx ends, the command is asked to end (a TERM signal and
	// end of file), has a few seconds for it, and the error wraps ctx's.
	Exec(ctx context.Context, c Cmd) error
	// Files returns a view of the machine's files that lasts as long as ctx: every call through it,
	// and through what it opened, ends when ctx does. The first call opens the SFTP channel, later
	// ones share it. Where the account has no SFTP the error is ErrNoFiles.
	Files(ctx context.Context) (FS, error)
	// Server returns the SSH server's version string as the server sent it, "" where there is
	// none to know.
	Server() string
	// Way returns how the connection was made.
	Way() Way
	// Close ends what is under way and frees everything the Conn opened. It closes the SSH
	// connection only if this package made it.
	Close() error
}

// FS is a machine's files. Names are absolute slash paths, as the machine understands them;
// RealPath alone also takes ".", the directory where a session starts. All methods may be called
// from many goroutines at once, and are meant to be: over SFTP each costs at least one round trip,
// and 64 at once cost hardly more than one.
type FS interface {
	Reader
	Writer
}

// Reader is the half of FS that changes nothing.
type Reader interface {
	// Lstat describes name, which may be a link.
	Lstat(name string) (fs.FileInfo, error)
	// ReadDir lists a directory of at most max entries (max > 0), in no order, each as Lstat would
	// describe it. Past max it stops reading and returns the first max entries and ErrTooLarge.
	// Names are what the machine sent and may be hostile: they can hold slashes or be "..".
	ReadDir(name string, max int) ([]fs.FileInfo, error)
	// ReadLink returns where a link points.
	ReadLink(name string) (string, error)
	// ReadFile returns a file's content, of at most max bytes; ErrTooLarge when there is more. It
	// opens what it is given: that the name is a regular file is for the caller to have seen, since
	// opening a FIFO blocks a server.
	ReadFile(name string, max int64) ([]byte, error)
	// Open opens a file for reading, with ReadFile's caution.
	Open(name string) (File, error)
	// RealPath returns the absolute form of name, or of "."; links in it are resolved where the
	// server does that, as OpenSSH does.
	RealPath(name string) (string, error)
}

// Writer is the half of FS that changes things. Nothing here follows a link at the end of a name
// but Chmod and Chtimes.
type Writer interface {
	// Mkdir makes a directory with exactly perm; fs.ErrExist when the name is taken.
	Mkdir(name string, perm fs.FileMode) error
	// Create makes a file with exactly perm and opens it for writing; fs.ErrExist when the name is
	// taken. It is never more open than perm, not even while it is empty, where the server honours
	// permissions at creation, as OpenSSH does.
	Create(name string, perm fs.FileMode) (FileWriter, error)
	// Chmod sets the permission bits.
	Chmod(name string, perm fs.FileMode) error
	// Chtimes sets the access and modification time, with SFTP's precision of one second.
	Chtimes(name string, t time.Time) error
	// Rename moves oldname to newname within one file system. An existing file, link or empty
	// directory at newname is replaced where the machine can do that in one step, and is
	// fs.ErrExist where it cannot; a directory that is not empty is always fs.ErrExist.
	Rename(oldname, newname string) error
	// Remove removes a file or link, never a directory.
	Remove(name string) error
	// RemoveDir removes an empty directory. One that is not empty is fs.ErrExist.
	RemoveDir(name string) error
	// FreeSpace returns how many bytes this account may still write to the file system that holds
	// name; errors.ErrUnsupported where the machine does not say.
	FreeSpace(name string) (uint64, error)
}

// File is a file opened for reading.
type File interface {
	io.ReaderAt
	io.Closer
	// Stat describes the open file.
	Stat() (fs.FileInfo, error)
}

// FileWriter is a file being written from its beginning. Writes may still be on their way when
// Write returns: only a nil error from Close says that all arrived.
type FileWriter interface {
	io.Writer
	// SetModTime has Close give the file this modification and access time.
	SetModTime(t time.Time)
	// Close completes the file. It must be called also after a failed Write, and its error
	// includes the first failure of any earlier step.
	Close() error
}

// Owner returns the numeric user and group that own what fi describes, and whether the machine said.
func Owner(fi fs.FileInfo) (uid, gid uint32, ok bool) {
	if uid, gid, ok := sftp.Owner(fi); ok {
		return uid, gid, ok
	}
	return localOwner(fi)
}
