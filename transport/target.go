package transport

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/punnet/punnet/internal/display"
)

// Target names a machine and account as a user does. The zero Target is this machine.
type Target struct {
	User string // "" leaves it to the SSH configuration
	Host string // a name, an address, or an alias of the SSH configuration; "" is this machine
	Port int    // 0 leaves it to the SSH configuration
}

// localName is how the command line names this machine.
const localName = "local:"

// maxTarget is the longest host or user accepted, in bytes: a DNS name has at most 253.
const maxTarget = 255

var errPassword = errors.New("the URL has a password; leave it out: keys and ssh-agent are used instead")

// Local reports whether t is this machine.
func (t Target) Local() bool { return t == Target{} }

// String returns t in a form that ParseTarget reads back: "local:", "[user@]host", or
// "ssh://[user@]host:port" when there is a port.
func (t Target) String() string {
	if t.Local() {
		return localName
	}
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	user := ""
	if t.User != "" {
		user = t.User + "@"
	}
	if t.Port == 0 {
		return user + host
	}
	if t.User != "" {
		user = url.User(t.User).String() + "@"
	}
	return "ssh://" + user + host + ":" + strconv.Itoa(t.Port)
}

// ParseTarget reads "local:", an alias, "[user@]host", "[user@][v6 address]", or
// "ssh://[user@]host[:port]". It refuses whatever could become an option of ssh (a leading '-'),
// and control characters, white space, passwords and paths; the error says what to write instead.
func ParseTarget(s string) (Target, error) {
	t, err := parseTarget(s)
	if errors.Is(err, errPassword) {
		return Target{}, fmt.Errorf("target: %w", err) // without s, which holds it
	}
	if err != nil {
		return Target{}, fmt.Errorf("target %q: %w", display.Quote(s), err)
	}
	return t, nil
}

func parseTarget(s string) (Target, error) {
	if s == "" {
		return Target{}, errors.New("empty; write an ssh alias, user@host, ssh://user@host:port, or local: for this machine")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || display.Hidden(r) || r == unicode.ReplacementChar }) {
		return Target{}, errors.New("holds white space or a character that cannot be seen; write it without")
	}
	if s == localName {
		return Target{}, nil
	}
	if len(s) >= len("ssh://") && strings.EqualFold(s[:len("ssh://")], "ssh://") {
		return parseURL(s[len("ssh://"):])
	}
	var t Target
	t.Host = s
	// The last @ separates, as in ssh: a user name may hold one.
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		t.User, t.Host = s[:i], s[i+1:]
		if t.User == "" {
			return Target{}, errors.New("no user before the @; write user@host, or host alone")
		}
	}
	return t, t.check()
}

// parseURL reads what follows "ssh://".
func parseURL(s string) (Target, error) {
	var t Target
	s = strings.TrimSuffix(s, "/")
	if strings.ContainsAny(s, "/?#") {
		return Target{}, errors.New("has a path; write ssh://user@host:port and nothing after the port")
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, err := url.PathUnescape(s[:i])
		if err != nil {
			return Target{}, errors.New("the user is not properly %-encoded")
		}
		// The encoded form is what decides: a ':' that is meant as part of a name arrives as %3A.
		if strings.Contains(s[:i], ":") {
			return Target{}, errPassword
		}
		if user == "" {
			return Target{}, errors.New("no user before the @; write ssh://user@host, or ssh://host")
		}
		t.User, s = user, s[i+1:]
	}
	t, err := hostPort(t.User, s)
	if err != nil {
		return t, err
	}
	return t, t.check()
}

// hostPort splits host[:port], where an IPv6 address has to stand in brackets.
func hostPort(user, s string) (Target, error) {
	t := Target{User: user, Host: s}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		port, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || port == 0 {
			return Target{}, errors.New("the port is not a number from 1 to 65535; write ssh://host:22")
		}
		t.Host, t.Port = s[:i], int(port)
	}
	return t, nil
}

// check validates the parts of t and takes the brackets off an address.
func (t *Target) check() error {
	if h, ok := strings.CutPrefix(t.Host, "["); ok {
		inner, closed := strings.CutSuffix(h, "]")
		if addr, err := netip.ParseAddr(inner); !closed || err != nil || !addr.Is6() {
			return errors.New("what stands in brackets is not an IPv6 address; write [2001:db8::1]")
		}
		t.Host = inner
	} else if strings.Contains(t.Host, ":") && net.ParseIP(t.Host) == nil {
		return errors.New("holds a ':'; for a port write ssh://host:port")
	}
	for _, p := range []struct{ what, s string }{{"host", t.Host}, {"user", t.User}} {
		switch {
		case p.s == "" && p.what == "host":
			return errors.New("no host; write an ssh alias, user@host, or ssh://user@host:port")
		case strings.HasPrefix(p.s, "-"):
			return fmt.Errorf("the %s starts with '-' and would be read as an option", p.what)
		case len(p.s) > maxTarget:
			return fmt.Errorf("the %s is longer than %d bytes", p.what, maxTarget)
		case strings.Contains(p.s, "/") || strings.HasSuffix(p.s, `\`) || p.what == "host" && strings.Contains(p.s, `\`):
			return fmt.Errorf("the %s holds a slash; write the host alone, without a path", p.what)
		case strings.ContainsAny(p.s, "'\"`$;&|<>(){}*?!#,[]"):
			return fmt.Errorf("the %s holds a character that ssh refuses", p.what)
		case strings.ContainsFunc(p.s, func(r rune) bool { return unicode.IsSpace(r) || display.Hidden(r) || r == unicode.ReplacementChar }):
			return fmt.Errorf("the %s holds white space or a character that cannot be seen", p.what)
		}
	}
	if strings.Contains(t.Host, "@") {
		return errors.New("the host holds an '@'")
	}
	return nil
}
