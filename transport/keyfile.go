package transport

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// maxKeyFile bounds a private key or certificate file, in bytes.
const maxKeyFile = 64 << 10

var (
	errHardware   = errors.New("a security key, which only an agent or the system's ssh can use")
	errNotHeld    = errors.New("is a public key that the agent does not hold")
	errPassphrase = errors.New("the passphrase is wrong")
)

// identity makes a candidate of an identity file: by the agent if it holds the key, else by the file.
func (k *keyring) identity(f string, held []*candidate) (*candidate, error) {
	data, err := readBounded(f, maxKeyFile)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	// The public half says which of the agent's keys is meant, also when the private one is on a
	// token, encrypted, or nowhere but in the agent.
	pub := publicHalf(f, data)
	if pub != nil {
		for _, c := range held {
			if sameKey(c.pub, pub) {
				return &candidate{name: f + " (agent)", pub: pub, sign: c.sign}, nil
			}
		}
	}
	if missing {
		return nil, err
	}
	if _, _, err := publicKey(data); err == nil {
		return nil, &KeyError{Path: f, Err: errNotHeld}
	}
	if inside, _ := keyHeader(data); isHardware(inside) {
		return nil, &KeyError{Path: f, Err: errHardware}
	}
	p := &privateKey{k: k, file: f, data: data}
	raw, err := ssh.ParseRawPrivateKey(data)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return p.locked(pub, locked.PublicKey)
	case err != nil:
		return nil, &KeyError{Path: f, Err: err}
	}
	if err := p.use(raw); err != nil {
		return nil, err
	}
	return &candidate{name: f, pub: p.signer.PublicKey(), sign: p.sign}, nil
}

// privateKey is a key in a file, which may have to be unlocked.
type privateKey struct {
	k      *keyring
	file   string
	data   []byte
	raw    any        // once it is unlocked
	signer ssh.Signer // of raw
}

// locked makes a candidate of an encrypted key. Its passphrase is asked for when the server has
// accepted the public half, and not before. Formats of old do not say whose key they hold; without a
// .pub file beside it such a key is unlocked when its turn has come.
func (p *privateKey) locked(side, inside ssh.PublicKey) (*candidate, error) {
	if !p.k.ask.can() {
		return nil, &KeyError{Path: p.file, Encrypted: true}
	}
	c := &candidate{name: p.file, pub: inside, sign: p.sign}
	if c.pub == nil {
		c.pub = side
	}
	if c.pub == nil {
		c.reveal = func() error {
			if err := p.unlock(); err != nil {
				return err
			}
			c.pub = p.signer.PublicKey()
			return nil
		}
	}
	return c, nil
}

func (p *privateKey) use(raw any) error {
	s, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		return &KeyError{Path: p.file, Err: err}
	}
	p.raw, p.signer = raw, s
	return nil
}

// unlock asks for the passphrase until it fits, as often as the configuration allows. An empty one
// gives the key up, as it does for ssh.
func (p *privateKey) unlock() error {
	// Neither the person nor the arithmetic that slows guessing down is the server's delay.
	defer p.k.ask.clock.pause()()
	for try := 0; p.signer == nil; try++ {
		if try == max(1, p.k.s.PasswordPrompts) {
			return &KeyError{Path: p.file, Encrypted: true, Err: errPassphrase}
		}
		secret, err := p.k.ask.passphrase(p.file, try > 0)
		if err == nil && secret == "" {
			err = errors.New("no passphrase was given")
		}
		if err != nil {
			return &KeyError{Path: p.file, Encrypted: true, Err: err}
		}
		raw, err := ssh.ParseRawPrivateKeyWithPassphrase(p.data, []byte(secret))
		if errors.Is(err, x509.IncorrectPasswordError) {
			continue
		}
		if err != nil {
			return &KeyError{Path: p.file, Err: err}
		}
		if err := p.use(raw); err != nil {
			return err
		}
	}
	return nil
}

func (p *privateKey) sign(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if err := p.unlock(); err != nil {
		return nil, err
	}
	p.k.lend(p)
	return signWith(p.signer, rand, data, algorithm)
}

func signWith(s ssh.Signer, rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if as, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}

// isHardware reports whether a key is on a security key, which its file only refers to.
func isHardware(pub ssh.PublicKey) bool { return pub != nil && strings.HasPrefix(pub.Type(), "sk-") }

// publicHalf returns the public key of an identity file: data itself if it is one, else f.pub.
func publicHalf(f string, data []byte) ssh.PublicKey {
	if pub, _, err := publicKey(data); err == nil {
		return pub
	}
	side, err := readBounded(f+".pub", maxKeyFile)
	if err != nil {
		return nil
	}
	pub, _, err := publicKey(side)
	if err != nil {
		return nil
	}
	return pub
}

// readBounded reads a regular file of at most max bytes.
func readBounded(name string, max int64) ([]byte, error) {
	if _, err := isFile(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%w of %d bytes", ErrTooLarge, max)
	}
	return data, err
}
