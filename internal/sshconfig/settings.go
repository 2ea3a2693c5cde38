package sshconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
)

func first(raw map[string][]string, key string) string {
	if v := raw[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// expandSettings makes settings of what ssh printed, or of what was read in its place, and expands
// what ssh leaves as it was written.
func expandSettings(raw map[string][]string, q Query) (*Settings, error) {
	port, err := strconv.ParseUint(first(raw, "port"), 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("the ssh configuration has port %q", display.Said(first(raw, "port")))
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
		AddKeysToAgent: agentWord(first(raw, "addkeystoagent")),
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
		SendEnv:       distinct(words(raw["sendenv"])), SetEnv: slices.Clone(raw["setenv"]),
	}
	if err := s.expand(raw, q); err != nil {
		return nil, err
	}
	return s, nil
}

// expand fills in what holds ~, %tokens or variables.
func (s *Settings) expand(raw map[string][]string, q Query) error {
	x, err := newExpander(s, q)
	if err != nil {
		return err
	}
	// KnownHostsCommand knows tokens that mean something only once there is a key to look for.
	if s.ProxyCommand, err = x.expand(none(first(raw, "proxycommand")), false); err != nil {
		return fmt.Errorf("ProxyCommand: %w", err)
	}
	if s.IdentityFiles, err = x.paths(raw["identityfile"]); err != nil {
		return fmt.Errorf("IdentityFile: %w", err)
	}
	if unasked(raw["identityfile"]) {
		s.Unasked = slices.Clone(s.IdentityFiles)
	}
	given, err := x.paths(q.IdentityFiles)
	if err != nil {
		return fmt.Errorf("identity file: %w", err)
	}
	// ssh drops a file of -i that is not there; it is kept here, to be spoken of if the login fails.
	for i, f := range given {
		if !slices.Contains(s.IdentityFiles, f) {
			s.IdentityFiles = slices.Insert(s.IdentityFiles, min(i, len(s.IdentityFiles)), f)
		}
	}
	if s.Certificates, err = x.paths(raw["certificatefile"]); err != nil {
		return fmt.Errorf("CertificateFile: %w", err)
	}
	if f := none(first(raw, "revokedhostkeys")); f != "" {
		if s.RevokedHostKeys, err = x.path(f); err != nil {
			return fmt.Errorf("RevokedHostKeys: %w", err)
		}
	}
	if s.IdentityAgent, err = x.agent(first(raw, "identityagent")); err != nil {
		return fmt.Errorf("IdentityAgent: %w", err)
	}
	s.UserKnownHosts = x.tildes(raw["userknownhostsfile"])
	s.GlobalKnownHosts = x.tildes(raw["globalknownhostsfile"])
	return nil
}

// defaultIdentities are the private keys ssh tries when none is configured, in ~/.ssh.
func defaultIdentities() []string {
	return []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa"}
}

// unasked reports whether files are ssh's own choice: nothing but default ones, and several of them.
// Which ones it looks for depends on its version, and it does not say that nobody asked for them.
func unasked(files []string) bool {
	defaults := defaultIdentities()
	for _, f := range files {
		name, ok := strings.CutPrefix(f, "~/.ssh/")
		if !ok || !slices.Contains(defaults, name) {
			return false
		}
	}
	return len(files) >= 3
}

// agentWord folds ssh's spellings of AddKeysToAgent.
func agentWord(s string) string {
	switch {
	case s == "" || no(s):
		return "no"
	case yes(s):
		return "yes"
	}
	return s
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

// distinct returns the first of each of values, in order.
func distinct(values []string) []string {
	var all []string
	seen := make(map[string]bool)
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
