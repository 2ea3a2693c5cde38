package transport

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// certificate is a user certificate in a file.
type certificate struct {
	file string
	cert *ssh.Certificate
}

// certificates reads the files that CertificateFile names.
func (k *keyring) certificates() []certificate {
	var certs []certificate
	for _, f := range k.s.Certificates {
		cert, err := readCertificate(f)
		if err != nil {
			k.skip(f, err)
			continue
		}
		certs = append(certs, certificate{f, cert})
	}
	return certs
}

// certified returns the certificates of a key that came from identity file f: those of certs, and
// the one beside the file, which may be missing.
func (k *keyring) certified(c *candidate, certs []certificate, f string) []*candidate {
	beside := strings.TrimSuffix(f, ".pub") + "-cert.pub"
	switch cert, err := readCertificate(beside); {
	case err == nil:
		certs = append(certs[:len(certs):len(certs)], certificate{beside, cert})
	case !errors.Is(err, os.ErrNotExist):
		k.skip(beside, err)
	}
	var found []*candidate
	for _, cert := range certs {
		if c.pub != nil && sameKey(cert.cert.Key, c.pub) {
			found = append(found, cert.signedBy(c))
		}
	}
	return found
}

// byAgent returns the certificate with its key in the agent, which may hold the key alone, both, or
// both as one.
func (c certificate) byAgent(held []*candidate) []*candidate {
	for _, h := range held {
		if sameKey(h.pub, c.cert.Key) || sameKey(h.pub, c.cert) {
			return []*candidate{c.signedBy(h)}
		}
	}
	return nil
}

func (c certificate) signedBy(key *candidate) *candidate {
	return &candidate{name: c.file, pub: c.cert, sign: key.sign}
}

func readCertificate(f string) (*ssh.Certificate, error) {
	data, err := readBounded(f, maxKeyFile)
	if err != nil {
		return nil, err
	}
	pub, _, err := publicKey(data)
	if err != nil {
		return nil, err
	}
	cert, ok := pub.(*ssh.Certificate)
	if !ok {
		return nil, errors.New("is not a certificate")
	}
	return cert, nil
}

// inForce says why a certificate cannot open an account now, or nil. Whether the server trusts who
// signed it, and for which accounts, is the server's to say.
func inForce(c *ssh.Certificate) error {
	now := time.Now().Unix()
	after, before := int64(c.ValidAfter), int64(c.ValidBefore) // forever is negative so
	switch {
	case c.CertType != ssh.UserCert:
		return errors.New("is a host's certificate, not a user's")
	case after < 0 || now < after:
		return fmt.Errorf("the certificate is not valid before %s", date(after))
	case before >= 0 && now >= before:
		return fmt.Errorf("the certificate expired at %s; ask whoever issued it for a new one", date(before))
	}
	return nil
}

func date(unix int64) string {
	if unix < 0 {
		return "the end of time"
	}
	return time.Unix(unix, 0).Format(time.RFC3339)
}

func isCertificate(key ssh.PublicKey) bool {
	_, ok := key.(*ssh.Certificate)
	return ok
}
