package transporttest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Addr returns the server's host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Port returns the server's port.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// HostKey returns the server's public key.
func (s *Server) HostKey() ssh.PublicKey { return s.hostKey.PublicKey() }

// Dir returns the directory that holds the keys, the configuration and the homes.
func (s *Server) Dir() string { return s.dir }

// Home returns an account's home directory.
func (s *Server) Home(account string) string {
	return filepath.Join(s.root(account), filepath.FromSlash(s.accounts[account].Chroot))
}

// root returns what is "/" for an account with a Chroot, and the home of any other.
func (s *Server) root(account string) string { return filepath.Join(s.dir, "home", account) }

// KeyFile returns the file of the client key that every account accepts.
func (s *Server) KeyFile() string { return filepath.Join(s.dir, "id") }

// KnownHostsFile returns a known_hosts file that holds this server alone.
func (s *Server) KnownHostsFile() string { return filepath.Join(s.dir, "known_hosts") }

// ConfigFile returns an ssh_config file with a Host block for each account, under the account's
// name.
func (s *Server) ConfigFile() string { return filepath.Join(s.dir, "ssh_config") }

// Config returns the text of ConfigFile.
func (s *Server) Config() string {
	var names []string
	for n := range s.accounts {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "Host %s\n  HostName 127.0.0.1\n  Port %d\n  User %s\n", n, s.Port(), n)
	}
	fmt.Fprintf(&b, "Host *\n  IdentityFile %q\n  IdentitiesOnly yes\n  IdentityAgent none\n", s.KeyFile())
	fmt.Fprintf(&b, "  UserKnownHostsFile %q\n  GlobalKnownHostsFile %s\n", s.KnownHostsFile(), os.DevNull)
	b.WriteString("  StrictHostKeyChecking yes\n  BatchMode yes\n")
	return b.String()
}

// Client connects to an account as a program that has its own SSH connection would.
func (s *Server) Client(ctx context.Context, account string) (*ssh.Client, error) {
	return s.ClientAt(ctx, s.Addr(), account)
}

// ClientAt is Client by way of another address, where something stands that leads to the server.
func (s *Server) ClientAt(ctx context.Context, addr, account string) (*ssh.Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	c, chans, reqs, err := ssh.NewClientConn(nc, s.Addr(), &ssh.ClientConfig{
		User:            account,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(s.client)},
		HostKeyCallback: ssh.FixedHostKey(s.HostKey()),
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the test server: %w", err)
	}
	return ssh.NewClient(c, chans, reqs), nil
}

// writeFiles writes the client key, known_hosts and ssh_config.
func (s *Server) writeFiles() error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	if s.client, err = ssh.NewSignerFromKey(key); err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(key, "punnet test")
	if err != nil {
		return err
	}
	line := knownhosts.Line([]string{s.Addr()}, s.HostKey()) + "\n"
	for name, text := range map[string][]byte{
		s.KeyFile():          pem.EncodeToMemory(block),
		s.KeyFile() + ".pub": ssh.MarshalAuthorizedKey(s.client.PublicKey()),
		s.KnownHostsFile():   []byte(line),
		s.ConfigFile():       []byte(s.Config()),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
