package transport

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/sshconfig"
)

const (
	// ticketTimeout bounds the question whether there is a Kerberos ticket.
	ticketTimeout = time.Second
	// maxRounds is how many bcrypt rounds of a key file's passphrase the library does.
	maxRounds = 2048
)

// needs returns what the configuration asks for that the library cannot do and the system's ssh can,
// or "".
//
// GSSAPIAuthentication alone needs nothing, since distributions turn it on for everybody: there has
// to be a Kerberos ticket to use. Keys on hardware that the agent holds work by the agent.
func needs(ctx context.Context, s *sshconfig.Settings) string {
	able, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	lacks := func(want []string, able ...[]string) bool { return len(want) > 0 && choose(want, able...) == nil }
	switch {
	case s.PKCS11Provider != "":
		return "PKCS11Provider: keys on a token"
	case s.HostbasedAuth && prefers(s, "hostbased"):
		return "HostbasedAuthentication"
	case s.KnownHostsCommand != "":
		return "KnownHostsCommand"
	case s.ProxyUseFdpass && s.ProxyCommand != "":
		return "ProxyUseFdpass"
	case isRevocationList(s.RevokedHostKeys):
		return "RevokedHostKeys: a binary revocation list"
	case lacks(s.Ciphers, able.Ciphers, old.Ciphers):
		return "Ciphers: none of these is built in"
	case lacks(s.MACs, able.MACs, old.MACs):
		return "MACs: none of these is built in"
	case lacks(s.Kex, able.KeyExchanges, old.KeyExchanges):
		return "KexAlgorithms: none of these is built in"
	case lacks(s.HostKeyAlgorithms, able.HostKeys, old.HostKeys):
		return "HostKeyAlgorithms: none of these is built in"
	}
	if reason := foreignKey(ctx, s); reason != "" {
		return reason
	}
	if s.GSSAPIAuth && prefers(s, "gssapi-with-mic") && hasTicket(ctx) {
		return "GSSAPIAuthentication: there is a Kerberos ticket"
	}
	return ""
}

// prefers reports whether a method of authentication is one that may be used.
func prefers(s *sshconfig.Settings, method string) bool {
	return len(s.PreferredAuth) == 0 || slices.Contains(s.PreferredAuth, method)
}

// foreignKey says which identity file the library cannot use: a key on hardware, or one in a form
// that it does not read. What the agent holds can be used whatever it is.
func foreignKey(ctx context.Context, s *sshconfig.Settings) string {
	if !s.PubkeyAuth || !prefers(s, "publickey") {
		return ""
	}
	var held []*candidate
	asked := false
	for _, f := range s.IdentityFiles {
		data, err := readBounded(f, maxKeyFile)
		if err != nil {
			continue
		}
		pub, problem := keyHeader(data)
		if pub == nil {
			pub = publicHalf(f, data)
		}
		switch {
		case isHardware(pub):
			problem = "is on a security key"
		case problem == "":
			continue
		}
		if !asked {
			asked = true
			agent := askAgent(ctx, s.IdentityAgent, nil)
			held, _ = agent.list()
			agent.close()
		}
		if !holds(held, pub) {
			return "the key " + display.Quote(f) + " " + problem
		}
	}
	return ""
}

func holds(held []*candidate, pub ssh.PublicKey) bool {
	return pub != nil && slices.ContainsFunc(held, func(c *candidate) bool {
		return bytes.Equal(c.PublicKey().Marshal(), pub.Marshal())
	})
}

// keyHeader reads what a private key file of OpenSSH's own form says without its passphrase: the
// public key, and why the library cannot open the rest, or "". Of other files it says nothing.
func keyHeader(data []byte) (pub ssh.PublicKey, problem string) {
	const magic = "openssh-key-v1\x00"
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "OPENSSH PRIVATE KEY" || !bytes.HasPrefix(block.Bytes, []byte(magic)) {
		return nil, ""
	}
	var h struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Rest                 []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(block.Bytes[len(magic):], &h) != nil {
		return nil, ""
	}
	if pub, _ = ssh.ParsePublicKey(h.Public); pub == nil {
		return nil, ""
	}
	if h.Cipher == "none" {
		return pub, ""
	}
	var kdf struct {
		Salt   string
		Rounds uint32
	}
	switch {
	case h.Cipher != "aes256-ctr" && h.Cipher != "aes256-cbc":
		return pub, "is encrypted by " + display.Said(h.Cipher) + ", which is not built in"
	case h.KDF == "bcrypt" && ssh.Unmarshal([]byte(h.Options), &kdf) == nil && kdf.Rounds > maxRounds:
		return pub, fmt.Sprintf("is encrypted with %d rounds of bcrypt, of at most %d", kdf.Rounds, maxRounds)
	}
	return pub, ""
}

// revocationMagic begins a key revocation list.
const revocationMagic = "SSHKRL\n\x00"

// isRevocationList reports whether a file is a list as ssh-keygen -k makes it.
func isRevocationList(name string) bool {
	if ok, _ := isFile(name); name == "" || !ok {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, len(revocationMagic))
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == revocationMagic
}

// hasTicket reports whether there is a Kerberos ticket. Where klist is missing, which knows every
// kind of cache, a cache that was named or is a file in the usual place is taken for one.
func hasTicket(ctx context.Context) bool {
	if klist, err := exec.LookPath("klist"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, ticketTimeout)
		defer cancel()
		_, err := proc.Output(ctx, exec.CommandContext(ctx, klist, "-s"), 1<<10)
		return err == nil
	}
	cache := os.Getenv("KRB5CCNAME")
	if kind, _, ok := strings.Cut(cache, ":"); ok && kind != "FILE" {
		return true
	}
	if cache = strings.TrimPrefix(cache, "FILE:"); cache == "" {
		cache = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	ok, _ := isFile(cache)
	return ok
}
