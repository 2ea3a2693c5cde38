package transport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sftp"
)

// What went wrong, for errors.Is.
var (
	// ErrConfig is an SSH configuration that cannot be used as it stands.
	ErrConfig = errors.New("ssh configuration cannot be used")
	// ErrUnreachable is a name that does not resolve or an address that does not answer.
	ErrUnreachable = errors.New("unreachable")
	// ErrHostKey is a host key that is not the one known, or not known. See HostKeyError.
	ErrHostKey = errors.New("host key not accepted")
	// ErrAuth is an account that would not let us in. See AuthError.
	ErrAuth = errors.New("authentication failed")
	// ErrTimeout is a limit of this package that passed; a context's own deadline is
	// context.DeadlineExceeded.
	ErrTimeout = sftp.ErrTimeout
	// ErrLost is a connection that ended while it was needed.
	ErrLost = sftp.ErrLost
	// ErrClosed is a Conn that was closed by its user.
	ErrClosed = sftp.ErrClosed
	// ErrRefused is a server that would not open another channel.
	ErrRefused = errors.New("refused by the server")
	// ErrNoExec is an account or machine that runs no commands.
	ErrNoExec = errors.New("no commands can be run there")
	// ErrNoFiles is an account that offers no SFTP.
	ErrNoFiles = errors.New("no SFTP there")
	// ErrProtocol is a server that does not keep to the protocol or to its limits.
	ErrProtocol = sftp.ErrProtocol
	// ErrTooLarge is a directory or file above the limit it was to be read with.
	ErrTooLarge = sftp.ErrTooLarge
	// ErrNoSpace is a file system without room, or an account without quota.
	ErrNoSpace = sftp.ErrNoSpace
)

// Error is a failure to reach a machine or to keep the way to it open.
type Error struct {
	Op     string // what was being done: "resolve", "dial", "handshake", "exec", "files", ...
	Target Target // the machine as the user named it
	Addr   string // the address that was used, host:port, if one was known
	Kind   error  // one of this package's Err values, or nil
	Err    error  // the cause, or nil
	Advice string // what a person can do, or ""

	early bool // the connection was over before anything was asked
}

// Error returns one line: operation, target, address, kind and cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Op, display.Quote(e.Target.String()))
	if e.Addr != "" && e.Addr != e.Target.String() {
		fmt.Fprintf(&b, " (%s)", display.Quote(e.Addr))
	}
	if e.Kind != nil && !saysItself(e.Err, e.Kind) {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// saysItself reports whether err's own text begins with kind, so that it is not said twice.
func saysItself(err, kind error) bool {
	return err != nil && strings.HasPrefix(err.Error(), kind.Error())
}

// Unwrap returns Kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}

// Hint returns Advice.
func (e *Error) Hint() string { return e.Advice }

// Hint returns what a person can do about err: the deepest advice in its chain, or "".
func Hint(err error) string {
	if err == nil {
		return ""
	}
	var below []error
	switch u := err.(type) {
	case interface{ Unwrap() []error }:
		below = u.Unwrap()
	case interface{ Unwrap() error }:
		below = []error{u.Unwrap()}
	}
	for _, e := range below {
		if h := Hint(e); h != "" {
			return h
		}
	}
	if h, ok := err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}

// ExitError is a command that ran and did not exit with status 0.
type ExitError struct {
	Status int    // the exit status, -1 when a signal ended the command
	Signal string // the signal's name without SIG, or ""
}

// Error says how the command ended.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "the command was ended by signal " + display.Quote(e.Signal)
	}
	return fmt.Sprintf("the command exited with status %d", e.Status)
}

// HostKeyError is a server whose key was not accepted. errors.Is(err, ErrHostKey) holds.
type HostKeyError struct {
	Host        string   // what known_hosts was asked for, as written there: name, [name]:port, or alias
	Addr        string   // the address that was used
	KeyType     string   // the key's type, such as ssh-ed25519
	Fingerprint string   // the key's SHA256 fingerprint, as ssh-keygen -l prints it
	Changed     bool     // another key is on record: someone may be in between
	Revoked     bool     // the key is on record as revoked
	Known       []string // where the records are, as file:line
	Record      string   // the shell command that would record or mend the entry
}

// Error says which host, what is wrong, and the fingerprint.
func (e *HostKeyError) Error() string {
	switch {
	case e.Revoked:
		return fmt.Sprintf("the %s key of %s is marked as revoked in %s: %s",
			e.KeyType, display.Quote(e.Host), display.Quote(strings.Join(e.Known, ", ")), e.Fingerprint)
	case e.Changed:
		return fmt.Sprintf("the %s key of %s is not the one on record in %s: got %s; someone may be listening in",
			e.KeyType, display.Quote(e.Host), display.Quote(strings.Join(e.Known, ", ")), e.Fingerprint)
	}
	return fmt.Sprintf("the %s key of %s is not known: %s", e.KeyType, display.Quote(e.Host), e.Fingerprint)
}

// Is makes every HostKeyError an ErrHostKey.
func (e *HostKeyError) Is(target error) bool { return target == ErrHostKey }

// Hint says how to check and record the key.
func (e *HostKeyError) Hint() string {
	switch {
	case e.Revoked:
		return "do not connect; ask whoever runs the machine for its new key"
	case e.Changed:
		return "ask whoever runs the machine whether its key is now " + e.Fingerprint +
			"; if it is, remove the old one with: " + display.Quote(e.Record)
	}
	return "compare " + e.Fingerprint + " with the machine's own, then record it with: " + display.Quote(e.Record)
}

// AuthError is an account that accepted nothing we had. errors.Is(err, ErrAuth) holds.
type AuthError struct {
	User, Host string
	Tried      []string // what was tried, in order: keys by file or agent comment and fingerprint, other methods by name
	Skipped    []string // what was not, each with the reason: keys not offered or not signed with, questions not answered
	Methods    []string // the methods that the server would have taken, as it named them
	Err        error    // the server's or the library's words, and any *KeyError
	Advice     string   // what a person can do, or ""
}

// Error says who was refused, what was tried and what was not.
func (e *AuthError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "authentication failed for %s at %s", display.Quote(e.User), display.Quote(e.Host))
	if len(e.Tried) == 0 {
		b.WriteString("; nothing to offer")
	} else {
		fmt.Fprintf(&b, "; tried %s", display.Quote(strings.Join(e.Tried, ", ")))
	}
	if len(e.Skipped) > 0 {
		fmt.Fprintf(&b, "; not used: %s", display.Quote(strings.Join(e.Skipped, ", ")))
	}
	if len(e.Methods) > 0 {
		fmt.Fprintf(&b, "; the server takes %s", display.Quote(strings.Join(e.Methods, ", ")))
	}
	if e.Err != nil {
		fmt.Fprintf(&b, " (%s)", display.Said(e.Err.Error()))
	}
	return b.String()
}

// Is makes every AuthError an ErrAuth.
func (e *AuthError) Is(target error) bool { return target == ErrAuth }

// Unwrap returns the cause.
func (e *AuthError) Unwrap() error { return e.Err }

// Hint returns Advice.
func (e *AuthError) Hint() string { return e.Advice }

// KeyError is a private key file that could not be used.
type KeyError struct {
	Path      string // the file, or what the agent calls the key
	Encrypted bool   // it needs a passphrase, and there was none that fits
	Err       error  // why it could not be used; nil where nobody could be asked for the passphrase
}

// Error names the file and the reason.
func (e *KeyError) Error() string {
	if e.Encrypted && e.Err == nil {
		return fmt.Sprintf("%s is encrypted and there is nobody to ask for its passphrase", display.Quote(e.Path))
	}
	return fmt.Sprintf("key %s: %s", display.Quote(e.Path), display.Said(fmt.Sprint(e.Err)))
}

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }
