package sshconfig

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// expander replaces what ssh_config writes short: ~, %tokens and ${VARIABLES}.
type expander struct {
	home   string
	tokens map[byte]string
	getenv func(string) (string, bool)
}

// newExpander returns the expander for one machine's settings, of which it uses the names.
func newExpander(s *Settings, q Query) (*expander, error) {
	home, err := q.home()
	if err != nil {
		return nil, err
	}
	name, uid := "", ""
	if u, err := user.Current(); err == nil {
		name, uid = u.Username, u.Uid
	}
	local, err := os.Hostname()
	if err != nil {
		local = "localhost"
	}
	short, _, _ := strings.Cut(local, ".")
	port := strconv.Itoa(s.Port)
	// ssh defines %C so; it is a name, and nothing rests on SHA-1.
	jumps := strings.Join(s.ProxyJump, ",")
	sum := sha1.Sum([]byte(local + s.Host + port + s.User + jumps))
	return &expander{
		home: home,
		tokens: map[byte]string{
			'%': "%", 'C': hex.EncodeToString(sum[:]), 'd': home, 'h': s.Host, 'i': uid, 'j': jumps,
			'k': firstOf(s.HostKeyAlias, s.Alias), 'L': short, 'l': local, 'n': s.Alias, 'p': port, 'r': s.User, 'u': name,
		},
		getenv: os.LookupEnv,
	}, nil
}

// expand replaces %tokens and, if variables is set, ${NAME}, in one pass: what was put in is not
// looked through again. A token or variable that means nothing is an error, as it is for ssh.
func (x *expander) expand(s string, variables bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			if i++; i == len(s) {
				return "", fmt.Errorf("%q ends in a lone %%", s)
			}
			v, ok := x.tokens[s[i]]
			if !ok {
				return "", fmt.Errorf("%q holds %q, which means nothing here", s, s[i-1:i+1])
			}
			b.WriteString(v)
		case variables && strings.HasPrefix(s[i:], "${"):
			name, _, closed := strings.Cut(s[i+2:], "}")
			if !closed || name == "" {
				return "", fmt.Errorf("%q holds ${ without a name and }", s)
			}
			v, ok := x.getenv(name)
			if !ok {
				return "", fmt.Errorf("environment variable %q is not set", name)
			}
			b.WriteString(v)
			i += len("${}") + len(name) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// tilde replaces a leading ~ or ~user.
func (x *expander) tilde(s string) (string, error) {
	if !strings.HasPrefix(s, "~") {
		return s, nil
	}
	name, rest, _ := strings.Cut(s[1:], "/")
	home := x.home
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		home = u.HomeDir
	}
	return filepath.Join(home, rest), nil
}

// path expands a file name: ~ first, then tokens and variables, as ssh does.
func (x *expander) path(s string) (string, error) {
	s, err := x.tilde(s)
	if err != nil {
		return "", err
	}
	return x.expand(s, true)
}

// agent returns the path of the agent's socket that IdentityAgent means, "" for no agent.
func (x *expander) agent(s string) (string, error) {
	switch {
	case s == "" || s == "SSH_AUTH_SOCK":
		sock, _ := x.getenv("SSH_AUTH_SOCK")
		if sock == "" && runtime.GOOS == "windows" {
			sock = `\\.\pipe\openssh-ssh-agent` // where Windows' own agent listens
		}
		return sock, nil
	case none(s) == "":
		return "", nil
	case strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "${"):
		sock, _ := x.getenv(s[1:])
		return sock, nil
	}
	return x.path(s)
}

// paths expands file names; "none" is no name.
func (x *expander) paths(names []string) ([]string, error) {
	var full []string
	for _, name := range names {
		if none(name) == "" {
			continue
		}
		f, err := x.path(name)
		if err != nil {
			return nil, err
		}
		full = append(full, f)
	}
	return full, nil
}

// tildes expands a leading ~ of file names, all that ssh leaves of them.
func (x *expander) tildes(names []string) []string {
	var full []string
	for _, name := range names {
		if none(name) == "" {
			continue
		}
		if f, err := x.tilde(name); err == nil {
			full = append(full, f)
		}
	}
	return full
}
