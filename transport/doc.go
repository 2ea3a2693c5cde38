// Package transport reaches a machine: its files and its commands.
//
// A Conn is one way to one machine. Local is this machine; Dial makes an SSH connection of its own,
// configured the way the user's ssh is; NewConn borrows a connection that somebody else made, and
// Lazy asks for one when it is needed, and for another when it was lost. All of them offer the same
// two things: Exec runs one line in the account's login shell, and Files is the account's file
// system, by SFTP where the machine is not this one. The package knows nothing of skills, bundles or
// caches.
//
// # Ways
//
// Dial shares the connection of a live ControlPath socket of this user, connects by itself, or has
// the user's own ssh hold a connection where the configuration needs what the library cannot do.
// It knows which before it connects; Options.Way settles it. Everything above is the same on each,
// but that the server's version is not known over another program's connection. The user's ssh ends
// with the Conn, and with this process even if that is killed. A user's master is left alive and is
// sent no keepalives; where the server refused a channel on it, a small process holds the socket open
// until the master ends, since OpenSSH would end the master, and all sessions on it, if it were closed.
// Only a kill of this process within the round trip that opens a channel cannot be helped.
//
// # Promises
//
// Nothing waits for ever. Every call ends when its context does, and a connection on which the
// other side owes bytes and sends none is given up after Options.Idle.
//
// A server decides nothing here about memory: replies are bounded by what was asked for, listings
// by entries and bytes, its words in errors by length.
//
// Host keys are always checked. There is no option that turns that off.
//
// A failed authentication is never tried again.
//
// Text that a server or a file wrote is quoted before it becomes part of an error or a log line.
//
// # Errors
//
// Failures of the way are *Error, whose Kind is one of the Err values below and can be asked for
// with errors.Is. A command that ran and failed is *ExitError. File operations fail with
// *fs.PathError or *os.LinkError, for which errors.Is with fs.ErrExist, fs.ErrNotExist,
// fs.ErrPermission and ErrNoSpace holds on every kind of connection where it is so. Hint finds what
// a person can do about an error.
package transport
