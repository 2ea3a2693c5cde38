package transport

import (
	"context"
	"crypto/ed25519"
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
	f.ExtendedAgent, _ = agent.NewKeyring().(agent.ExtendedAgent)
	return serveKeys(t, f)
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

func TestAnAgentThatAsksItsPersonIsWaitedForUntilTheContextEnds(t *testing.T) {
	noLeaks(t)
	key, pub := keyFile(t, tempDir(t)+"/k", "")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	release := make(chan struct{})
	f := &fakeAgent{}
	sock := serveAgent(t, f)
	if err := f.ExtendedAgent.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	o := s.options(t, "IdentityAgent "+sock)
	o.HandshakeTimeout = 400 * time.Millisecond
	f.refuse = func(ssh.PublicKey) bool { time.Sleep(2 * o.HandshakeTimeout); return false }
	dial(t, "host", o)
	f.refuse = func(ssh.PublicKey) bool { <-release; return true }
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	within(t, 10*time.Second, func() {
		if _, err := Dial(ctx, Target{Host: "host"}, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
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
