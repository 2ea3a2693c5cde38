package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// resolveTimeout bounds `ssh -G`, which may run the commands of Match exec and ask the DNS.
const resolveTimeout = 10 * time.Second

// maxSettings bounds what `ssh -G` may print, in bytes. OpenSSH prints about 5 KiB.
const maxSettings = 1 << 20

// settings is what the SSH configuration says about one machine, with everything expanded.
type settings struct {
	Alias        string // as the user named it
	Host         string // HostName
	User         string
	Port         int
	HostKeyAlias string

	IdentityFiles  []string
	Unasked        []string // those of IdentityFiles that ssh looks for without being told
	IdentitiesOnly bool
	IdentityAgent  string // path of a socket, or "" for no agent
	PubkeyAuth     bool

	UserKnownHosts   []string
	GlobalKnownHosts []string
	StrictHostKey    string // "yes", "ask" or "accept-new"
	HashKnownHosts   bool

	Ciphers, MACs, Kex, HostKeyAlgorithms []string

	ProxyCommand string // unexpanded: its words depend on nothing but the fields above
	ProxyJump    string

	AddressFamily  string // "any", "inet" or "inet6"
	BindAddress    string
	ConnectTimeout time.Duration // 0 for none
	BatchMode      bool
}

// resolve returns what the SSH configuration says about t.
func resolve(ctx context.Context, t Target, o Options) (*settings, error) {
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		o.logger().Warn("no ssh program was found, so no ssh_config was read; using defaults", "target", t.String())
		return defaultSettings(t, o)
	}
	return resolveWith(ctx, ssh, t, o)
}

// resolveWith asks the ssh program at path.
func resolveWith(ctx context.Context, path string, t Target, o Options) (*settings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, resolveTimeout, fmt.Errorf("`ssh -G` took longer than %v", resolveTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, sshArgs(t, o)...)
	// A command of Match exec may outlive ssh and hold its output.
	cmd.WaitDelay = time.Second
	out, words := &firstBytes{max: maxSettings + 1}, &firstBytes{max: saidBytes * 2}
	cmd.Stdout, cmd.Stderr = out, words
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ended(ctx)
	case err != nil:
		return nil, fmt.Errorf("`ssh -G` failed: %s", said(fmt.Sprintf("%s (%v)", bytes.TrimSpace(words.b), err)))
	case len(out.b) > maxSettings:
		return nil, fmt.Errorf("`ssh -G` printed more than %d bytes", maxSettings)
	}
	raw, err := parseSettings(string(out.b))
	if err != nil {
		return nil, err
	}
	s, err := expandSettings(t, raw, o)
	if err != nil {
		return nil, err
	}
	// ssh drops a file of -i that is not there; it is kept here, to be spoken of if the login fails.
	for i, f := range o.IdentityFiles {
		if !slices.Contains(s.IdentityFiles, f) {
			s.IdentityFiles = slices.Insert(s.IdentityFiles, min(i, len(s.IdentityFiles)), f)
		}
	}
	return s, nil
}

// sshArgs is the command line that has ssh print its configuration. The host stands behind "--" and
// was refused by ParseTarget if it could be an option; check does it again for targets made by hand.
func sshArgs(t Target, o Options) []string {
	args := []string{"-G"}
	if o.ConfigFile != "" {
		args = append(args, "-F", o.ConfigFile)
	}
	for _, f := range o.IdentityFiles {
		args = append(args, "-i", f)
	}
	if u := firstOf(o.User, t.User); u != "" {
		args = append(args, "-l", u)
	}
	if o.Port != 0 {
		args = append(args, "-p", strconv.Itoa(o.Port))
	} else if t.Port != 0 {
		args = append(args, "-p", strconv.Itoa(t.Port))
	}
	for _, kv := range o.Options {
		args = append(args, "-o", kv)
	}
	return append(args, "--", t.Host)
}

// parseSettings reads the output of `ssh -G`: a lower-case keyword and its value on each line, some
// keywords several times.
func parseSettings(out string) (map[string][]string, error) {
	raw := make(map[string][]string)
	for line := range strings.Lines(out) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if !ok || key == "" {
			continue // a keyword without a value
		}
		raw[strings.ToLower(key)] = append(raw[strings.ToLower(key)], value)
	}
	if first(raw, "hostname") == "" || first(raw, "port") == "" {
		return nil, errors.New("`ssh -G` did not print a host name and port")
	}
	return raw, nil
}

func first(raw map[string][]string, key string) string {
	if v := raw[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// expandSettings makes settings of what ssh printed, and expands what ssh leaves as it was written.
func expandSettings(t Target, raw map[string][]string, o Options) (*settings, error) {
	port, err := strconv.ParseUint(first(raw, "port"), 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("port %q of the ssh configuration", first(raw, "port"))
	}
	s := &settings{
		Alias: t.Host, Host: first(raw, "hostname"), User: first(raw, "user"), Port: int(port),
		HostKeyAlias:   none(first(raw, "hostkeyalias")),
		IdentitiesOnly: yes(first(raw, "identitiesonly")),
		PubkeyAuth:     first(raw, "pubkeyauthentication") == "" || !no(first(raw, "pubkeyauthentication")),
		StrictHostKey:  strictness(first(raw, "stricthostkeychecking")),
		HashKnownHosts: yes(first(raw, "hashknownhosts")),
		ProxyCommand:   none(first(raw, "proxycommand")), ProxyJump: none(first(raw, "proxyjump")),
		AddressFamily: first(raw, "addressfamily"), BindAddress: none(first(raw, "bindaddress")),
		BatchMode: yes(first(raw, "batchmode")),
		Ciphers:   list(first(raw, "ciphers")), MACs: list(first(raw, "macs")),
		Kex: list(first(raw, "kexalgorithms")), HostKeyAlgorithms: list(first(raw, "hostkeyalgorithms")),
	}
	if n, err := strconv.Atoi(first(raw, "connecttimeout")); err == nil && n > 0 {
		s.ConnectTimeout = time.Duration(n) * time.Second
	}
	x, err := newExpander(s, o)
	if err != nil {
		return nil, err
	}
	for _, f := range raw["identityfile"] {
		if none(f) == "" {
			continue
		}
		full, err := x.path(f)
		if err != nil {
			return nil, fmt.Errorf("IdentityFile: %w", err)
		}
		s.IdentityFiles = append(s.IdentityFiles, full)
		if isDefaultIdentity(f) {
			s.Unasked = append(s.Unasked, full)
		}
	}
	if s.IdentityAgent, err = x.agent(first(raw, "identityagent")); err != nil {
		return nil, fmt.Errorf("IdentityAgent: %w", err)
	}
	s.UserKnownHosts = x.files(first(raw, "userknownhostsfile"))
	s.GlobalKnownHosts = x.files(first(raw, "globalknownhostsfile"))
	return s, nil
}

// defaultSettings is what ssh would use without any configuration.
func defaultSettings(t Target, o Options) (*settings, error) {
	if o.ConfigFile != "" || len(o.Options) > 0 {
		o.logger().Warn("without an ssh program, -F and -o have no effect", "target", t.String())
	}
	s := &settings{
		Alias: t.Host, Host: t.Host, User: firstOf(o.User, t.User), Port: 22,
		PubkeyAuth: true, StrictHostKey: "ask", AddressFamily: "any",
	}
	switch {
	case o.Port != 0:
		s.Port = o.Port
	case t.Port != 0:
		s.Port = t.Port
	}
	if s.User == "" {
		u, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("finding the name of this user: %w", err)
		}
		s.User = u.Username
		if i := strings.LastIndexByte(s.User, '\\'); i >= 0 {
			s.User = s.User[i+1:] // Windows: DOMAIN\user
		}
	}
	x, err := newExpander(s, o)
	if err != nil {
		return nil, err
	}
	s.IdentityFiles = o.IdentityFiles
	if len(s.IdentityFiles) == 0 {
		for _, name := range defaultIdentities() {
			s.Unasked = append(s.Unasked, filepath.Join(x.home, ".ssh", name))
		}
		s.IdentityFiles = s.Unasked
	}
	s.UserKnownHosts = []string{filepath.Join(x.home, ".ssh", "known_hosts"), filepath.Join(x.home, ".ssh", "known_hosts2")}
	if runtime.GOOS != "windows" {
		s.GlobalKnownHosts = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	}
	s.IdentityAgent, err = x.agent("")
	return s, err
}

// defaultIdentities are the private keys ssh tries when none is configured, in ~/.ssh.
func defaultIdentities() []string {
	return []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa"}
}

func isDefaultIdentity(f string) bool {
	for _, name := range defaultIdentities() {
		if f == "~/.ssh/"+name {
			return true
		}
	}
	return false
}

// strictness folds ssh's spellings. "no" becomes "accept-new": unknown keys are recorded, and a
// changed key is refused all the same.
func strictness(s string) string {
	switch strings.ToLower(s) {
	case "true", "yes":
		return "yes"
	case "accept-new", "no", "off", "false":
		return "accept-new"
	}
	return "ask"
}

func yes(s string) bool { return strings.EqualFold(s, "yes") || strings.EqualFold(s, "true") }
func no(s string) bool  { return strings.EqualFold(s, "no") || strings.EqualFold(s, "false") }

// none turns ssh's word for nothing into "".
func none(s string) string {
	if strings.EqualFold(s, "none") {
		return ""
	}
	return s
}

func list(s string) []string {
	if s = none(s); s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
