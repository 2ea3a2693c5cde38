package transport

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// keyFile writes a new private key, encrypted if there is a passphrase, and returns its public half.
func keyFile(t testing.TB, file, passphrase string) (ed25519.PrivateKey, ssh.PublicKey) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, filepath.Base(file))
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, filepath.Base(file), []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(pem.EncodeToMemory(block)))
	pub, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, pub
}

// startAgent serves keys on a socket.
func startAgent(t testing.TB, keys ...ed25519.PrivateKey) string {
	t.Helper()
	ring := agent.NewKeyring()
	for i, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k, Comment: fmt.Sprint("key ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	return serveKeys(t, ring)
}

// serveKeys serves an agent on a socket.
func serveKeys(t testing.TB, a agent.Agent) string {
	t.Helper()
	sock, l := listen(t)
	go serve(l, func(c net.Conn) {
		_ = agent.ServeAgent(a, c)
	})
	return sock
}

// listen listens on a socket in a directory whose path is short enough for one.
func listen(t testing.TB) (string, net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "s")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	return sock, l
}

// authConfig writes an ssh_config for the server's accounts with these lines about keys.
func authConfig(t testing.TB, s *transporttest.Server, lines ...string) Options {
	t.Helper()
	needSSH(t, s)
	file := filepath.Join(tempDir(t), "config")
	write(t, file, fmt.Sprintf("Host *\n  HostName 127.0.0.1\n  Port %d\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile /dev/null\n"+
		"  StrictHostKeyChecking yes\n  %s\n", s.Port(), s.KnownHostsFile(), strings.Join(lines, "\n  ")))
	return Options{ConfigFile: file, User: "user", home: tempDir(t)}
}

// newAccount starts a server whose account accepts these keys alone.
func newAccount(t testing.TB, keys ...ssh.PublicKey) *transporttest.Server {
	t.Helper()
	return startServer(t, transporttest.Options{Accounts: []transporttest.Account{{Name: "user", Keys: keys, OnlyKeys: true}}})
}

func TestTheNamedKeyComesBeforeTheAgents(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	_, right := keyFile(t, dir+"/right", "")
	var wrong []ed25519.PrivateKey
	for range 8 {
		k, _ := keyFile(t, dir+"/wrong", "")
		wrong = append(wrong, k)
	}
	s := newAccount(t, right)
	sock := startAgent(t, wrong...)
	// More keys than the server lets anybody offer.
	dial(t, "host", authConfig(t, s, "IdentityFile "+dir+"/right", "IdentityAgent "+sock))
	o := authConfig(t, s, "IdentityAgent "+sock)
	o.IdentityFiles = []string{dir + "/right"}
	dial(t, "host", o)
}

func TestTheAgentsOwnCopyOfTheNamedKeyComesFirst(t *testing.T) {
	dir := tempDir(t)
	var keys []ed25519.PrivateKey
	for range 8 {
		k, _ := keyFile(t, dir+"/any", "")
		keys = append(keys, k)
	}
	last, pub := keyFile(t, dir+"/right", "secret")
	write(t, dir+"/right.pub", string(ssh.MarshalAuthorizedKey(pub)))
	s := newAccount(t, pub)
	sock := startAgent(t, append(keys, last)...)
	// The file is encrypted and nobody can be asked; with and without the private half beside it.
	dial(t, "host", authConfig(t, s, "IdentityFile "+dir+"/right", "IdentityAgent "+sock, "IdentitiesOnly yes"))
	dial(t, "host", authConfig(t, s, "IdentityFile "+dir+"/right.pub", "IdentityAgent "+sock, "IdentitiesOnly yes"))
	if err := os.Remove(dir + "/right"); err != nil {
		t.Fatal(err)
	}
	dial(t, "host", authConfig(t, s, "IdentityFile "+dir+"/right", "IdentityAgent "+sock, "IdentitiesOnly yes"))
}

func TestAKeyFromTheAgentAlone(t *testing.T) {
	key, pub := keyFile(t, tempDir(t)+"/k", "")
	s := newAccount(t, pub)
	sock := startAgent(t, key)
	t.Setenv("SSH_AUTH_SOCK", sock)
	t.Setenv("MY_AGENT", sock)
	dial(t, "host", authConfig(t, s))
	for _, how := range []string{"SSH_AUTH_SOCK", "$MY_AGENT", "${MY_AGENT}", sock} {
		if how != "SSH_AUTH_SOCK" {
			t.Setenv("SSH_AUTH_SOCK", "/nonexistent")
		}
		dial(t, "host", authConfig(t, s, "IdentityAgent "+how))
	}
	t.Setenv("SSH_AUTH_SOCK", sock)
	for what, lines := range map[string][]string{
		"IdentityAgent none": {"IdentityAgent none"}, "IdentitiesOnly": {"IdentitiesOnly yes"}, "no public keys": {"PubkeyAuthentication no"},
	} {
		c, err := Dial(t.Context(), Target{Host: "host"}, authConfig(t, s, lines...))
		if !errors.Is(err, ErrAuth) {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

func TestADeadAgentDoesNotStopANamedKey(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "")
	s := newAccount(t, pub)
	hung, l := listen(t)
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return // accepted and never answered
			}
		}
	}()
	for name, sock := range map[string]string{"gone": "/nonexistent/agent", "hung": hung} {
		t.Run(name, func(t *testing.T) {
			within(t, 2*agentTimeout+3*time.Second, func() {
				dial(t, "host", authConfig(t, s, "IdentityFile "+dir+"/k", "IdentityAgent "+sock))
			})
		})
	}
}

func TestARefusedLoginSaysWhatWasTriedAndIsNotRepeated(t *testing.T) {
	dir := tempDir(t)
	_, a := keyFile(t, dir+"/a", "")
	_, b := keyFile(t, dir+"/b", "")
	keyFile(t, dir+"/locked", "secret")
	write(t, dir+"/junk", "not a key \x1b[31m")
	s := newAccount(t)
	o := authConfig(t, s, "IdentityFile "+dir+"/a", "IdentityFile "+dir+"/b", "IdentityFile "+dir+"/missing",
		"IdentityFile "+dir+"/locked", "IdentityFile "+dir+"/junk", "IdentityAgent none")
	_, err := Dial(t.Context(), Target{Host: "host"}, o)
	var auth *AuthError
	if !errors.Is(err, ErrAuth) || !errors.As(err, &auth) {
		t.Fatalf("got %v", err)
	}
	if len(auth.Tried) != 2 || !strings.Contains(auth.Tried[0], ssh.FingerprintSHA256(a)) || !strings.Contains(auth.Tried[1], ssh.FingerprintSHA256(b)) {
		t.Errorf("tried %q", auth.Tried)
	}
	for _, word := range []string{"user", "host", dir + "/a", dir + "/b", dir + "/missing", dir + "/locked", dir + "/junk"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
	}
	var ke *KeyError
	if !errors.As(err, &ke) {
		t.Error("no KeyError in the chain")
	}
	if !strings.Contains(Hint(err), "ssh-add "+dir+"/locked") {
		t.Errorf("hint %q", Hint(err))
	}
	if n := s.Connections(); n != 1 {
		t.Errorf("%d connections for one failed login", n)
	}
}

func TestAnEncryptedKeyWithNobodyToAskIsATypedError(t *testing.T) {
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "secret")
	s := newAccount(t, pub)
	within(t, 10*time.Second, func() {
		_, err := Dial(t.Context(), Target{Host: "host"}, authConfig(t, s, "IdentityFile "+dir+"/k", "IdentityAgent none"))
		var ke *KeyError
		if !errors.Is(err, ErrAuth) || !errors.As(err, &ke) || !ke.Encrypted || ke.Path != dir+"/k" {
			t.Errorf("got %v", err)
		}
	})
	o := authConfig(t, s, "IdentityFile "+dir+"/k", "IdentityAgent none", "BatchMode yes")
	o.Ask = func(context.Context, Prompt) (string, error) {
		t.Error("asked in batch mode")
		return "secret", nil
	}
	if _, err := Dial(t.Context(), Target{Host: "host"}, o); !errors.Is(err, ErrAuth) {
		t.Errorf("batch mode: %v", err)
	}
}

func TestAPassphraseIsAskedForOnceAndOnlyIfTheKeyIsWanted(t *testing.T) {
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/wanted", "secret")
	keyFile(t, dir+"/other", "secret")
	s := newAccount(t, pub)
	log := &logBuffer{}
	o := authConfig(t, s, "IdentityFile "+dir+"/other", "IdentityFile "+dir+"/wanted", "IdentityAgent none")
	o.Log = log.logger()
	o.HandshakeTimeout = 500 * time.Millisecond
	var asked []Prompt
	answer := "secret"
	o.Ask = func(ctx context.Context, p Prompt) (string, error) {
		asked = append(asked, p)
		time.Sleep(2 * o.HandshakeTimeout) // a person is slower than a handshake
		return answer, nil
	}
	dial(t, "host", o)
	if len(asked) != 1 || !asked[0].Secret || !strings.Contains(asked[0].Text, dir+"/wanted") {
		t.Errorf("asked %+v", asked)
	}
	asked, answer = nil, "not the passphrase"
	_, err := Dial(t.Context(), Target{Host: "host"}, o)
	if !errors.Is(err, ErrAuth) || len(asked) != 3 {
		t.Errorf("wrong passphrase: %v, asked %d times", err, len(asked))
	}
	if all := log.String() + fmt.Sprint(err); strings.Contains(all, "secret") || strings.Contains(all, answer) {
		t.Errorf("a passphrase was repeated: %s", all)
	}
}

func TestSSHsDefaultsAreLookedForAndMayBeMissing(t *testing.T) {
	home := tempDir(t)
	if err := os.Mkdir(home+"/.ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	_, pub := keyFile(t, home+"/.ssh/id_ed25519", "")
	s := newAccount(t, pub)
	t.Setenv("SSH_AUTH_SOCK", "")
	o := authConfig(t, s)
	o.home = home
	dial(t, "host", o)
	if err := os.Remove(home + "/.ssh/id_ed25519"); err != nil {
		t.Fatal(err)
	}
	_, err := Dial(t.Context(), Target{Host: "host"}, o)
	var auth *AuthError
	if !errors.As(err, &auth) || len(auth.Tried)+len(auth.Skipped) != 0 || !strings.Contains(Hint(err), "-i FILE") {
		t.Errorf("without any key: %v; %+v", err, auth)
	}
}

func TestWithoutAnSSHProgramTheDefaultsWork(t *testing.T) {
	home := tempDir(t)
	if err := os.Mkdir(home+"/.ssh", 0o700); err != nil {
		t.Fatal(err)
	}
	_, pub := keyFile(t, home+"/.ssh/id_ed25519", "")
	s := newAccount(t, pub)
	known, err := os.ReadFile(s.KnownHostsFile())
	if err != nil {
		t.Fatal(err)
	}
	write(t, home+"/.ssh/known_hosts", string(known))
	t.Setenv("PATH", "/nonexistent")
	t.Setenv("SSH_AUTH_SOCK", "")
	log := &logBuffer{}
	c, err := Dial(t.Context(), Target{User: "user", Host: "127.0.0.1", Port: s.Port()}, Options{Log: log.logger(), home: home})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if !strings.Contains(log.String(), "no ssh program was found") {
		t.Errorf("the log does not say so: %s", log)
	}
	write(t, home+"/.ssh/config", fmt.Sprintf("Host alias\n  HostName 127.0.0.1\n  Port %d\n  User user\n", s.Port()))
	if c, err = Dial(t.Context(), Target{Host: "alias"}, Options{home: home}); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestTheHintAboutAnAgentNamesTheOneThatIsUsed is for agents that ssh-add would not speak to by itself.
func TestTheHintAboutAnAgentNamesTheOneThatIsUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "/bin/sh")
	}
	dir := tempDir(t)
	keyFile(t, dir+"/locked", "secret")
	s := newAccount(t)
	for name, c := range map[string]struct{ env, agent, want string }{
		"the session's":          {dir + "/mine", "", "with: ssh-add " + dir + "/locked"},
		"another":                {dir + "/mine", dir + "/other", "with: SSH_AUTH_SOCK=" + dir + "/other ssh-add " + dir + "/locked"},
		"none, by configuration": {dir + "/mine", "none", "with: ssh-add " + dir + "/locked, and use the agent, with: -o IdentityAgent=SSH_AUTH_SOCK"},
		"none at all":            {"", "none", `with: eval "$(ssh-agent)"; ssh-add ` + dir + "/locked"},
	} {
		t.Setenv("SSH_AUTH_SOCK", c.env)
		lines := []string{"IdentityFile " + dir + "/locked"}
		if c.agent != "" {
			lines = append(lines, "IdentityAgent "+c.agent)
		}
		_, err := Dial(t.Context(), Target{Host: "host"}, authConfig(t, s, lines...))
		if !errors.Is(err, ErrAuth) || !strings.HasSuffix(Hint(err), c.want) {
			t.Errorf("%s: %v; hint %q", name, err, Hint(err))
		}
	}
}
