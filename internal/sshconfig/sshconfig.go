// Package sshconfig says what a user's SSH configuration means for one machine.
//
// The user's own ssh program is asked (`ssh -G`), so that Match, Include, canonical names and whatever
// else its version knows mean what they mean to it; what it prints as it was written, ~, %tokens and
// ${VARIABLES}, is expanded here. Where there is no such program the files are read here, by the same
// rules but for what would run or ask something, which is left out with a warning.
package sshconfig

import (
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/punnet/punnet/internal/display"
)

// Query is the question what the configuration says: a machine, and what ssh's command line would
// hold. The zero value of all but Host does what ssh does.
type Query struct {
	Host          string   // as the user named it; never begins with '-'
	User          string   // ssh -l
	Port          int      // ssh -p
	ConfigFile    string   // ssh -F
	IdentityFiles []string // ssh -i
	Options       []string // ssh -o, each Key=Value

	// Home stands in for the account's home directory.
	Home string
	// Log receives what was left out and why; it is not nil.
	Log *slog.Logger
}

// Args is q as arguments of the ssh program, the host behind "--" at their end.
func (q Query) Args() []string {
	var args []string
	if q.ConfigFile != "" {
		args = append(args, "-F", q.ConfigFile)
	}
	for _, f := range q.IdentityFiles {
		args = append(args, "-i", f)
	}
	if q.User != "" {
		args = append(args, "-l", q.User)
	}
	if q.Port != 0 {
		args = append(args, "-p", strconv.Itoa(q.Port))
	}
	for _, kv := range q.Options {
		args = append(args, "-o", kv)
	}
	return append(args, "--", q.Host)
}

// check refuses names that a shell would read as more than a name: ProxyCommand and Match exec put
// them into commands, unquoted. OpenSSH 9.6 and later refuse the same, older ones do not.
func (q Query) check() error {
	for _, name := range []struct{ what, text, not string }{
		{"host", q.Host, "'`\"$\\;&<>|(){}"},
		{"user", q.User, "'`\"$;&<>|(){}"},
	} {
		bad := strings.ContainsAny(name.text, name.not) || strings.HasPrefix(name.text, "-") ||
			strings.HasSuffix(name.text, `\`) || strings.ContainsFunc(name.text, unicode.IsControl) ||
			strings.ContainsFunc(name.text, unicode.IsSpace)
		if bad {
			return fmt.Errorf("the %s %q holds what a shell would read as more than a name", name.what, display.Said(name.text))
		}
	}
	return nil
}

// key is a text that is the same for equal questions only.
func (q Query) key() string {
	return fmt.Sprintf("%q %q %d %q %q %q %q", q.Host, q.User, q.Port, q.ConfigFile, q.IdentityFiles, q.Options, q.Home)
}

// home is the home directory as ssh understands it: the account's, whatever HOME says.
func (q Query) home() (string, error) {
	if q.Home != "" {
		return q.Home, nil
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		return u.HomeDir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the home directory: %w", err)
	}
	return home, nil
}

// Settings is what the configuration says about one machine, with everything expanded.
type Settings struct {
	Alias        string // as the user named it
	Host         string // HostName
	User         string
	Port         int
	HostKeyAlias string

	// How it is reached.
	ControlPath     string   // of a connection to share, or ""
	ProxyCommand    string   // expanded, for a shell; "" for none
	ProxyUseFdpass  bool     // ProxyCommand hands over a socket instead of being one
	ProxyJump       []string // machines to go through, each [user@]host[:port] or an ssh URL
	AddressFamily   string   // "any", "inet" or "inet6"
	BindAddress     string
	BindInterface   string
	ConnectTimeout  time.Duration // 0 for none
	ConnectAttempts int           // at least 1
	Compression     bool
	ForkAfterAuth   bool // ssh is to go into the background once it is let in

	// How it is known.
	UserKnownHosts    []string
	GlobalKnownHosts  []string
	KnownHostsCommand string
	RevokedHostKeys   string // a file of keys or a revocation list, "" for none
	StrictHostKey     string // "yes", "ask" or "accept-new"
	HashKnownHosts    bool

	// How we are known.
	IdentityFiles   []string
	Unasked         []string // those of IdentityFiles that ssh looks for without being told
	Certificates    []string // CertificateFile
	IdentitiesOnly  bool
	IdentityAgent   string // path of a socket, or "" for no agent
	AddKeysToAgent  string // "no", "yes", "ask", "confirm", or a lifetime
	PKCS11Provider  string // library, "" for none
	PreferredAuth   []string
	PubkeyAuth      bool
	PasswordAuth    bool
	InteractiveAuth bool // keyboard-interactive
	GSSAPIAuth      bool
	HostbasedAuth   bool
	PasswordPrompts int // how often a password is asked for
	BatchMode       bool

	// What is spoken.
	Ciphers, MACs, Kex, HostKeyAlgorithms, PubkeyAlgorithms, CASignatureAlgorithms []string
	RequiredRSASize                                                                int // bits, 0 for no demand

	// What happens on the connection.
	AliveInterval time.Duration // 0 for the caller's own
	AliveCountMax int
	SendEnv       []string // patterns of variable names
	SetEnv        []string // NAME=value each

	// Sources is what decided, for a person: "command line: KEYWORD" of each option, "FILE" of each file
	// read, and "FILE:LINE: Host PATTERN" and "FILE:LINE: Match CRITERIA" of each block that applies.
	// Of a lone "Match all" ssh does not say where it stands.
	Sources []string
}
