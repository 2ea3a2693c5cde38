package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/sshconfig"
)

// hostKeys decides about one machine's host key.
type hostKeys struct {
	s       *sshconfig.Settings
	o       Options
	lookup  string   // host:port that known_hosts is asked for
	through []string // the machines that this one is reached through, where the configuration does not say
	bare    string   // host:22, where ssh looks next, or ""
	known   *knownFiles
	revoked map[string]string // where a key of RevokedHostKeys stands, by its bytes
	log     *slog.Logger
	target  Target
	ask     func(Prompt) (string, error) // puts a question to a person

	refused  error  // the reason the last check failed
	passed   bool   // a key was accepted
	accepted string // its bytes
	found    string // what it is, and what knows it
}

// newHostKeys reads the files of host keys that are there. errors.Is(err, ErrHostKey) says that they
// leave no key that could be accepted.
func newHostKeys(s *sshconfig.Settings, o Options) (*hostKeys, error) {
	h := &hostKeys{s: s, o: o, lookup: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), log: o.logger()}
	if s.HostKeyAlias != "" {
		// An alias stands for the machine whatever its port is.
		h.lookup = net.JoinHostPort(s.HostKeyAlias, "22")
	} else if s.Port != 22 {
		h.bare = net.JoinHostPort(s.Host, "22")
	}
	var err error
	if h.revoked, err = readRevoked(s.RevokedHostKeys); err != nil {
		return nil, err
	}
	h.known, err = readKnown(slices.Concat(s.UserKnownHosts, s.GlobalKnownHosts), h.log)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// lookups returns what known_hosts is asked for, in order.
func (h *hostKeys) lookups() []string {
	if h.bare == "" {
		return []string{h.lookup}
	}
	return []string{h.lookup, h.bare}
}

// algorithms orders host key algorithms: first those that the known keys of this very host can
// answer to, since any other would look like a changed key, then the rest. Certificates come first
// where a CA is on record and last where none is: then they prove nothing but the key in them.
func (h *hostKeys) algorithms() []string {
	able := slices.Concat(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys)
	// The configuration can order, leave out, and ask for what is off by default.
	allowed := ssh.SupportedAlgorithms().HostKeys
	if len(h.s.HostKeyAlgorithms) > 0 {
		allowed = choose(h.s.HostKeyAlgorithms, able)
	}
	var certs, plain []string
	for _, a := range allowed {
		if strings.Contains(a, "-cert-") {
			certs = append(certs, a)
		} else {
			plain = append(plain, a)
		}
	}
	var first []string
	authority := false
	for _, lookup := range h.lookups() {
		if len(first) > 0 || authority {
			break
		}
		// Which kind of key a CA signs does not follow from its own.
		authority = slices.ContainsFunc(h.known.lines(lookup), func(k knownKey) bool { return k.authority })
		first = choose(h.known.db.HostKeyAlgorithms(lookup), plain)
	}
	plain = append(first, slices.DeleteFunc(plain, func(a string) bool { return slices.Contains(first, a) })...)
	if authority {
		return append(certs, plain...)
	}
	return append(plain, certs...)
}

// begin readies h for one handshake, whose clock stands still while a person is asked.
func (h *hostKeys) begin(ctx context.Context, t Target, clock *handshakeClock) {
	h.target = t
	h.ask = func(p Prompt) (string, error) {
		defer clock.pause()()
		return h.o.Ask(ctx, p)
	}
}

// check is an ssh.HostKeyCallback. It is called again whenever keys are exchanged again.
func (h *hostKeys) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	started, blob := time.Now(), string(key.Marshal())
	if h.passed && h.accepted == blob {
		return nil
	}
	h.refused = h.judge(remote, key)
	h.passed, h.accepted = h.refused == nil, blob
	h.o.step(Step{Target: h.target, Name: StepHostKey, Value: h.found, Err: h.refused, Took: time.Since(started)})
	return h.refused
}

// machine returns the fingerprint of the key that was accepted. A certificate's own key is what stays when
// it is renewed.
func (h *hostKeys) machine() string {
	key, err := ssh.ParsePublicKey([]byte(h.accepted))
	if err != nil || !h.passed {
		return ""
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	return ssh.FingerprintSHA256(key)
}

func (h *hostKeys) judge(remote net.Addr, key ssh.PublicKey) error {
	e := &HostKeyError{Host: knownhosts.Normalize(h.lookup), Addr: remote.String()}
	of := func(k ssh.PublicKey) {
		key = k
		e.KeyType, e.Fingerprint = k.Type(), ssh.FingerprintSHA256(k)
	}
	of(key)
	if where := h.isRevoked(key); where != "" {
		e.Revoked, e.Known = true, []string{where}
		return e
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		where, err := h.certified(remote, cert)
		if err == nil {
			h.accept(e, "signed by the authority in "+where)
			return nil
		}
		// As with ssh, a certificate that proves nothing leaves the key in it, which may be known.
		h.log.Debug("the host's certificate is not used", "host", display.Quote(e.Host), "error", display.Said(err.Error()))
		of(cert.Key)
	}
	for _, lookup := range h.lookups() {
		for _, k := range h.known.lines(lookup) {
			if !k.authority && string(k.Marshal()) == string(key.Marshal()) {
				h.accept(e, "known from "+k.place)
				return nil
			}
			if !k.authority && lookup == h.lookup {
				e.Changed = true
				e.Known = append(e.Known, k.place)
			}
		}
		if e.Changed {
			file := e.Known[0][:strings.LastIndexByte(e.Known[0], ':')]
			e.Record = fmt.Sprintf("ssh-keygen -R %s -f %s", word(e.Host), word(file))
			return e
		}
	}
	e.Record = h.recordCommand()
	return h.unknown(e, key)
}

func (h *hostKeys) accept(e *HostKeyError, how string) {
	h.found = display.Quote(fmt.Sprintf("%s %s, %s", e.KeyType, e.Fingerprint, how))
}

// isRevoked returns where a key, or for a certificate its key or authority, is marked as revoked.
func (h *hostKeys) isRevoked(key ssh.PublicKey) string {
	keys := []ssh.PublicKey{key}
	if cert, ok := key.(*ssh.Certificate); ok {
		keys = append(keys, cert.Key, cert.SignatureKey)
	}
	for _, k := range keys {
		if where := h.revoked[string(k.Marshal())]; where != "" {
			return where
		}
		if _, whole := k.(*ssh.Certificate); whole {
			continue
		}
		if where := h.known.revoked(h.lookup, k); where != "" {
			return where
		}
	}
	return ""
}

// certified returns where the authority that signed a host's certificate is on record.
func (h *hostKeys) certified(remote net.Addr, cert *ssh.Certificate) (string, error) {
	if allowed := h.s.CASignatureAlgorithms; len(allowed) > 0 && !slices.Contains(allowed, cert.Signature.Format) {
		return "", fmt.Errorf("it is signed with %s, which CASignatureAlgorithms leaves out", cert.Signature.Format)
	}
	var err error
	for _, lookup := range h.lookups() {
		if err = h.known.db.HostKeyCallback()(lookup, netAddr(remote), cert); err != nil {
			continue
		}
		for _, at := range h.lookups() {
			for _, k := range h.known.lines(at) {
				if k.authority && string(k.Marshal()) == string(cert.SignatureKey.Marshal()) {
					return k.place, nil
				}
			}
		}
		return "known_hosts", nil
	}
	return "", err
}

// unknown decides about a key of a machine that no line speaks of. e is what there is to say.
func (h *hostKeys) unknown(e *HostKeyError, key ssh.PublicKey) error {
	switch {
	case h.s.StrictHostKey == "accept-new":
	case h.s.StrictHostKey == "ask" && h.o.Ask != nil && !h.s.BatchMode:
		if yes, err := h.confirmed(e); err != nil {
			return fault.Both(fmt.Errorf("%w (asking failed: %s)", e, display.Said(err.Error())), err)
		} else if !yes {
			return e
		}
	default:
		return e
	}
	if len(h.s.UserKnownHosts) == 0 {
		h.accept(e, "accepted, and recorded nowhere, for UserKnownHostsFile names no file")
		return nil
	}
	file := h.s.UserKnownHosts[0]
	switch err := h.record(file, key); {
	case errors.Is(err, errMeanwhile):
		return fault.Both(fmt.Errorf("recording the host key of %s: %w", display.Quote(e.Host), err), ErrHostKey)
	case err != nil:
		// As with ssh: it was accepted, and will be new again.
		h.log.Warn("the host key could not be recorded", "host", display.Quote(e.Host), "file", display.Quote(file), "error", display.Said(err.Error()))
		h.accept(e, "new, and not recorded: "+err.Error())
		return nil
	}
	h.log.Info("recorded a new host key", "host", display.Quote(e.Host), "type", e.KeyType, "fingerprint", e.Fingerprint, "file", file)
	h.accept(e, "new, and recorded in "+file)
	return nil
}

// confirmed asks a person whether a key is the machine's.
func (h *hostKeys) confirmed(e *HostKeyError) (bool, error) {
	host := display.Said(h.s.Alias)
	if e.Host != h.s.Alias {
		host += " (" + display.Said(e.Host) + ")"
	}
	// It is no Confirm: the fingerprint, from wherever else it is known, is the better answer.
	answer, err := h.ask(Prompt{Text: fmt.Sprintf(
		"The host key of %s at %s is not known yet.\n%s key fingerprint: %s\nAnswer yes to record it and go on, or paste the fingerprint you expect (yes/no/fingerprint): ",
		host, display.Said(e.Addr), display.Said(e.KeyType), e.Fingerprint)})
	if err != nil {
		return false, err
	}
	answer = strings.TrimSpace(answer)
	return strings.EqualFold(answer, "yes") || answer == e.Fingerprint, nil
}

// netAddr is addr in the form that known hosts are looked up with. A connection through a command
// or another machine has no address of its own.
func netAddr(addr net.Addr) net.Addr {
	if _, _, err := net.SplitHostPort(addr.String()); err != nil {
		return &net.TCPAddr{IP: net.IPv4zero}
	}
	return addr
}

// Login returns the fingerprint of the host key that a connection's server proved to have, that of a
// certificate's own key where it has one, and the name of the account that it let in. Both are "" where
// this package did not see the key itself: on this machine, and where the system's ssh connected.
func Login(c Conn) (hostKey, user string) {
	if c, ok := c.(*sshConn); ok && c.hostKey != "" {
		return c.hostKey, c.client.User()
	}
	return "", ""
}
