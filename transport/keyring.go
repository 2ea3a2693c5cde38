package transport

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/sshconfig"
)

// candidate is one key, or certificate, that may be offered. The library signs with it as with any
// ssh.MultiAlgorithmSigner.
type candidate struct {
	name       string        // file or agent comment, fit to be shown
	pub        ssh.PublicKey // nil until reveal was called
	reveal     func() error  // opens a key whose file does not say whose it is; or nil
	sign       signFunc
	algorithms []string // signatures that may be made with it

	failed error // why it could not sign, the last time
}

type signFunc func(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error)

func (c *candidate) PublicKey() ssh.PublicKey { return c.pub }

func (c *candidate) Algorithms() []string { return c.algorithms }

func (c *candidate) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return c.SignWithAlgorithm(rand, data, "")
}

func (c *candidate) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	sig, err := c.sign(rand, data, algorithm)
	c.failed = err
	return sig, err
}

// String is the key as ssh -v would name it.
func (c *candidate) String() string {
	if cert, ok := c.pub.(*ssh.Certificate); ok {
		return c.name + " certificate " + ssh.FingerprintSHA256(cert.Key)
	}
	return c.name + " " + ssh.FingerprintSHA256(c.pub)
}

// same reports whether o is the same key, or the same certificate.
func (c *candidate) same(o *candidate) bool {
	return c.pub != nil && o.pub != nil && sameKey(c.pub, o.pub)
}

func sameKey(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// keyring finds the keys for one login and remembers what became of them.
type keyring struct {
	s     *sshconfig.Settings
	ask   *asker
	log   *slog.Logger
	agent *agentKeys

	names    []string // of the keys that could be offered
	skipped  []string // what was not used, and why
	errs     []error  // a *KeyError for each file that could not be used
	locked   []string // files whose passphrase nobody gave
	hardware []string // files of security keys
	unsigned []string // keys that the agent would not sign with
}

// candidates returns the keys in the order in which they are offered: the named files, each by the
// agent where it holds the key and behind its certificates, then certificates whose key is in the
// agent alone, then the agent's other keys unless IdentitiesOnly forbids them. A server accepts about
// six offers, so what the user named comes first.
func (k *keyring) candidates() []*candidate {
	k.names, k.skipped, k.errs, k.locked, k.hardware, k.unsigned = nil, nil, nil, nil, nil, nil
	held, err := k.agent.list()
	if err != nil {
		k.skipped = append(k.skipped, "agent: "+display.Said(err.Error()))
	}
	certs := k.certificates()
	var offers []*candidate
	for _, f := range k.s.IdentityFiles {
		c, err := k.identity(f, held)
		if errors.Is(err, os.ErrNotExist) && slices.Contains(k.s.Unasked, f) {
			continue // ssh looks for seven names and most people have one
		}
		if err != nil {
			k.skip(f, err)
			continue
		}
		offers = append(offers, k.certified(c, certs, f)...)
		offers = append(offers, c)
	}
	for _, cert := range certs {
		offers = append(offers, cert.byAgent(held)...)
		if !slices.ContainsFunc(offers, func(c *candidate) bool { return c.pub != nil && sameKey(c.pub, cert.cert) }) {
			k.skip(cert.file, errors.New("certificate of a key that is not here"))
		}
	}
	if !k.s.IdentitiesOnly {
		offers = append(offers, held...)
	}
	return k.sift(offers)
}

// sift leaves out what is there twice and what must not be offered.
func (k *keyring) sift(offers []*candidate) []*candidate {
	var kept []*candidate
	for _, c := range offers {
		if slices.ContainsFunc(kept, c.same) {
			continue
		}
		if c.pub != nil {
			if err := k.admit(c); err != nil {
				k.skip(c.name, err)
				continue
			}
		}
		kept = append(kept, c)
	}
	return kept
}

// admit decides whether c may be offered, and what signatures may be made with it.
func (k *keyring) admit(c *candidate) error {
	key := c.pub
	if cert, ok := c.pub.(*ssh.Certificate); ok {
		if err := inForce(cert); err != nil {
			return err
		}
		key = cert.Key
	}
	if bits := rsaBits(key); bits > 0 && bits < k.s.RequiredRSASize {
		return fmt.Errorf("has %d bits, and RequiredRSASize demands %d", bits, k.s.RequiredRSASize)
	}
	c.algorithms = nil
	for _, a := range signatures(key.Type()) {
		name := a
		if isCertificate(c.pub) {
			name = strings.TrimSuffix(a, "@openssh.com") + "-cert-v01@openssh.com"
		}
		if k.accepts(name) {
			c.algorithms = append(c.algorithms, a)
		}
	}
	if len(c.algorithms) == 0 {
		return fmt.Errorf("PubkeyAcceptedAlgorithms does not accept %s", display.Said(c.pub.Type()))
	}
	k.names = append(k.names, c.String())
	return nil
}

// accepts reports whether PubkeyAcceptedAlgorithms allows a signature algorithm. Without an ssh
// program to ask, all but SHA-1's are.
func (k *keyring) accepts(algorithm string) bool {
	if len(k.s.PubkeyAlgorithms) == 0 {
		return !strings.HasPrefix(algorithm, "ssh-rsa") && !strings.HasPrefix(algorithm, "ssh-dss")
	}
	return slices.ContainsFunc(k.s.PubkeyAlgorithms, func(pattern string) bool {
		return sshconfig.Matches(algorithm, pattern)
	})
}

// signatures is the algorithms that a key of this type can sign with, the best first.
func signatures(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

// rsaBits is the size of an RSA key, 0 for any other.
func rsaBits(key ssh.PublicKey) int {
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok {
			return r.N.BitLen()
		}
	}
	return 0
}

// offered returns those of what was tried that are keys.
func (k *keyring) offered(tried []string) []string {
	var keys []string
	for _, t := range tried {
		if slices.Contains(k.names, t) {
			keys = append(keys, t)
		}
	}
	return keys
}

// skip notes a key that cannot be offered, or not be signed with.
func (k *keyring) skip(name string, err error) {
	var ke *KeyError
	var agent *agentError
	switch {
	case errors.As(err, &agent):
		k.unsigned = append(k.unsigned, name)
		k.skipped = append(k.skipped, name+": "+err.Error())
		return
	case !errors.As(err, &ke):
		ke = &KeyError{Path: name, Err: fault.Bare(err)}
		err = ke
	}
	if ke.Encrypted {
		k.locked = append(k.locked, ke.Path)
	}
	if errors.Is(err, errHardware) {
		k.hardware = append(k.hardware, ke.Path)
	}
	k.errs = append(k.errs, err)
	k.skipped = append(k.skipped, err.Error())
}
