package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/punnet/punnet/internal/display"
)

const (
	// agentTimeout bounds the connection to an agent and its list of keys, and the adding of one.
	agentTimeout = 2 * time.Second
	// signTimeout bounds one signature by an agent, which may ask a person or wait for a touch.
	signTimeout = time.Minute
)

// agentError is a key that the agent holds and would not sign with.
type agentError struct{ err error }

func (e *agentError) Error() string { return "the agent did not sign: " + display.Said(e.err.Error()) }
func (e *agentError) Unwrap() error { return e.err }

// agentKeys is what an agent holds, once it has answered.
type agentKeys struct {
	ctx    context.Context // of the login
	done   chan struct{}
	conn   net.Conn // nil where there is no agent
	client agent.ExtendedAgent
	clock  *handshakeClock
	keys   []*candidate
	err    error
}

// askAgent asks the agent at path for its keys in the background. An empty path is no agent.
func askAgent(ctx context.Context, path string, clock *handshakeClock) *agentKeys {
	a := &agentKeys{ctx: ctx, done: make(chan struct{}), clock: clock}
	if path == "" {
		close(a.done)
		return a
	}
	go func() {
		defer close(a.done)
		a.err = a.connect(path)
	}()
	return a
}

func (a *agentKeys) connect(path string) error {
	ctx, cancel := context.WithTimeout(a.ctx, agentTimeout)
	defer cancel()
	conn, err := dialAgent(ctx, path)
	if err != nil {
		return err
	}
	a.conn = conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	client := agent.NewClient(conn)
	keys, err := client.List()
	if !stop() {
		return fmt.Errorf("no answer within %v", agentTimeout)
	}
	if err != nil {
		return err
	}
	a.client = client
	for _, key := range keys {
		pub, err := ssh.ParsePublicKey(key.Blob)
		if err != nil {
			continue // a type of key that is none of SSH's
		}
		name := "agent key"
		if key.Comment != "" {
			name += " " + display.Said(key.Comment)
		}
		a.keys = append(a.keys, &candidate{name: name, pub: pub, sign: a.signer(pub)})
	}
	return nil
}

// list waits for the agent and returns its keys.
func (a *agentKeys) list() ([]*candidate, error) {
	<-a.done
	return a.keys, a.err
}

// silent waits for the agent and reports whether it did not give its keys.
func (a *agentKeys) silent() bool {
	_, err := a.list()
	return err != nil
}

// close ends the connection to the agent, which is of no use after the handshake.
func (a *agentKeys) close() {
	<-a.done
	if a.conn != nil {
		a.conn.Close()
	}
}

// limit bounds what is asked of the agent next. An agent that has been silent since, because nothing
// was asked, is as good as before.
func (a *agentKeys) limit(d time.Duration) (lift func()) {
	_ = a.conn.SetDeadline(time.Now().Add(d))
	return func() { _ = a.conn.SetDeadline(time.Time{}) }
}

// signer signs with a key that the agent holds. A person may have to agree, or to touch a token, so
// the handshake's clock stands still.
func (a *agentKeys) signer(pub ssh.PublicKey) signFunc {
	return func(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
		defer a.clock.pause()()
		defer context.AfterFunc(a.ctx, func() { a.conn.Close() })()
		defer a.limit(signTimeout)()
		var flags agent.SignatureFlags
		switch algorithm {
		case ssh.KeyAlgoRSASHA256:
			flags = agent.SignatureFlagRsaSha256
		case ssh.KeyAlgoRSASHA512:
			flags = agent.SignatureFlagRsaSha512
		}
		sig, err := a.client.SignWithFlags(pub, data, flags)
		if err != nil {
			return nil, &agentError{err}
		}
		return sig, nil
	}
}

// lend adds a key that was read from a file to the agent, where AddKeysToAgent says so. The login
// does not depend on it.
func (k *keyring) lend(p *privateKey) {
	how, ok := lending(k.s.AddKeysToAgent)
	held := func(c *candidate) bool { return sameKey(c.pub, p.signer.PublicKey()) }
	if !ok {
		return
	}
	keys, err := k.agent.list()
	if err != nil || k.agent.client == nil || slices.ContainsFunc(keys, held) {
		return
	}
	if how.ask {
		yes, err := k.ask.confirm(fmt.Sprintf("Add key %s (%s) to the agent? ", display.Said(p.file), ssh.FingerprintSHA256(p.signer.PublicKey())))
		if err != nil || !yes {
			return
		}
	}
	defer k.agent.limit(agentTimeout)()
	err = k.agent.client.Add(agent.AddedKey{PrivateKey: p.raw, Comment: p.file, LifetimeSecs: how.seconds, ConfirmBeforeUse: how.confirm})
	if err != nil {
		k.log.Warn("the key was not added to the agent", "file", p.file, "error", display.Said(err.Error()))
		return
	}
	k.log.Info("the key was added to the agent", "file", p.file)
}

// loan is how a key is added to an agent.
type loan struct {
	ask     bool   // first ask whether it may be
	confirm bool   // have the agent ask before each use
	seconds uint32 // how long the agent may keep it, 0 for as long as it lives
}

// lending reads AddKeysToAgent as ssh -G prints it: yes, no, ask, confirm, and a number of seconds
// alone or after confirm. ok is false for no, and for what is none of these.
func lending(value string) (l loan, ok bool) {
	for _, w := range strings.Fields(strings.ToLower(value)) {
		n, err := strconv.ParseUint(w, 10, 32)
		switch {
		case w == "yes" || w == "true":
		case w == "ask":
			l.ask = true
		case w == "confirm":
			l.confirm = true
		case err == nil && n > 0:
			l.seconds = uint32(n)
		default:
			return loan{}, false
		}
		ok = true
	}
	return l, ok
}
