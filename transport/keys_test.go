package transport

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/punnet/punnet/internal/sshconfig"
)

// fakeAgent is an agent that can be told to refuse, and remembers what was added to it.
type fakeAgent struct {
	agent.ExtendedAgent
	refuse func(ssh.PublicKey) bool

	mu    sync.Mutex
	added []agent.AddedKey
}

func (f *fakeAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return f.SignWithFlags(key, data, 0)
}

func (f *fakeAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	if f.refuse != nil && f.refuse(key) {
		return nil, errors.New("not for you")
	}
	return f.ExtendedAgent.SignWithFlags(key, data, flags)
}

func (f *fakeAgent) Add(k agent.AddedKey) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.added = append(f.added, k)
	return f.ExtendedAgent.Add(k)
}

func (f *fakeAgent) taken() []agent.AddedKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := f.added
	f.added = nil
	return keys
}

// serveAgent serves f on a socket.
func serveAgent(t testing.TB, f *fakeAgent) string {
	t.Helper()
	f.ExtendedAgent = agent.NewKeyring().(agent.ExtendedAgent)
	sock, l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = agent.ServeAgent(f, c)
			}()
		}
	}()
	return sock
}

// hungAgent accepts connections and never answers.
func hungAgent(t testing.TB) string {
	t.Helper()
	sock, l := listen(t)
	go func() {
		var kept []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range kept {
					c.Close()
				}
				return
			}
			kept = append(kept, c)
		}
	}()
	return sock
}

func TestReport8Fabric2306AnAgentThatNeverAnswersHoldsNothingUp(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub), PasswordCallback: byPassword("x")})
	o := s.options(t, "IdentityFile "+dir+"/k", "IdentityAgent SSH_AUTH_SOCK")
	t.Setenv("SSH_AUTH_SOCK", hungAgent(t))
	within(t, 2*agentTimeout+5*time.Second, func() { dial(t, "host", o) })
	// Without a key, the agent is named as what did not answer.
	o = s.options(t, "IdentityAgent "+hungAgent(t))
	within(t, 2*agentTimeout+5*time.Second, func() {
		if err := refusedLogin(t, o); !strings.Contains(err.Error(), "agent: no answer within") {
			t.Errorf("got %v", err)
		}
	})
}

func TestReport9Terraform29074ADeadAgentDoesNotStopANamedKey(t *testing.T) {
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	o := s.options(t, "IdentityFile "+dir+"/k")
	sock, l := listen(t)
	l.Close()
	write(t, sock, "not a socket")
	for _, dead := range []string{"/nonexistent/agent", sock} {
		t.Setenv("SSH_AUTH_SOCK", dead)
		dial(t, "host", o)
	}
}

func TestReport10Earthly3179IdentityAgentIsTheAgentThatIsAsked(t *testing.T) {
	key, pub := keyFile(t, tempDir(t)+"/k", "")
	other, _ := keyFile(t, tempDir(t)+"/k", "")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	right, wrong := startAgent(t, key), startAgent(t, other)
	o := s.options(t, "IdentityAgent "+right)
	t.Setenv("SSH_AUTH_SOCK", wrong)
	dial(t, "host", o)
	o = s.options(t, "IdentityAgent "+wrong)
	t.Setenv("SSH_AUTH_SOCK", right)
	refusedLogin(t, o)
}

func TestReport11NixosAnywhere629TooManyKeysAreCountedAndTheWayOutIsNamed(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	var keys []ed25519.PrivateKey
	for range 9 {
		k, _ := keyFile(t, tempDir(t)+"/k", "")
		keys = append(keys, k)
	}
	o := d.options()
	sock := startAgent(t, keys...)
	named := o
	o.ConfigFile, o.home = d.withoutKey(t), tempDir(t)
	o.Options = []string{"IdentityAgent=" + sock, "IdentityFile=none"}
	_, err := Dial(t.Context(), Target{Host: "real"}, o)
	var auth *AuthError
	if !errors.As(err, &auth) || len(auth.Tried) != 6 || !strings.Contains(Hint(err), "after 6 of the keys") ||
		!strings.Contains(Hint(err), "IdentityFile") || !strings.Contains(Hint(err), "IdentitiesOnly") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
	// The same keys, with the right one named.
	named.Options = []string{"IdentityAgent=" + sock, "IdentitiesOnly=no"}
	dial(t, "real", named)
}

func TestAKeyThatCannotSignLeadsToTheNext(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	a, pubA := keyFile(t, dir+"/a", "")
	write(t, dir+"/a.pub", string(ssh.MarshalAuthorizedKey(pubA)))
	_, pubB := keyFile(t, dir+"/b", "hunter2")
	_, pubC := keyFile(t, dir+"/c", "")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		for _, pub := range []ssh.PublicKey{pubA, pubB, pubC} {
			if sameKey(k, pub) {
				return nil, nil
			}
		}
		return nil, errors.New("no")
	}})
	f := &fakeAgent{refuse: func(k ssh.PublicKey) bool { return sameKey(k, pubA) }}
	sock := serveAgent(t, f)
	if err := f.ExtendedAgent.Add(agent.AddedKey{PrivateKey: a}); err != nil {
		t.Fatal(err)
	}
	// The agent refuses a, nobody knows b's passphrase, c is willing.
	o := s.options(t, "IdentityAgent "+sock, "IdentityFile "+dir+"/a", "IdentityFile "+dir+"/b", "IdentityFile "+dir+"/c", "NumberOfPasswordPrompts 2")
	who := &person{answers: []string{"wrong"}}
	o.Ask = who.ask
	var login Step
	o.Trace = func(s Step) {
		if s.Name == StepLogin {
			login = s
		}
	}
	dial(t, "host", o)
	if len(who.asked) != 2 || login.Err != nil || !strings.Contains(login.Value, dir+"/c "+ssh.FingerprintSHA256(pubC)) {
		t.Errorf("asked %d times; %+v", len(who.asked), login)
	}
	o = s.options(t, "IdentityAgent "+sock, "IdentityFile "+dir+"/a", "IdentitiesOnly yes")
	if err := refusedLogin(t, o); !strings.Contains(err.Error(), "the agent did not sign") || !strings.Contains(Hint(err), "--transport system") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

func TestAKeyThatOpenSSHsAgentKeepsForOtherMachinesLeadsToTheNext(t *testing.T) {
	d := startSSHD(t)
	sock := realAgent(t)
	dir := tempDir(t)
	known := dir + "/known_hosts"
	keygen(t, dir+"/host")
	hostKey, err := os.ReadFile(dir + "/host.pub")
	if err != nil {
		t.Fatal(err)
	}
	write(t, known, "elsewhere "+string(hostKey))
	add := exec.Command(findTool(t, "ssh-add"), "-q", "-H", known, "-h", "elsewhere", d.dir+"/id")
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+sock)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	o := d.options()
	o.home = tempDir(t)
	o.Options = []string{"IdentityAgent=" + sock}
	_, err = Dial(t.Context(), Target{Host: "real"}, o)
	if !errors.Is(err, ErrAuth) || !strings.Contains(Hint(err), "ssh-add -h") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

// realAgent starts OpenSSH's agent, which ends with the test, and returns its socket.
func realAgent(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	sock := dir + "/s"
	cmd := exec.Command(findTool(t, "ssh-agent"), "-D", "-a", sock)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		os.RemoveAll(dir)
	})
	for range 100 {
		if _, err := os.Stat(sock); err == nil {
			return sock
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("ssh-agent did not start")
	return ""
}

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
	if _, err := Dial(t.Context(), Target{Host: "real"}, o); !errors.Is(err, ErrAuth) {
		t.Errorf("with one of two keys: %v", err)
	}
	o.IdentityFiles = []string{dir + "/second"}
	o.Options = []string{"IdentityFile=" + dir + "/id"}
	dial(t, "real", o)
}

func TestAKeyFromAFileIsAddedToTheAgentAsTheConfigurationSays(t *testing.T) {
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "hunter2")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	for _, c := range []struct {
		value, answer string
		want          *agent.AddedKey
	}{
		{"no", "", nil},
		{"yes", "", &agent.AddedKey{}},
		{"confirm", "", &agent.AddedKey{ConfirmBeforeUse: true}},
		{"1h", "", &agent.AddedKey{LifetimeSecs: 3600}},
		{"confirm 90", "", &agent.AddedKey{ConfirmBeforeUse: true, LifetimeSecs: 90}},
		{"ask", "yes", &agent.AddedKey{}},
		{"ask", "no", nil},
	} {
		f := &fakeAgent{}
		sock := serveAgent(t, f)
		o := s.options(t, "IdentityFile "+dir+"/k", "IdentityAgent "+sock, "AddKeysToAgent "+c.value)
		confirmed := 0
		o.Ask = func(_ context.Context, p Prompt) (string, error) {
			if p.Confirm {
				confirmed++
				return c.answer, nil
			}
			return "hunter2", nil
		}
		dial(t, "host", o)
		got := f.taken()
		if (len(got) == 1) != (c.want != nil) || (confirmed == 1) != (c.value == "ask") {
			t.Errorf("%s: added %d keys, asked %d times", c.value, len(got), confirmed)
		} else if c.want != nil && (got[0].ConfirmBeforeUse != c.want.ConfirmBeforeUse || got[0].LifetimeSecs != c.want.LifetimeSecs || got[0].Comment != dir+"/k") {
			t.Errorf("%s: added %+v", c.value, got[0])
		}
		if c.value == "yes" {
			o.Ask = nil // the agent has it now
			dial(t, "host", o)
		}
	}
	// An agent that takes no keys does not stop the login.
	o := s.options(t, "IdentityFile "+dir+"/k", "IdentityAgent /nonexistent/agent", "AddKeysToAgent yes")
	o.Ask = (&person{answers: []string{"hunter2"}}).ask
	dial(t, "host", o)
	if _, ok := lending("nonsense"); ok {
		t.Error("nonsense is taken for yes")
	}
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
	err := refusedLogin(t, s.options(t, "IdentityFile "+dir+"/sk"))
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

// issue signs a certificate for key file and returns its file.
func issue(t testing.TB, ca, key, name string, args ...string) string {
	t.Helper()
	args = append([]string{"-q", "-s", ca, "-I", "test"}, append(args, key+".pub")...)
	if out, err := exec.Command(findTool(t, "ssh-keygen"), args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	if err := os.Rename(key+"-cert.pub", name); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestACertificateOpensTheAccountItNames(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	keygen(t, dir+"/ca")
	me := currentUser(t)
	d := newSSHD(t, dir, "TrustedUserCAKeys "+dir+"/ca.pub")
	t.Cleanup(d.stop)
	home := tempDir(t)
	keygen(t, home+"/k")
	keygen(t, home+"/r", "-t", "rsa", "-b", "2048")
	if out, err := exec.Command(findTool(t, "ssh-keygen"), "-q", "-p", "-P", "", "-N", "hunter2", "-f", home+"/r").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	good := issue(t, dir+"/ca", home+"/k", home+"/good", "-n", me)
	rsaCert := issue(t, dir+"/ca", home+"/r", home+"/rgood", "-n", me)
	other := issue(t, dir+"/ca", home+"/k", home+"/other", "-n", "somebody-else")
	expired := issue(t, dir+"/ca", home+"/k", home+"/expired", "-n", me, "-V", "20200101:20200102")
	early := issue(t, dir+"/ca", home+"/k", home+"/early", "-n", me, "-V", "20900101:20900102")
	host := issue(t, dir+"/ca", home+"/k", home+"/host", "-h", "-n", me)
	t.Setenv("SSH_AUTH_SOCK", "")
	reach := func(o Options, options ...string) (Conn, string, error) {
		how := ""
		o.Options, o.home = options, tempDir(t)
		o.Trace = func(s Step) {
			if s.Name == StepLogin {
				how = s.Value
			}
		}
		c, err := Dial(t.Context(), Target{Host: "real"}, o)
		if c != nil {
			t.Cleanup(func() { c.Close() })
		}
		return c, how, err
	}
	o := Options{ConfigFile: d.withoutKey(t)}
	for _, c := range []struct{ name, key, cert, told string }{
		{"named", "k", good, ""}, {"expired", "k", expired, "expired"}, {"early", "k", early, "not valid before"}, {"a host's", "k", host, "host's"},
		{"of another account", "k", other, ""}, {"RSA, encrypted", "r", rsaCert, ""}, {"of another key", "k", rsaCert, "not here"},
	} {
		o := o
		o.IdentityFiles = []string{home + "/" + c.key}
		o.Ask = (&person{answers: []string{"hunter2"}}).ask
		_, how, err := reach(o, "CertificateFile="+c.cert)
		if opens := c.name == "named" || c.name == "RSA, encrypted"; opens != (err == nil) || opens && !strings.Contains(how, "certificate") {
			t.Errorf("%s: %q, %v", c.name, how, err)
		}
		if err != nil {
			var auth *AuthError
			if !errors.As(err, &auth) || !strings.Contains(strings.Join(auth.Skipped, " "), c.told) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	// Beside the key, without being named.
	if err := os.Link(good, home+"/k-cert.pub"); err != nil {
		t.Fatal(err)
	}
	o.IdentityFiles = []string{home + "/k"}
	if _, how, err := reach(o); err != nil || !strings.Contains(how, "k-cert.pub") {
		t.Errorf("beside the key: %q, %v", how, err)
	}
	// With the private half in the agent alone: by the certificate's file, and by the agent's own.
	sock := realAgent(t)
	add := exec.Command(findTool(t, "ssh-add"), "-q", home+"/k")
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+sock)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	for _, f := range []string{"k", "k.pub", "k-cert.pub"} {
		if err := os.Remove(home + "/" + f); err != nil {
			t.Fatal(err)
		}
	}
	o.IdentityFiles = nil
	if _, how, err := reach(o, "IdentityAgent="+sock, "IdentityFile=none", "IdentitiesOnly=yes", "CertificateFile="+good); err != nil || !strings.Contains(how, good) {
		t.Errorf("a certificate's file and the agent: %q, %v", how, err)
	}
	if _, how, err := reach(o, "IdentityAgent="+sock, "IdentityFile=none", "IdentitiesOnly=no"); err != nil || !strings.Contains(how, "certificate") {
		t.Errorf("the agent's certificate: %q, %v", how, err)
	}
}

func TestACertificateIsInForceFromItsFirstSecondToItsLast(t *testing.T) {
	now := uint64(time.Now().Unix())
	forever := uint64(ssh.CertTimeInfinity)
	for _, c := range []struct {
		after, before uint64
		kind          uint32
		ok            bool
	}{
		{0, forever, ssh.UserCert, true}, {now - 5, now + 60, ssh.UserCert, true}, {0, now - 1, ssh.UserCert, false}, {0, now, ssh.UserCert, false},
		{now + 60, forever, ssh.UserCert, false}, {forever, forever, ssh.UserCert, false}, {0, 0, ssh.UserCert, false}, {0, forever, ssh.HostCert, false},
	} {
		if err := inForce(&ssh.Certificate{CertType: c.kind, ValidAfter: c.after, ValidBefore: c.before}); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
