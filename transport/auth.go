package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sshconfig"
)

const (
	// agentTimeout bounds the connection to an agent and its list of keys.
	agentTimeout = 2 * time.Second
	// signTimeout bounds one signature by an agent, which may ask a person or wait for a touch.
	signTimeout = time.Minute
	// maxKeyFile bounds a private key file, in bytes.
	maxKeyFile = 64 << 10
)

// candidate is one key that may be offered.
type candidate struct {
	signer ssh.Signer
	name   string // file or agent comment
}

// keyring finds the keys for one connection and remembers what became of them.
type keyring struct {
	s     *sshconfig.Settings
	o     Options
	clock *handshakeClock
	agent *agentKeys

	tried   []string
	skipped []string
	errs    []error // a *KeyError for each file that could not be used
	locked  []string
}

// newKeyring starts to talk to the agent, so that its answer is there when the server asks.
func newKeyring(ctx context.Context, s *sshconfig.Settings, o Options, clock *handshakeClock) *keyring {
	return &keyring{s: s, o: o, clock: clock, agent: askAgent(ctx, s.IdentityAgent, clock)}
}

// signers returns the keys in the order in which they are offered: the named files, each by the
// agent where it holds the key, then the agent's other keys unless IdentitiesOnly forbids them.
// A server accepts about six offers, so what the user named comes first.
func (k *keyring) signers(ctx context.Context) ([]ssh.Signer, error) {
	k.tried, k.skipped, k.errs, k.locked = nil, nil, nil, nil
	held, err := k.agent.list()
	if err != nil {
		k.skipped = append(k.skipped, "agent: "+display.Said(err.Error()))
	}
	var offers []candidate
	for _, f := range k.s.IdentityFiles {
		c, err := k.load(ctx, f, held)
		switch {
		case err == nil && c != nil:
			offers = append(offers, *c)
		case errors.Is(err, os.ErrNotExist) && slices.Contains(k.s.Unasked, f):
			// ssh looks for seven names and most people have one.
		case err != nil:
			k.skip(f, err)
		}
	}
	if !k.s.IdentitiesOnly {
		offers = append(offers, held...)
	}
	var signers []ssh.Signer
	var seen []string
	for _, c := range offers {
		blob := string(c.signer.PublicKey().Marshal())
		if slices.Contains(seen, blob) {
			continue
		}
		seen = append(seen, blob)
		signers = append(signers, c.signer)
		k.tried = append(k.tried, c.name+" "+ssh.FingerprintSHA256(c.signer.PublicKey()))
	}
	return signers, nil
}

// skip notes a key file that cannot be offered.
func (k *keyring) skip(f string, err error) {
	var ke *KeyError
	if !errors.As(err, &ke) {
		ke = &KeyError{Path: f, Err: bare(err)}
		err = ke
	}
	if ke.Encrypted {
		k.locked = append(k.locked, f)
	}
	k.errs = append(k.errs, err)
	k.skipped = append(k.skipped, err.Error())
}

// bare takes the path off a file error, which stands beside it already.
func bare(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}

// load makes a candidate of an identity file: by the agent if it holds the key, else by the file.
func (k *keyring) load(ctx context.Context, f string, held []candidate) (*candidate, error) {
	data, err := readBounded(f, maxKeyFile)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil && !missing {
		return nil, err
	}
	// The public half says which of the agent's keys is meant, also when the private one is on a
	// token, encrypted, or nowhere but in the agent.
	if pub := publicHalf(f, data); pub != nil {
		for _, c := range held {
			if string(c.signer.PublicKey().Marshal()) == string(pub.Marshal()) {
				return &candidate{c.signer, f + " (agent)"}, nil
			}
		}
	}
	if missing {
		return nil, err
	}
	if _, _, err := publicKey(data); err == nil {
		return nil, &KeyError{Path: f, Err: errors.New("is a public key that the agent does not hold")}
	}
	signer, err := ssh.ParsePrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return k.loadLocked(ctx, f, data, locked.PublicKey)
	}
	if err != nil {
		return nil, &KeyError{Path: f, Err: err}
	}
	return &candidate{signer, f}, nil
}

// loadLocked makes a candidate of an encrypted key. Its passphrase is asked for when the server has
// accepted the public half, and not before.
func (k *keyring) loadLocked(ctx context.Context, f string, data []byte, pub ssh.PublicKey) (*candidate, error) {
	if k.o.Ask == nil || k.s.BatchMode {
		return nil, &KeyError{Path: f, Encrypted: true}
	}
	if pub == nil {
		pub = publicHalf(f, nil)
	}
	open := func() (ssh.Signer, error) {
		defer k.clock.pause()()
		secret, err := k.o.Ask(ctx, Prompt{Text: fmt.Sprintf("Enter passphrase for key '%s': ", display.Said(f)), Secret: true})
		if err != nil {
			return nil, &KeyError{Path: f, Encrypted: true, Err: err}
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(data, []byte(secret))
		if err != nil {
			return nil, &KeyError{Path: f, Encrypted: true, Err: err}
		}
		return signer, nil
	}
	if pub == nil {
		// An old format that does not say whose key it is.
		signer, err := open()
		if err != nil {
			return nil, err
		}
		return &candidate{signer, f}, nil
	}
	return &candidate{&lazySigner{pub: pub, open: open}, f}, nil
}

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

// failure makes an *AuthError of a handshake that ended in authentication.
func (k *keyring) failure(err error) *AuthError {
	e := &AuthError{
		User: k.s.User, Host: k.s.Alias, Tried: k.tried, Skipped: k.skipped,
		Err: errors.Join(append([]error{err}, k.errs...)...),
	}
	e.Err = &both{errors.New(display.Said(err.Error())), e.Err}
	switch {
	case len(k.locked) > 0:
		e.Advice = "unlock the key for this session with: ssh-add " + word(k.locked[0])
	case len(k.tried) == 0:
		e.Advice = "name a key with -i FILE, or add one to the agent with: ssh-add FILE"
	default:
		e.Advice = "check that one of these keys is in the account's ~/.ssh/authorized_keys, or name another with -i FILE"
	}
	return e
}

// lazySigner is a key whose private half is opened when it is needed.
type lazySigner struct {
	pub  ssh.PublicKey
	open func() (ssh.Signer, error)
}

func (l *lazySigner) PublicKey() ssh.PublicKey { return l.pub }

func (l *lazySigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return l.SignWithAlgorithm(rand, data, "")
}

func (l *lazySigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s, err := l.open()
	if err != nil {
		return nil, err
	}
	return signWith(s, rand, data, algorithm)
}

func signWith(s ssh.Signer, rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	if as, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
		return as.SignWithAlgorithm(rand, data, algorithm)
	}
	return s.Sign(rand, data)
}

// agentKeys is what an agent holds, once it has answered.
type agentKeys struct {
	done  chan struct{}
	conn  net.Conn
	clock *handshakeClock
	keys  []candidate
	err   error
}

// askAgent asks the agent at path for its keys in the background. An empty path is no agent.
func askAgent(ctx context.Context, path string, clock *handshakeClock) *agentKeys {
	a := &agentKeys{done: make(chan struct{}), clock: clock}
	if path == "" {
		close(a.done)
		return a
	}
	go func() {
		defer close(a.done)
		a.err = a.connect(ctx, path)
	}()
	return a
}

func (a *agentKeys) connect(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := dialAgent(ctx, path)
	if err != nil {
		return err
	}
	a.conn = conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	client := agent.NewClient(conn)
	keys, err := client.List()
	if err != nil {
		return err
	}
	signers, err := client.Signers()
	if err != nil {
		return err
	}
	stop()
	for i, s := range signers {
		name := "agent key"
		if i < len(keys) && keys[i].Comment != "" {
			name = "agent key " + display.Said(keys[i].Comment)
		}
		a.keys = append(a.keys, candidate{&agentSigner{s, a}, name})
	}
	return nil
}

// list waits for the agent and returns its keys.
func (a *agentKeys) list() ([]candidate, error) {
	<-a.done
	return a.keys, a.err
}

// close ends the connection to the agent, which is of no use after the handshake.
func (a *agentKeys) close() {
	<-a.done
	if a.conn != nil {
		a.conn.Close()
	}
}

// agentSigner is a key that the agent holds.
type agentSigner struct {
	ssh.Signer
	a *agentKeys
}

func (s *agentSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	defer s.a.clock.pause()()
	_ = s.a.conn.SetDeadline(time.Now().Add(signTimeout))
	return signWith(s.Signer, rand, data, algorithm)
}

func (s *agentSigner) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, "")
}
