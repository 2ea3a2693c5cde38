// Package transporttest is an SSH server on the loopback interface, for tests and for punnet's demo.
//
// It speaks real SSH and SFTP, checks keys, and gives each account a home directory of its own, but
// it runs everything as the user who started it: it is a stand-in for a machine, not a protection
// from one. Faults make it misbehave in the ways links and servers do.
package transporttest

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Bounds of one server.
const (
	maxConns    = 64 // connections at a time
	maxSessions = 10 // Options.MaxSessions that was not set
)

// Account is one login that the server knows.
type Account struct {
	Name string
	// Noise is printed by the account's login shell before anything else, on exec and on SFTP.
	Noise string
	// NoExec makes a command print a refusal and exit with status 1, as OpenSSH does for accounts
	// that are for SFTP only.
	NoExec bool
	// RefuseExec refuses exec requests outright, as some servers do.
	RefuseExec bool
	// NoFiles refuses the SFTP subsystem.
	NoFiles bool
	// Shell is how the login shell takes a command line apart: into the words of a program to run,
	// or into what it says, with status 1, of a line that it does not understand. Nil is /bin/sh.
	Shell func(line string) (argv []string, words string)
	// Start is where a command starts, below the home; "" is the home. SFTP starts in the home
	// all the same, as where a start file changes the directory.
	Start string
	// Chroot, when not "", is the absolute path of the home in a root directory of its own, outside
	// which SFTP sees nothing: "/" for a confined account, "/C:/Users/name" for one on Windows.
	Chroot string
	// Keys are accepted besides the server's own client key. With OnlyKeys set they alone are.
	Keys     []ssh.PublicKey
	OnlyKeys bool
}

// Faults is how the server misbehaves. The zero Faults is none.
type Faults struct {
	// Delay is added to each direction: the round trip time of the link is twice as long.
	Delay time.Duration
	// Drop is how many connections are closed as soon as they are made.
	Drop int
	// DropWords is sent before such a connection is closed.
	DropWords string
	// CutSent and CutReceived close a connection after that many bytes left the server or reached
	// it; StallSent and StallReceived stop sending or listening instead. Zero is never; a negative
	// number is at once.
	CutSent, CutReceived, StallSent, StallReceived int64
	// BannerFlood sends banners without end before the login.
	BannerFlood bool
	// StallAuth, StallChannels and StallFiles never answer a login, the opening of a channel, or
	// an SFTP request after the first.
	StallAuth, StallChannels, StallFiles bool
	// RefuseChannels refuses every channel.
	RefuseChannels bool
}

// Options says what server to start. The zero value has one account, "user".
type Options struct {
	Accounts []Account
	// Dir is an existing directory for keys and homes. Empty makes a temporary one, which Close
	// removes.
	Dir    string
	Faults Faults
	// HostKey is the server's key; nil makes a new ed25519 key.
	HostKey ssh.Signer
	// MaxAuthTries is how many keys a client may offer; 0 is 6, as for sshd.
	MaxAuthTries int
	// MaxSessions is how many channels a connection may have open; 0 is 10, as for sshd.
	MaxSessions int
	// Version is what the server says it is, "SSH-2.0-..."; "" is its own name.
	Version string
}

// Server is a running server. Its methods may be called from many goroutines at once.
type Server struct {
	dir      string
	ownDir   bool
	listener net.Listener
	accounts map[string]Account
	hostKey  ssh.Signer
	client   ssh.Signer
	tries    int
	sessions int // the most channels of one connection
	version  string

	closing chan struct{}
	once    sync.Once
	wg      sync.WaitGroup

	mu     sync.Mutex
	faults Faults
	conns  map[net.Conn]bool
	logins int // authentications that were attempted, by connection
	total  int // connections accepted
	peak   int // channels open at a time on one connection
}

// Start starts a server on a free port of 127.0.0.1, with a client key that every account accepts.
func Start(o Options) (*Server, error) {
	if len(o.Accounts) == 0 {
		o.Accounts = []Account{{Name: "user"}}
	}
	s := &Server{
		dir: o.Dir, accounts: make(map[string]Account), hostKey: o.HostKey, tries: o.MaxAuthTries, faults: o.Faults,
		sessions: o.MaxSessions, version: o.Version,
		closing: make(chan struct{}), conns: make(map[net.Conn]bool),
	}
	if s.sessions == 0 {
		s.sessions = maxSessions
	}
	if s.version == "" {
		s.version = "SSH-2.0-PunnetTest"
	}
	if err := s.prepare(o.Accounts); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a test SSH server: %w", err), s.removeDir())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a test SSH server: %w", err), s.removeDir())
	}
	s.listener = l
	if err := s.writeFiles(); err != nil {
		l.Close()
		return nil, errors.Join(fmt.Errorf("starting a test SSH server: %w", err), s.removeDir())
	}
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

// prepare makes the directory, the homes and the keys.
func (s *Server) prepare(accounts []Account) error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "punnet-ssh-")
		if err != nil {
			return err
		}
		s.dir, s.ownDir = dir, true
	}
	dir, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return err
	}
	s.dir = dir
	for _, a := range accounts {
		if a.Name == "" || filepath.Base(a.Name) != a.Name {
			return fmt.Errorf("account name %q", a.Name)
		}
		if a.Chroot != "" && !path.IsAbs(a.Chroot) {
			return fmt.Errorf("account %q: the path %q is not absolute", a.Name, a.Chroot)
		}
		s.accounts[a.Name] = a
		home := s.Home(a.Name)
		if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
			return err
		}
		if err := os.MkdirAll(home, 0o700); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(home, a.Start), 0o700); err != nil {
			return err
		}
	}
	if s.hostKey == nil {
		if s.hostKey, err = newKey(); err != nil {
			return err
		}
	}
	return nil
}

func newKey() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return ssh.NewSignerFromKey(key)
}

// SetFaults changes how the server misbehaves towards connections made from now on; what concerns
// logins, channels and SFTP changes for connections that exist too.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

func (s *Server) currentFaults() Faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults
}

// Connections returns how many connections were accepted so far.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Logins returns how many connections got as far as offering a key.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// MostSessions returns how many channels were open at a time on one connection, at most.
func (s *Server) MostSessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak
}

// Close ends every connection and command, waits for them, and removes a temporary directory.
func (s *Server) Close() error {
	s.once.Do(func() {
		close(s.closing)
		s.listener.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
	})
	s.wg.Wait()
	return s.removeDir()
}

func (s *Server) removeDir() error {
	if !s.ownDir {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// accept takes connections until Close. One above maxConns is dropped, as sshd's MaxStartups does.
func (s *Server) accept() {
	defer s.wg.Done()
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.total++
		drop := s.faults.Drop > 0 || len(s.conns) >= maxConns
		if s.faults.Drop > 0 {
			s.faults.Drop--
		}
		words := s.faults.DropWords
		select {
		case <-s.closing:
			drop = true
		default:
		}
		if drop {
			s.mu.Unlock()
			_, _ = io.WriteString(nc, words)
			nc.Close()
			continue
		}
		s.conns[nc] = true
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			s.serve(nc)
			nc.Close()
			s.mu.Lock()
			delete(s.conns, nc)
			s.mu.Unlock()
		}()
	}
}

// serve speaks SSH over one connection until it ends.
func (s *Server) serve(nc net.Conn) {
	faults := s.currentFaults()
	conn := newLink(nc, faults, s.closing)
	defer conn.Close()
	sc, chans, reqs, err := ssh.NewServerConn(conn, s.config(faults))
	if err != nil {
		return
	}
	defer sc.Close()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	sessions.Go(func() { s.answer(reqs) })
	slots := make(chan struct{}, s.sessions)
	for c := range chans {
		f := s.currentFaults()
		if f.StallChannels {
			continue
		}
		if f.RefuseChannels || c.ChannelType() != "session" {
			_ = c.Reject(ssh.Prohibited, "no channel for you")
			continue
		}
		select {
		case slots <- struct{}{}:
			s.mu.Lock()
			s.peak = max(s.peak, len(slots))
			s.mu.Unlock()
		default:
			_ = c.Reject(ssh.Prohibited, "too many sessions")
			continue
		}
		free := sync.OnceFunc(func() { <-slots })
		sessions.Go(func() {
			defer free()
			s.session(c, s.accounts[sc.User()], free)
		})
	}
}

// answer answers keepalives as sshd does.
func (s *Server) answer(reqs <-chan *ssh.Request) {
	for r := range reqs {
		if r.WantReply && !s.currentFaults().StallChannels {
			_ = r.Reply(false, nil)
		}
	}
}

func (s *Server) config(faults Faults) *ssh.ServerConfig {
	cfg := &ssh.ServerConfig{MaxAuthTries: s.tries, ServerVersion: s.version}
	counted := false
	cfg.PublicKeyCallback = func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !counted {
			counted = true
			s.mu.Lock()
			s.logins++
			s.mu.Unlock()
		}
		if faults.StallAuth {
			<-s.closing
		}
		if s.accepts(c.User(), key) {
			return nil, nil
		}
		return nil, errors.New("key not accepted")
	}
	if faults.BannerFlood {
		cfg.PreAuthConnCallback = func(c ssh.ServerPreAuthConn) {
			for c.SendAuthBanner("all work and no play makes a dull server\n") == nil {
				select {
				case <-s.closing:
					return
				default:
				}
			}
		}
	}
	cfg.AddHostKey(s.hostKey)
	return cfg
}

// accepts reports whether key opens the account.
func (s *Server) accepts(user string, key ssh.PublicKey) bool {
	a, ok := s.accounts[user]
	if !ok {
		return false
	}
	keys := a.Keys
	if !a.OnlyKeys {
		keys = append([]ssh.PublicKey{s.client.PublicKey()}, keys...)
	}
	for _, k := range keys {
		if string(k.Marshal()) == string(key.Marshal()) {
			return true
		}
	}
	return false
}
