//go:build unix

package transport

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/punnet/punnet/internal/sshconfig"
	"github.com/punnet/punnet/internal/testenv"
)

// skPublic is the public half of a key on a security key, which nothing here can sign with.
func skPublic(t testing.TB) (line string, blob []byte) {
	t.Helper()
	blob = ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{"sk-ssh-ed25519@openssh.com", make([]byte, 32), "ssh:"})
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		t.Fatal(err)
	}
	return string(ssh.MarshalAuthorizedKey(key)), blob
}

// headerFile makes a private key file of OpenSSH's form with a public half and nothing real behind it.
func headerFile(cipher, kdf string, rounds uint32, public []byte) string {
	options := ""
	if kdf == "bcrypt" {
		options = string(ssh.Marshal(struct {
			Salt   string
			Rounds uint32
		}{"0123456789abcdef", rounds}))
	}
	body := append([]byte("openssh-key-v1\x00"), ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public, Private      []byte
	}{cipher, kdf, options, 1, public, make([]byte, 64)})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: body}))
}

func TestTheWayFollowsFromWhatTheConfigurationNeeds(t *testing.T) {
	dir := tempDir(t)
	t.Setenv("PATH", dir) // no klist
	t.Setenv("KRB5CCNAME", "FILE:"+dir+"/none")
	line, sk := skPublic(t)
	write(t, dir+"/sk", headerFile("none", "none", 0, sk))
	write(t, dir+"/token.pub", line)
	write(t, dir+"/token", "not even a key")
	keygen2 := func(name string, args ...string) {
		bin, err := exec.Command("/bin/sh", "-c", "PATH=/usr/bin:/bin:/usr/local/bin; command -v ssh-keygen").Output()
		if err != nil {
			testenv.Missing(t, "ssh-keygen")
		}
		args = append([]string{"-q", "-t", "ed25519", "-f", dir + "/" + name}, args...)
		if out, err := exec.Command(strings.TrimSpace(string(bin)), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	keygen2("plain", "-N", "")
	keygen2("locked", "-N", "secret")
	keygen2("chacha", "-N", "secret", "-Z", "chacha20-poly1305@openssh.com")
	_, plain := publicOf(t, dir+"/plain.pub")
	write(t, dir+"/slow", headerFile("aes256-ctr", "bcrypt", maxRounds+1, plain))
	write(t, dir+"/krl", "SSHKRL\n\x00rest")
	write(t, dir+"/ticket", "")
	socket := startHardwareAgent(t)
	type settings = sshconfig.Settings
	for name, c := range map[string]struct {
		s    settings
		env  string
		want string // the beginning of the reason, "" for none
	}{
		"nothing":               {},
		"plain and locked":      {s: settings{IdentityFiles: []string{dir + "/plain", dir + "/locked", dir + "/missing"}}},
		"security key":          {s: settings{IdentityFiles: []string{dir + "/plain", dir + "/sk"}}, want: "the key " + dir + "/sk is on a security key"},
		"by its public half":    {s: settings{IdentityFiles: []string{dir + "/token"}}, want: "the key " + dir + "/token is on"},
		"a public half alone":   {s: settings{IdentityFiles: []string{dir + "/token.pub"}}, want: "the key"},
		"in the agent":          {s: settings{IdentityFiles: []string{dir + "/sk", dir + "/token"}, IdentityAgent: socket}},
		"keys are not used":     {s: settings{IdentityFiles: []string{dir + "/sk"}, PreferredAuth: []string{"password"}}},
		"another cipher":        {s: settings{IdentityFiles: []string{dir + "/chacha"}}, want: "the key " + dir + "/chacha is encrypted by chacha20"},
		"too many rounds":       {s: settings{IdentityFiles: []string{dir + "/slow"}}, want: "the key " + dir + "/slow is encrypted with 2049 rounds"},
		"token":                 {s: settings{PKCS11Provider: "/x.so"}, want: "PKCS11Provider"},
		"host based":            {s: settings{HostbasedAuth: true}, want: "Hostbased"},
		"host based, not liked": {s: settings{HostbasedAuth: true, PreferredAuth: []string{"publickey"}}},
		"GSSAPI, no ticket":     {s: settings{GSSAPIAuth: true}},
		"GSSAPI, ticket":        {s: settings{GSSAPIAuth: true}, env: "FILE:" + dir + "/ticket", want: "GSSAPI"},
		"GSSAPI, keyring":       {s: settings{GSSAPIAuth: true}, env: "KEYRING:persistent:0", want: "GSSAPI"},
		"GSSAPI off, ticket":    {s: settings{}, env: "FILE:" + dir + "/ticket"},
		"GSSAPI, not liked":     {s: settings{GSSAPIAuth: true, PreferredAuth: []string{"publickey"}}, env: "FILE:" + dir + "/ticket"},
		"known hosts command":   {s: settings{KnownHostsCommand: "x"}, want: "KnownHostsCommand"},
		"fdpass":                {s: settings{ProxyUseFdpass: true, ProxyCommand: "x"}, want: "ProxyUseFdpass"},
		"fdpass of nothing":     {s: settings{ProxyUseFdpass: true}},
		"revocation list":       {s: settings{RevokedHostKeys: dir + "/krl"}, want: "RevokedHostKeys"},
		"revoked keys":          {s: settings{RevokedHostKeys: dir + "/token.pub"}},
		"ciphers, some":         {s: settings{Ciphers: []string{"nosuch", "aes128-ctr"}}},
		"ciphers, none":         {s: settings{Ciphers: []string{"nosuch"}}, want: "Ciphers"},
		"MACs":                  {s: settings{MACs: []string{"umac-64@openssh.com"}}, want: "MACs"},
		"key exchange":          {s: settings{Kex: []string{"sntrup761x25519-sha512@openssh.com"}}, want: "KexAlgorithms"},
		"host keys":             {s: settings{HostKeyAlgorithms: []string{"sk-ssh-ed25519@openssh.com"}}, want: "HostKeyAlgorithms"},
		"compression":           {s: settings{Compression: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env != "" {
				t.Setenv("KRB5CCNAME", c.env)
			}
			c.s.PubkeyAuth = true
			got := needs(t.Context(), &c.s)
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func publicOf(t testing.TB, file string) (ssh.PublicKey, []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := publicKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key, key.Marshal()
}

// hardwareAgent is an agent that holds a security key.
type hardwareAgent struct {
	agent.Agent
	blob []byte
}

func (h hardwareAgent) List() ([]*agent.Key, error) {
	return []*agent.Key{{Format: "sk-ssh-ed25519@openssh.com", Blob: h.blob}}, nil
}

func startHardwareAgent(t testing.TB) string {
	t.Helper()
	_, blob := skPublic(t)
	return serveKeys(t, hardwareAgent{agent.NewKeyring(), blob})
}

func TestAutoGoesToTheSystemsSSHAtOnceAndSaysWhy(t *testing.T) {
	noLeaks(t)
	d := newSSHD(t, tempDir(t))
	defer d.stop()
	dir := tempDir(t)
	_, sk := skPublic(t)
	write(t, dir+"/sk", headerFile("none", "none", 0, sk))
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.config, string(conf)+"  IdentityFile "+dir+"/sk\n")
	var steps []string
	o := d.options()
	o.Trace = func(s Step) { steps = append(steps, s.Name+" "+s.Value) }
	c := wantWay(t, dial(t, d.alias, o), WaySystem)
	if out, _, err := run(t.Context(), c, "cat", "in"); err != nil || out != "in" {
		t.Errorf("%q, %v", out, err)
	}
	if !slices.Contains(steps, "connection system: the key "+dir+"/sk is on a security key") {
		t.Errorf("steps %q", steps)
	}
	if n := strings.Count(d.log.String(), "Accepted"); n != 1 {
		t.Errorf("%d logins", n)
	}
	o.Way = WayNative
	wantWay(t, dial(t, d.alias, o), WayNative)
	o.Way = "carrier pigeon"
	if _, err := Dial(t.Context(), Target{Host: d.alias}, o); err == nil || !strings.Contains(err.Error(), "no way to connect") {
		t.Errorf("got %v", err)
	}
}

func TestKeepalivesFollowTheConfigurationUnlessTheCallerSays(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		s    sshconfig.Settings
		want keepalive
	}{
		"neither":       {want: keepalive{15 * time.Second, 30 * time.Second}},
		"configuration": {s: sshconfig.Settings{AliveInterval: 5 * time.Second, AliveCountMax: 3}, want: keepalive{5 * time.Second, 15 * time.Second}},
		"caller":        {o: Options{Keepalive: time.Second}, s: sshconfig.Settings{AliveInterval: 5 * time.Second, AliveCountMax: 3}, want: keepalive{time.Second, 2 * time.Second}},
		"never give up": {s: sshconfig.Settings{AliveInterval: 5 * time.Second}, want: keepalive{15 * time.Second, 30 * time.Second}},
	} {
		a := &attempt{o: c.o, s: &c.s}
		if got := a.keepalive(); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzKeyHeader(f *testing.F) {
	_, sk := skPublic(f)
	f.Add([]byte(headerFile("none", "none", 0, sk)))
	f.Add([]byte(headerFile("aes256-ctr", "bcrypt", 9999, sk)))
	f.Add([]byte(headerFile("\x1b[31m", "bcrypt", 16, sk)))
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pub, problem := keyHeader(data)
		if pub == nil && problem != "" || strings.ContainsAny(problem, "\x1b\n") {
			t.Errorf("%v, %q", pub, problem)
		}
		if pub != nil {
			if again, err := ssh.ParsePublicKey(pub.Marshal()); err != nil || !bytes.Equal(again.Marshal(), pub.Marshal()) {
				t.Error(fmt.Sprint("a key that does not survive: ", err))
			}
		}
	})
}
