package sshconfig

import (
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

	"github.com/punnet/punnet/internal/proc"
)

// askTimeout bounds `ssh -G`, which may run the commands of Match exec and ask the DNS.
const askTimeout = 10 * time.Second

// maxAnswer bounds what `ssh -G` may print, in bytes. OpenSSH prints about 5 KiB.
const maxAnswer = 1 << 20

// ask asks the ssh program at path.
func ask(ctx context.Context, path string, q Query) (*Settings, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, fmt.Errorf("`ssh -G` took longer than %v", askTimeout))
	defer cancel()
	out, err := proc.Output(ctx, exec.CommandContext(ctx, path, append([]string{"-G"}, q.Args()...)...), maxAnswer)
	if err != nil {
		return nil, err
	}
	raw, err := parseSettings(string(out))
	if err != nil {
		return nil, err
	}
	s, err := expandSettings(raw, q)
	if err != nil {
		return nil, err
	}
	// ssh drops a file of -i that is not there; it is kept here, to be spoken of if the login fails.
	for i, f := range q.IdentityFiles {
		if !slices.Contains(s.IdentityFiles, f) {
			s.IdentityFiles = slices.Insert(s.IdentityFiles, min(i, len(s.IdentityFiles)), f)
		}
	}
	return s, nil
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
func expandSettings(raw map[string][]string, q Query) (*Settings, error) {
	port, err := strconv.ParseUint(first(raw, "port"), 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("port %q of the ssh configuration", first(raw, "port"))
	}
	s := &Settings{
		Alias: q.Host, Host: first(raw, "hostname"), User: first(raw, "user"), Port: int(port),
		HostKeyAlias:   none(first(raw, "hostkeyalias")),
		ControlPath:    none(first(raw, "controlpath")),
		ProxyUseFdpass: yes(first(raw, "proxyusefdpass")), ProxyJump: list(first(raw, "proxyjump")),
		AddressFamily: first(raw, "addressfamily"), BindAddress: none(first(raw, "bindaddress")),
		BindInterface:   none(first(raw, "bindinterface")),
		ConnectTimeout:  seconds(raw, "connecttimeout"),
		ConnectAttempts: max(1, number(raw, "connectionattempts", 1)),
		Compression:     yes(first(raw, "compression")),
		ForkAfterAuth:   yes(first(raw, "forkafterauthentication")),

		KnownHostsCommand: none(first(raw, "knownhostscommand")),
		StrictHostKey:     strictness(first(raw, "stricthostkeychecking")),
		HashKnownHosts:    yes(first(raw, "hashknownhosts")),

		IdentitiesOnly: yes(first(raw, "identitiesonly")),
		AddKeysToAgent: firstOf(first(raw, "addkeystoagent"), "no"),
		PKCS11Provider: none(first(raw, "pkcs11provider")),
		PreferredAuth:  list(first(raw, "preferredauthentications")),
		// "unbound" and "host-bound" are forms of yes.
		PubkeyAuth:      !no(first(raw, "pubkeyauthentication")),
		PasswordAuth:    !no(first(raw, "passwordauthentication")),
		InteractiveAuth: !no(first(raw, "kbdinteractiveauthentication")) && !no(first(raw, "challengeresponseauthentication")),
		GSSAPIAuth:      yes(first(raw, "gssapiauthentication")),
		HostbasedAuth:   yes(first(raw, "hostbasedauthentication")),
		PasswordPrompts: number(raw, "numberofpasswordprompts", 3),
		BatchMode:       yes(first(raw, "batchmode")),

		Ciphers: list(first(raw, "ciphers")), MACs: list(first(raw, "macs")),
		Kex: list(first(raw, "kexalgorithms")), HostKeyAlgorithms: list(first(raw, "hostkeyalgorithms")),
		PubkeyAlgorithms:      list(firstOf(first(raw, "pubkeyacceptedalgorithms"), first(raw, "pubkeyacceptedkeytypes"))),
		CASignatureAlgorithms: list(first(raw, "casignaturealgorithms")),
		RequiredRSASize:       number(raw, "requiredrsasize", 0),

		AliveInterval: seconds(raw, "serveraliveinterval"),
		AliveCountMax: number(raw, "serveralivecountmax", 3),
		SendEnv:       words(raw["sendenv"]), SetEnv: raw["setenv"],
	}
	x, err := newExpander(s, q)
	if err != nil {
		return nil, err
	}
	if s.ProxyCommand, err = x.expand(none(first(raw, "proxycommand")), false); err != nil {
		return nil, fmt.Errorf("ProxyCommand: %w", err)
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
	for _, f := range raw["certificatefile"] {
		if none(f) == "" {
			continue
		}
		full, err := x.path(f)
		if err != nil {
			return nil, fmt.Errorf("CertificateFile: %w", err)
		}
		s.Certificates = append(s.Certificates, full)
	}
	if f := none(first(raw, "revokedhostkeys")); f != "" {
		if s.RevokedHostKeys, err = x.path(f); err != nil {
			return nil, fmt.Errorf("RevokedHostKeys: %w", err)
		}
	}
	if s.IdentityAgent, err = x.agent(first(raw, "identityagent")); err != nil {
		return nil, fmt.Errorf("IdentityAgent: %w", err)
	}
	s.UserKnownHosts = x.files(first(raw, "userknownhostsfile"))
	s.GlobalKnownHosts = x.files(first(raw, "globalknownhostsfile"))
	return s, nil
}

// defaults is what ssh would use without any configuration.
func defaults(q Query) (*Settings, error) {
	if q.ConfigFile != "" || len(q.Options) > 0 {
		q.Log.Warn("without an ssh program, -F and -o have no effect", "target", q.Host)
	}
	s := &Settings{
		Alias: q.Host, Host: q.Host, User: q.User, Port: 22, StrictHostKey: "ask", AddressFamily: "any", ConnectAttempts: 1,
		PubkeyAuth: true, PasswordAuth: true, InteractiveAuth: true, PasswordPrompts: 3, AddKeysToAgent: "no", AliveCountMax: 3,
	}
	if q.Port != 0 {
		s.Port = q.Port
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
	x, err := newExpander(s, q)
	if err != nil {
		return nil, err
	}
	s.IdentityFiles = q.IdentityFiles
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

func seconds(raw map[string][]string, key string) time.Duration {
	return time.Duration(max(0, number(raw, key, 0))) * time.Second
}

// number reads a number, and "none" or nonsense as def.
func number(raw map[string][]string, key string, def int) int {
	if n, err := strconv.Atoi(first(raw, key)); err == nil {
		return n
	}
	return def
}

// words splits values that ssh prints one or several on a line.
func words(values []string) []string {
	var all []string
	for _, v := range values {
		all = append(all, strings.Fields(v)...)
	}
	return all
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
