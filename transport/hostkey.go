package transport

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sshconfig"
)

// hostKeys decides about one machine's host key.
type hostKeys struct {
	s      *sshconfig.Settings
	o      Options
	lookup string // host:port that known_hosts is asked for
	db     *knownhosts.HostKeyDB
	log    *slog.Logger

	refused error // the reason the last check failed
	passed  bool  // a key was accepted
}

// newHostKeys reads the known_hosts files that are there.
func newHostKeys(s *sshconfig.Settings, o Options) (*hostKeys, error) {
	h := &hostKeys{s: s, o: o, lookup: net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), log: o.logger()}
	if s.HostKeyAlias != "" {
		// An alias stands for the machine whatever its port is.
		h.lookup = net.JoinHostPort(s.HostKeyAlias, "22")
	}
	var files []string
	for _, f := range slices.Concat(s.UserKnownHosts, s.GlobalKnownHosts) {
		if ok, err := isFile(f); !ok {
			if !errors.Is(err, os.ErrNotExist) && f != os.DevNull {
				h.log.Warn("known hosts file is not used", "file", f, "error", err)
			}
			continue
		}
		if _, err := knownhosts.NewDB(f); err != nil {
			h.log.Warn("known hosts file is not used", "file", f, "error", err)
			continue
		}
		files = append(files, f)
	}
	db, err := knownhosts.NewDB(files...)
	if err != nil {
		return nil, fmt.Errorf("reading known hosts: %w", err)
	}
	h.db = db
	return h, nil
}

// algorithms orders host key algorithms: first those that the known keys of this very host can
// answer to, since any other would look like a changed key, then the rest. Certificates are asked
// for only where a CA is on record: a server that offers one to a client without cannot be checked.
func (h *hostKeys) algorithms() []string {
	var plain []string
	for _, a := range ssh.SupportedAlgorithms().HostKeys {
		if !strings.Contains(a, "-cert-") {
			plain = append(plain, a)
		}
	}
	// The configuration can order, leave out, and ask for what is off by default.
	able := slices.Concat(ssh.SupportedAlgorithms().HostKeys, ssh.InsecureAlgorithms().HostKeys)
	if len(h.s.HostKeyAlgorithms) > 0 {
		plain = nil
		for _, a := range h.s.HostKeyAlgorithms {
			if slices.Contains(able, a) && !strings.Contains(a, "-cert-") {
				plain = append(plain, a)
			}
		}
	}
	var algos []string
	for _, a := range h.db.HostKeyAlgorithms(h.lookup) {
		if slices.Contains(plain, a) || strings.Contains(a, "-cert-") && slices.Contains(able, a) {
			algos = append(algos, a)
		}
	}
	for _, a := range plain {
		if !slices.Contains(algos, a) {
			algos = append(algos, a)
		}
	}
	return algos
}

// check is an ssh.HostKeyCallback.
func (h *hostKeys) check(_ string, remote net.Addr, key ssh.PublicKey) error {
	err := h.judge(remote, key)
	h.refused, h.passed = err, err == nil
	return err
}

func (h *hostKeys) judge(remote net.Addr, key ssh.PublicKey) error {
	err := h.db.HostKeyCallback()(h.lookup, netAddr(remote), key)
	if err == nil {
		return nil
	}
	e := &HostKeyError{
		Host: knownhosts.Normalize(h.lookup), Addr: remote.String(),
		KeyType: key.Type(), Fingerprint: ssh.FingerprintSHA256(key),
	}
	var revoked *xknownhosts.RevokedError
	var known *xknownhosts.KeyError
	switch {
	case errors.As(err, &revoked):
		e.Revoked = true
		e.Known = []string{place(revoked.Revoked)}
		return e
	case errors.As(err, &known) && len(known.Want) > 0:
		e.Changed = true
		for _, k := range known.Want {
			e.Known = append(e.Known, place(k))
		}
		e.Record = fmt.Sprintf("ssh-keygen -R %s -f %s", word(e.Host), word(known.Want[0].Filename))
		return e
	case !errors.As(err, &known):
		return &both{fmt.Errorf("host key of %s: %s", e.Host, display.Said(err.Error())), ErrHostKey}
	}
	if h.s.StrictHostKey == "accept-new" && len(h.s.UserKnownHosts) > 0 {
		if err := h.record(h.s.UserKnownHosts[0], remote, key); err != nil {
			return &both{fmt.Errorf("recording the host key of %s: %w", e.Host, err), ErrHostKey}
		}
		h.log.Info("recorded a new host key", "host", e.Host, "type", e.KeyType, "fingerprint", e.Fingerprint)
		return nil
	}
	e.Record = h.recordCommand()
	return e
}

// recordCommand is the ssh command that records the key the way this connection would look for it.
func (h *hostKeys) recordCommand() string {
	args := []string{"ssh"}
	if h.o.ConfigFile != "" {
		args = append(args, "-F", word(h.o.ConfigFile))
	}
	for _, kv := range h.o.Options {
		args = append(args, "-o", word(kv))
	}
	args = append(args, "-o", "StrictHostKeyChecking=accept-new")
	if h.s.Port != 22 {
		args = append(args, "-p", strconv.Itoa(h.s.Port))
	}
	if h.s.User != "" {
		args = append(args, "-l", word(h.s.User))
	}
	return strings.Join(append(args, word(h.s.Alias), "true"), " ")
}

// record appends key to file, unless another process did so since it was read. The lock makes two
// of us agree; ssh itself appends without one, in a single write, as this does.
func (h *hostKeys) record(file string, remote net.Addr, key ssh.PublicKey) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lockFile(f); err != nil {
		return err
	}
	var known *xknownhosts.KeyError
	if db, err := knownhosts.NewDB(file); err == nil {
		switch err := db.HostKeyCallback()(h.lookup, netAddr(remote), key); {
		case err == nil:
			return nil
		case errors.As(err, &known) && len(known.Want) > 0:
			return errors.New("another key was recorded at the same time")
		}
	}
	host := knownhosts.Normalize(h.lookup)
	if h.s.HashKnownHosts {
		host = xknownhosts.HashHostname(host)
	}
	line := host + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + "\n"
	if !endsLine(f) {
		line = "\n" + line
	}
	_, err = f.WriteString(line)
	return err
}

// endsLine reports whether f is empty or ends in a newline.
func endsLine(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return true
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, fi.Size()-1)
	return err == nil && last[0] == '\n'
}

// netAddr is addr in the form that known hosts are looked up with. A connection through a command
// or another machine has no address of its own.
func netAddr(addr net.Addr) net.Addr {
	if _, _, err := net.SplitHostPort(addr.String()); err != nil {
		return &net.TCPAddr{IP: net.IPv4zero}
	}
	return addr
}

func place(k xknownhosts.KnownKey) string { return k.Filename + ":" + strconv.Itoa(k.Line) }

// word quotes s for a shell, if it has to be.
func word(s string) string {
	safe := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@%+=:,./_-~", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !safe(r) }) {
		return s
	}
	if runtime.GOOS == "windows" {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// publicKey reads the first authorized_keys line of data.
func publicKey(data []byte) (ssh.PublicKey, string, error) {
	key, comment, _, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(data))
	return key, comment, err
}
