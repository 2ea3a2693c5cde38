package transport

import (
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/sshconfig"
)

func TestTwoKeysAreTwoSteps(t *testing.T) {
	dir := tempDir(t)
	d := newSSHD(t, dir, "AuthenticationMethods publickey,publickey")
	t.Cleanup(d.stop)
	keygen(t, dir+"/second")
	var both []byte
	for _, f := range []string{"/id.pub", "/second.pub"} {
		pub, err := os.ReadFile(dir + f)
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, pub...)
	}
	write(t, dir+"/id.pub.both", string(both))
	if err := os.Rename(dir+"/id.pub.both", dir+"/id.pub"); err != nil {
		t.Fatal(err)
	}
	o := d.options()
	if _, err := Dial(t.Context(), Target{Host: "real"}, o); !errors.Is(err, ErrAuth) || !strings.Contains(Hint(err), "more than one key") {
		t.Errorf("with one of two keys: %v; hint %q", err, Hint(err))
	}
	o.IdentityFiles = []string{dir + "/second"}
	o.Options = []string{"IdentityFile=" + dir + "/id"}
	dial(t, "real", o)
}

func TestFormatsOfOldAreUnlocked(t *testing.T) {
	dir := tempDir(t)
	if out, err := exec.Command(findTool(t, "ssh-keygen"), "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "hunter2", "-f", dir+"/k").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pub := publicHalf(dir+"/k", nil)
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	o := s.options(t, "IdentityFile "+dir+"/k")
	for _, answers := range [][]string{{"hunter2"}, {"wrong", "hunter2"}} {
		who := &person{answers: answers}
		o.Ask = who.ask
		dial(t, "host", o)
		if len(who.asked) != len(answers) {
			t.Errorf("asked %d times", len(who.asked))
		}
	}
	// Whose key it is does not stand in the file.
	if err := os.Remove(dir + "/k.pub"); err != nil {
		t.Fatal(err)
	}
	o.Ask = (&person{answers: []string{"hunter2"}}).ask
	dial(t, "host", o)
	o.Ask = (&person{answers: []string{""}}).ask
	if err := refusedLogin(t, o); len(err.Tried) != 0 || !strings.Contains(err.Error(), "no passphrase") {
		t.Errorf("got %v", err)
	}
}

func TestASecurityKeyInAFileIsToldAndTheWaysOutNamed(t *testing.T) {
	dir := tempDir(t)
	write(t, dir+"/sk", string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append([]byte("openssh-key-v1\x00"),
		ssh.Marshal(struct {
			Cipher, KDF, Options string
			N                    uint32
			Pub                  []byte
			Priv                 []byte
		}{"none", "none", "", 1, ssh.Marshal(struct{ Type, Key, App string }{ssh.KeyAlgoSKED25519, strings.Repeat("k", 32), "ssh:"}), make([]byte, 64)})...)})))
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(nopub(t))})
	o := s.options(t, "IdentityFile "+dir+"/sk")
	o.Way = WayNative
	err := refusedLogin(t, o)
	if len(err.Skipped) != 1 || !strings.Contains(err.Skipped[0], "security key") || !strings.Contains(Hint(err), "ssh-add "+dir+"/sk") || !strings.Contains(Hint(err), "--transport system") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

func TestKeysThatMustNotBeUsedAreNotOfferedAndTold(t *testing.T) {
	dir := tempDir(t)
	keyFile(t, dir+"/ed", "")
	keygen(t, dir+"/rsa", "-t", "rsa", "-b", "2048")
	seen := map[string]bool{}
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		seen[k.Type()] = true
		return nil, errors.New("no")
	}})
	for _, c := range []struct{ line, told, offered string }{
		{"PubkeyAcceptedAlgorithms ssh-ed25519", dir + "/rsa", "ssh-ed25519"},
		{"PubkeyAcceptedAlgorithms rsa-*", dir + "/ed", "ssh-rsa"},
		{"RequiredRSASize 3072", "3072", "ssh-ed25519"},
	} {
		clear(seen)
		err := refusedLogin(t, s.options(t, "IdentityFile "+dir+"/ed", "IdentityFile "+dir+"/rsa", c.line))
		if len(err.Skipped) != 1 || !strings.Contains(err.Skipped[0], c.told) || len(seen) != 1 || !seen[c.offered] {
			t.Errorf("%s: skipped %q, offered %v", c.line, err.Skipped, seen)
		}
	}
}

func TestTheOldSignatureOfRSAKeysIsMadeOnlyWhereItIsAskedFor(t *testing.T) {
	dir := tempDir(t)
	keygen(t, dir+"/rsa", "-t", "rsa", "-b", "2048")
	pub := publicHalf(dir+"/rsa", nil)
	old := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub), PublicKeyAuthAlgorithms: []string{ssh.KeyAlgoRSA}})
	now := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub), PublicKeyAuthAlgorithms: []string{ssh.KeyAlgoRSASHA512}})
	dial(t, "host", now.options(t, "IdentityFile "+dir+"/rsa"))
	err := refusedLogin(t, old.options(t, "IdentityFile "+dir+"/rsa"))
	if !strings.Contains(Hint(err), "PubkeyAcceptedAlgorithms=+ssh-rsa") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
	dial(t, "host", old.options(t, "IdentityFile "+dir+"/rsa", "PubkeyAcceptedAlgorithms +ssh-rsa"))
	sock := realAgent(t)
	add := exec.Command(findTool(t, "ssh-add"), "-q", dir+"/rsa")
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+sock)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	dial(t, "host", old.options(t, "IdentityAgent "+sock, "PubkeyAcceptedAlgorithms +ssh-rsa"))
	dial(t, "host", now.options(t, "IdentityAgent "+sock))
}

func TestWithoutAnSSHProgramOldSignaturesAreNotMade(t *testing.T) {
	k := &keyring{s: &sshconfig.Settings{}}
	for algorithm, want := range map[string]bool{
		"ssh-rsa": false, "ssh-rsa-cert-v01@openssh.com": false, "ssh-dss": false, "rsa-sha2-512": true, "ssh-ed25519": true, "ssh-ed25519-cert-v01@openssh.com": true,
	} {
		if k.accepts(algorithm) != want {
			t.Errorf("%s: %v", algorithm, !want)
		}
	}
}

// withoutKey writes the server's ssh_config without what it says about keys, and returns the file.
func (d *sshd) withoutKey(t testing.TB) string {
	t.Helper()
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(conf)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "Identit") {
			kept = append(kept, line)
		}
	}
	file := tempDir(t) + "/config"
	write(t, file, strings.Join(kept, ""))
	return file
}

// What a file of a key or certificate holds is read without trust in it.
func FuzzKeyFiles(f *testing.F) {
	for _, seed := range []string{"", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", "ssh-ed25519 AAAA x"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := t.TempDir() + "/k"
		write(t, file, string(data))
		k := &keyring{s: &sshconfig.Settings{IdentityFiles: []string{file}, Certificates: []string{file}}, ask: &asker{s: &sshconfig.Settings{}}, agent: askAgent(t.Context(), "", nil)}
		for _, c := range k.candidates() {
			if c.pub == nil || len(c.algorithms) == 0 {
				t.Fatalf("%q may be offered as %+v", data, c)
			}
		}
	})
}
