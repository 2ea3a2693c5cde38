package transport

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/punnet/punnet/internal/sshconfig"
	"github.com/punnet/punnet/transport/transporttest"
)

func TestAPersonDecidesAboutAnUnknownHostKey(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	print := ssh.FingerprintSHA256(s.HostKey())
	for answer, yes := range map[string]bool{
		"yes": true, "YES": true, " yes\n": true, print: true,
		"no": false, "": false, "y": false, print[:len(print)-1]: false, "SHA256:": false,
	} {
		o := needSSH(t, s)
		file := filepath.Join(tempDir(t), "known")
		o.Options = []string{"UserKnownHostsFile=" + file, "StrictHostKeyChecking=ask", "BatchMode=no"}
		var asked []Prompt
		o.HandshakeTimeout = 2 * time.Second
		o.Ask = func(_ context.Context, p Prompt) (string, error) {
			asked = append(asked, p)
			return answer, nil
		}
		for range 2 {
			c, err := Dial(t.Context(), Target{Host: "user"}, o)
			if err == nil {
				c.Close()
			}
			if (err == nil) != yes || err != nil && (!errors.Is(err, ErrHostKey) || !strings.Contains(Hint(err), print)) {
				t.Errorf("%q: %v", answer, err)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[yes]; len(asked) != want {
			t.Fatalf("%q: asked %d times", answer, len(asked))
		}
		p := asked[0]
		for _, word := range []string{"user", s.Addr(), "ssh-ed25519", print} {
			if !strings.Contains(p.Text, word) {
				t.Errorf("the question does not say %q: %q", word, p.Text)
			}
		}
		if p.Secret {
			t.Errorf("%+v", p)
		}
		data, _ := os.ReadFile(file)
		if recorded := len(data) > 0; recorded != yes {
			t.Errorf("%q: the file has %q", answer, data)
		}
	}
}

func TestAskingTakesNoTimeOfTheHandshake(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	o.Options = []string{"UserKnownHostsFile=" + filepath.Join(tempDir(t), "known"), "StrictHostKeyChecking=ask", "BatchMode=no"}
	o.HandshakeTimeout = time.Second
	o.Ask = func(context.Context, Prompt) (string, error) {
		time.Sleep(1500 * time.Millisecond)
		return "yes", nil
	}
	dial(t, "user", o)
}

// TestALaterKeyExchangeAsksNothingAgain stands for a connection that lasts: keys are exchanged again
// after a gigabyte or an hour.
func TestALaterKeyExchangeAsksNothingAgain(t *testing.T) {
	asked := 0
	h, err := newHostKeys(&sshconfig.Settings{Host: "host.example", Port: 22, StrictHostKey: "ask", UserKnownHosts: []string{tempDir(t) + "/known"}},
		Options{Ask: func(context.Context, Prompt) (string, error) { asked++; return "yes", nil }})
	if err != nil {
		t.Fatal(err)
	}
	clock := newHandshakeClock(time.Minute, func() {})
	h.begin(t.Context(), Target{Host: "host.example"}, clock)
	addr, key := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}, testKey(t, "ed25519").PublicKey()
	for range 2 {
		if err := h.check("", addr, key); err != nil || asked != 1 {
			t.Errorf("%v, asked %d times", err, asked)
		}
		clock.stop()
	}
	if err := h.check("", addr, testKey(t, "ed25519").PublicKey()); !errors.Is(err, ErrHostKey) {
		t.Errorf("another key later on: %v", err)
	}
}

func TestNobodyIsAskedWhoShouldNotBe(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	for _, option := range []string{"StrictHostKeyChecking=yes", "BatchMode=yes"} {
		o := needSSH(t, s)
		o.Options = []string{"UserKnownHostsFile=" + filepath.Join(tempDir(t), "known"), option, "BatchMode=no"}
		if option == "BatchMode=yes" {
			o.Options = []string{o.Options[0], option, "StrictHostKeyChecking=ask"}
		}
		o.Ask = func(context.Context, Prompt) (string, error) {
			t.Errorf("%s: somebody was asked", option)
			return "yes", nil
		}
		if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrHostKey) {
			t.Errorf("%s: %v", option, err)
		}
	}
	// A question that cannot be asked is no yes, and a changed key no question.
	o := needSSH(t, s)
	o.Options = []string{"UserKnownHostsFile=" + filepath.Join(tempDir(t), "known"), "StrictHostKeyChecking=ask", "BatchMode=no"}
	o.Ask = func(context.Context, Prompt) (string, error) { return "", errors.New("no terminal") }
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrHostKey) || !strings.Contains(err.Error(), "no terminal") {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(tempDir(t), "known")
	write(t, file, knownLine(xknownhosts.Normalize(s.Addr()), testKey(t, "ed25519").PublicKey()))
	o.Options[0] = "UserKnownHostsFile=" + file
	o.Ask = func(context.Context, Prompt) (string, error) { return "yes", nil }
	var hk *HostKeyError
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.As(err, &hk) || !hk.Changed {
		t.Errorf("a changed key: %v", err)
	}
}

func TestAFileOfRevokedKeysIsHonoured(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	known := knownLine(xknownhosts.Normalize(s.Addr()), s.HostKey())
	dir := tempDir(t)
	other := string(ssh.MarshalAuthorizedKey(testKey(t, "ed25519").PublicKey()))
	file := filepath.Join(dir, "revoked")
	write(t, file, "# lost\n\ngarbage\n"+other+string(ssh.MarshalAuthorizedKey(s.HostKey())))
	var hk *HostKeyError
	if err := dialWith(t, s, known, "RevokedHostKeys="+file); !errors.As(err, &hk) || !hk.Revoked || hk.Known[0] != file+":5" {
		t.Errorf("got %v", err)
	}
	if s.Logins() != 0 {
		t.Error("a key was offered to a machine whose key is revoked")
	}
	write(t, file, other)
	if err := dialWith(t, s, known, "RevokedHostKeys="+file); err != nil {
		t.Errorf("the key of another machine: %v", err)
	}
	before := s.Connections()
	for name, f := range map[string]string{"missing": dir + "/nosuch", "a directory": dir} {
		err := dialWith(t, s, known, "RevokedHostKeys="+f)
		if !errors.Is(err, ErrHostKey) || !strings.Contains(err.Error(), f) || Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	krl := filepath.Join(dir, "krl")
	if out, err := exec.Command(findTool(t, "ssh-keygen"), "-k", "-f", krl, file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen -k: %v %s", err, out)
	}
	o := needSSH(t, s)
	o.Way, o.Options = WayNative, []string{"RevokedHostKeys=" + krl}
	if _, err := Dial(t.Context(), Target{Host: "user"}, o); !errors.Is(err, ErrHostKey) || !strings.Contains(Hint(err), "system") {
		t.Errorf("a revocation list: %v", err)
	}
	if s.Connections() != before {
		t.Error("a connection was made for nothing")
	}
}

// sshReaches reports whether the ssh program reaches an account of s with some lines of known_hosts.
func sshReaches(t *testing.T, s *transporttest.Server, known string, options ...string) bool {
	t.Helper()
	file := filepath.Join(tempDir(t), "known_hosts")
	write(t, file, known)
	args := []string{"-F", s.ConfigFile(), "-o", "UserKnownHostsFile=" + file, "-o", "BatchMode=yes"}
	for _, o := range options {
		args = append(args, "-o", o)
	}
	return exec.Command(findTool(t, "ssh"), append(args, "user", "true")...).Run() == nil
}

// certified starts a server with a certificate that ca signed for the names.
func certified(t *testing.T, ca ssh.Signer, key ssh.Signer, until uint64, names ...string) *transporttest.Server {
	t.Helper()
	cert := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.HostCert, KeyId: "host", ValidPrincipals: names, ValidBefore: until}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, transporttest.Options{HostKey: signer})
}

func TestAuthoritiesOfHostsAreHonoured(t *testing.T) {
	ca, key := testKey(t, "rsa"), testKey(t, "ed25519") // which are of different types
	s := certified(t, ca, key, ssh.CertTimeInfinity, "web.example.com")
	expired := certified(t, ca, key, 1, "web.example.com")
	authority := func(pattern string) string { return "@cert-authority " + knownLine(pattern, ca.PublicKey()) }
	dir := tempDir(t)
	write(t, dir+"/revoked", string(ssh.MarshalAuthorizedKey(ca.PublicKey())))
	for name, c := range map[string]struct {
		s     *transporttest.Server
		known string
		o     []string
		ok    bool
	}{
		"by name":                 {s, authority("web.example.com"), nil, true},
		"by wildcard":             {s, authority("*.example.com"), nil, true},
		"for all":                 {s, authority("*"), nil, true},
		"all but this":            {s, authority("*.example.com,!web.example.com"), nil, false},
		"of others":               {s, authority("*.example.org"), nil, false},
		"for another name":        {s, authority("*"), []string{"HostKeyAlias=db.example.com"}, false},
		"expired":                 {expired, authority("*"), nil, false},
		"expired, plain known":    {expired, authority("*") + knownLine("web.example.com", key.PublicKey()), nil, true},
		"marked revoked":          {s, authority("*") + "@revoked * " + string(ssh.MarshalAuthorizedKey(ca.PublicKey())), nil, false},
		"in a file of revoked":    {s, authority("*") + knownLine("web.example.com", key.PublicKey()), []string{"RevokedHostKeys=" + dir + "/revoked"}, false},
		"signature not allowed":   {s, authority("*"), []string{"CASignatureAlgorithms=ssh-ed25519"}, false},
		"signature allowed":       {s, authority("*"), []string{"CASignatureAlgorithms=rsa-sha2-512,rsa-sha2-256"}, true},
		"the authority's own key": {startServer(t, transporttest.Options{HostKey: ca}), authority("*"), nil, false},
	} {
		o := append([]string{"HostKeyAlias=web.example.com"}, c.o...)
		if name == "for another name" {
			o = c.o
		}
		err := dialWith(t, c.s, c.known, o...)
		if reached := sshReaches(t, c.s, c.known, o...); reached != c.ok {
			t.Errorf("%s: ssh reaches it: %v", name, reached)
		}
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrHostKey) {
			t.Errorf("%s: %v", name, err)
		}
		var hk *HostKeyError
		if errors.As(err, &hk) && hk.Changed {
			t.Errorf("%s: an authority was taken for a host key: %v", name, err)
		}
	}
}

func TestALineSpeaksOfTheHostsThatItNames(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	here := xknownhosts.Normalize(s.Addr())
	mine, other := s.HostKey(), testKey(t, "ed25519").PublicKey()
	long := strings.Repeat("x", 200_000) + "\n"
	for name, c := range map[string]struct {
		known   string
		o       []string
		ok      bool
		changed bool
	}{
		"negated":                       {knownLine("[127.0.0.*]:*,!"+here, mine), nil, false, false},
		"negated, and another line":     {knownLine("127.0.0.*,!127.0.0.1", mine) + knownLine(here, mine), nil, true, false},
		"question mark":                 {knownLine("127.0.0.?", mine), nil, true, false},
		"no port, as ssh accepts it":    {knownLine("127.0.0.1", mine), nil, true, false},
		"no port, another's key":        {knownLine("127.0.0.1", other), nil, false, false},
		"another port":                  {knownLine("[127.0.0.1]:1", mine), nil, false, false},
		"the address and not the name":  {knownLine(here, mine), []string{"HostName=localhost"}, false, false},
		"the name and not the address":  {knownLine(fmt.Sprintf("[localhost]:%d", s.Port()), mine), []string{"HostName=localhost"}, true, false},
		"the name, another's key":       {knownLine(fmt.Sprintf("[localhost]:%d", s.Port()), other), []string{"HostName=localhost"}, false, true},
		"a line that is too long":       {long + knownLine(here, mine) + long, nil, true, false},
		"too long a line, changed":      {long + knownLine(here, other), nil, false, true},
		"too long a line and no others": {long, nil, false, false},
		"no end of line":                {strings.TrimSpace(knownLine(here, mine)), nil, true, false},
	} {
		o := append([]string{"AddressFamily=inet"}, c.o...)
		err := dialWith(t, s, c.known, o...)
		if reached := sshReaches(t, s, c.known, o...); reached != c.ok {
			t.Errorf("%s: ssh reaches it: %v", name, reached)
		}
		var hk *HostKeyError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &hk) || hk.Changed != c.changed) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "too long a line, changed" && (hk == nil || !strings.HasSuffix(hk.Known[0], "/known_hosts:2")) {
			t.Errorf("%s: known from %q", name, hk.Known)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "punnet-known-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// FuzzFilesOfHostKeys holds the readers to taking any bytes: they are no reason to fail, and no reason
// to know a machine.
func FuzzFilesOfHostKeys(f *testing.F) {
	key := testKey(f, "ed25519").PublicKey()
	line := knownLine("host.example", key)
	for _, s := range []string{
		"", "\x00", "#\n", line, "@revoked * " + line, "@cert-authority " + line, "|1|x|y " + line, "!*," + line,
		strings.Repeat("x", 70_000) + "\n" + line, "SSHKRL\n\x00", "[host.example]:22 " + line,
	} {
		f.Add([]byte(s))
	}
	dir := tempDir(f)
	stranger := testKey(f, "ed25519").PublicKey()
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "keys")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := readKnown([]string{file}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range known.lines("host.example:22") {
			if !strings.HasPrefix(k.place, file+":") || string(k.Marshal()) == string(stranger.Marshal()) {
				t.Fatalf("%+v", k)
			}
		}
		revoked, err := readRevoked(file)
		if krl := bytes.HasPrefix(data, []byte("SSHKRL\n\x00")); (err != nil) != krl {
			t.Fatal(err)
		}
		for blob := range revoked {
			if _, err := ssh.ParsePublicKey([]byte(blob)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAKeyThatCannotBeRecordedIsAcceptedAsBySSH has places for known_hosts where nothing can be written.
func TestAKeyThatCannotBeRecordedIsAcceptedAsBySSH(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	dir := tempDir(t)
	write(t, filepath.Join(dir, "file"), "")
	for name, file := range map[string]string{"a directory": dir, "below a file": filepath.Join(dir, "file", "known"), "no file": os.DevNull} {
		var log logBuffer
		var found string
		o.Log = log.logger()
		o.Trace = func(s Step) {
			if s.Name == StepHostKey {
				found = s.Value
			}
		}
		for strict, want := range map[string]bool{"accept-new": true, "yes": false} {
			o.Options = []string{"UserKnownHostsFile=" + file, "StrictHostKeyChecking=" + strict}
			c, err := Dial(t.Context(), Target{Host: "user"}, o)
			if err == nil {
				c.Close()
			}
			if (err == nil) != want || want && (!strings.Contains(found, "not recorded") || !strings.Contains(log.String(), "could not be recorded")) {
				t.Errorf("%s, %s: %v; found %q, log %s", name, strict, err, found, log.String())
			}
		}
	}
}

func TestNamesInKnownHostsAreReadInAnyCase(t *testing.T) {
	dir := tempDir(t)
	file := filepath.Join(dir, "known")
	key, authority, other := testKey(t, "ed25519").PublicKey(), testKey(t, "ed25519").PublicKey(), testKey(t, "ed25519").PublicKey()
	text := func(k ssh.PublicKey) string { return string(ssh.MarshalAuthorizedKey(k)) }
	write(t, file, "# A comment With Capitals\n"+
		"DevBox.Example,!Not.Example "+text(key)+
		"@cert-authority *.Corp.Example "+text(authority)+
		xknownhosts.HashHostname("hashed.example")+" "+text(other)+
		"MyAlias "+text(other))
	k, err := readKnown([]string{file}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"devbox.example": ":2", "a.corp.example": ":3", "hashed.example": ":4", "MyAlias": ":5", "myalias": ":5", "not.example": "",
	} {
		lines := k.lines(host + ":22")
		if want == "" && len(lines) > 0 || want != "" && (len(lines) != 1 || lines[0].place != file+want) {
			t.Errorf("%s: %+v", host, lines)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "punnet-known-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
