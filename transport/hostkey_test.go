package transport

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/punnet/punnet/internal/sshconfig"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// testKey returns a new key of the kind "ed25519" or "rsa".
func testKey(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	if kind == "rsa" {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dialWith dials an account of s with some lines of known_hosts in place of its own.
func dialWith(t *testing.T, s *transporttest.Server, known string, options ...string) error {
	t.Helper()
	file := filepath.Join(tempDir(t), "known_hosts")
	write(t, file, known)
	o := needSSH(t, s)
	o.Options = append([]string{"UserKnownHostsFile=" + file}, options...)
	c, err := Dial(t.Context(), Target{Host: "user"}, o)
	if err == nil {
		c.Close()
	}
	return err
}

func knownLine(host string, key ssh.PublicKey) string {
	return host + " " + string(ssh.MarshalAuthorizedKey(key))
}

func TestAnUnknownHostKeyIsRefusedWithAWayOut(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	for _, strict := range []string{"yes", "ask"} {
		err := dialWith(t, s, "", "StrictHostKeyChecking="+strict)
		var hk *HostKeyError
		if !errors.Is(err, ErrHostKey) || !errors.As(err, &hk) {
			t.Fatalf("%s: %v", strict, err)
		}
		if hk.Changed || hk.Revoked || hk.Host != "[127.0.0.1]:"+fmt.Sprint(s.Port()) || hk.Fingerprint != ssh.FingerprintSHA256(s.HostKey()) {
			t.Errorf("%s: %+v", strict, hk)
		}
		if hint := Hint(err); !strings.Contains(hint, hk.Fingerprint) || !strings.Contains(hint, "ssh -F ") {
			t.Errorf("%s: hint %q", strict, hint)
		}
	}
	if n := s.Logins(); n != 0 {
		t.Errorf("a key was offered to %d machines that are not known", n)
	}
}

func TestTheHintForAnUnknownKeyRecordsIt(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	file := filepath.Join(tempDir(t), "known hosts")
	o.Options = []string{`UserKnownHostsFile="` + file + `"`}
	_, err := Dial(t.Context(), Target{Host: "user"}, o)
	var hk *HostKeyError
	if !errors.As(err, &hk) {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", "-c", hk.Record).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", hk.Record, err, out)
	}
	dial(t, "user", o)
}

func TestTheHintForAMachineOnTheWayGoesTheSameWay(t *testing.T) {
	d := startSSHD(t)
	s := startServer(t, transporttest.Options{})
	findTool(t, "ssh")
	conf, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	// The second machine is reached through the first because the target's configuration says so, and
	// is known to nobody yet.
	unknown := strings.ReplaceAll(s.Config(), s.KnownHostsFile(), dir+"/known")
	write(t, dir+"/config", "Host target\n  ProxyJump real,user\n"+string(conf)+unknown)
	_, err = Dial(t.Context(), Target{Host: "target"}, Options{ConfigFile: dir + "/config"})
	hk, ok := errors.AsType[*HostKeyError](err)
	if !ok || !strings.Contains(hk.Record, " -J real ") {
		t.Fatalf("%v; %+v", err, hk)
	}
	before := strings.Count(d.log.String(), "Accepted publickey")
	if out, err := exec.Command("sh", "-c", hk.Record).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", hk.Record, err, out)
	}
	if strings.Count(d.log.String(), "Accepted publickey") == before {
		t.Error("the command does not go through the first machine")
	}
	if data, err := os.ReadFile(dir + "/known"); err != nil || strings.Count(string(data), "\n") != 1 {
		t.Errorf("recorded %q, %v", data, err)
	}
}

func TestAChangedHostKeyIsRefusedWhateverTheConfigurationSays(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	host := xknownhosts.Normalize(s.Addr())
	for _, strict := range []string{"yes", "ask", "accept-new", "no"} {
		for kind, other := range map[string]ssh.Signer{"same type": testKey(t, "ed25519"), "other type": testKey(t, "rsa")} {
			err := dialWith(t, s, knownLine(host, other.PublicKey()), "StrictHostKeyChecking="+strict)
			var hk *HostKeyError
			if !errors.As(err, &hk) || !hk.Changed || len(hk.Known) != 1 || !strings.HasSuffix(hk.Known[0], "known_hosts:1") {
				t.Errorf("%s, %s: %v", strict, kind, err)
			}
			if !strings.Contains(Hint(err), "ssh-keygen -R") {
				t.Errorf("%s, %s: hint %q", strict, kind, Hint(err))
			}
		}
	}
	if n := s.Logins(); n != 0 {
		t.Errorf("a key was offered to %d machines with a changed key", n)
	}
}

func TestARevokedHostKeyIsRefused(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	host := xknownhosts.Normalize(s.Addr())
	err := dialWith(t, s, knownLine(host, s.HostKey())+"@revoked * "+string(ssh.MarshalAuthorizedKey(s.HostKey())))
	var hk *HostKeyError
	if !errors.As(err, &hk) || !hk.Revoked {
		t.Errorf("got %v", err)
	}
}

func TestKnownHostsOfEveryFormAreFound(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	host := xknownhosts.Normalize(s.Addr())
	garbage := "this is not a line\n||| nonsense\n\x00\x01\n# comment\n\n"
	for name, known := range map[string]string{
		"plain":    knownLine(host, s.HostKey()),
		"hashed":   knownLine(xknownhosts.HashHostname(host), s.HostKey()),
		"list":     knownLine("other,"+host, s.HostKey()),
		"wildcard": knownLine("127.0.0.*", s.HostKey()),
		"garbage":  garbage + knownLine(host, s.HostKey()) + garbage,
		"rotated":  knownLine(host, testKey(t, "ed25519").PublicKey()) + knownLine(host, s.HostKey()),
	} {
		if err := dialWith(t, s, known); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSeveralAndMissingKnownHostsFiles(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	dir := tempDir(t)
	if err := os.Mkdir(dir+"/directory", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/broken", "no line here is one\n")
	o := needSSH(t, s)
	o.Options = []string{fmt.Sprintf("UserKnownHostsFile=%s/missing %s/directory %s/broken %s", dir, dir, dir, s.KnownHostsFile())}
	log := &logBuffer{}
	o.Log = log.logger()
	dial(t, "user", o)
	for _, word := range []string{"directory", "broken"} {
		if !strings.Contains(log.String(), word) {
			t.Errorf("the log does not mention %s: %s", word, log)
		}
	}
	if strings.Contains(log.String(), "missing") {
		t.Errorf("a missing file is nothing to report: %s", log)
	}
}

func TestHostKeyAliasStandsForTheMachine(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	if err := dialWith(t, s, knownLine("myalias", s.HostKey()), "HostKeyAlias=myalias"); err != nil {
		t.Error(err)
	}
	if err := dialWith(t, s, knownLine(xknownhosts.Normalize(s.Addr()), s.HostKey()), "HostKeyAlias=myalias"); !errors.Is(err, ErrHostKey) {
		t.Errorf("the address was looked up in place of the alias: %v", err)
	}
}

func TestAHostCertificateIsAskedForOnlyWithItsAuthority(t *testing.T) {
	ca, key := testKey(t, "ed25519"), testKey(t, "ed25519")
	cert := &ssh.Certificate{
		Key: key.PublicKey(), CertType: ssh.HostCert, KeyId: "host", ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, transporttest.Options{HostKey: signer})
	host := xknownhosts.Normalize(s.Addr())
	if err := dialWith(t, s, "@cert-authority "+knownLine(host, ca.PublicKey())); err != nil {
		t.Errorf("with the authority: %v", err)
	}
	if err := dialWith(t, s, "@cert-authority "+knownLine(host, testKey(t, "ed25519").PublicKey())); !errors.Is(err, ErrHostKey) {
		t.Errorf("with another authority: %v", err)
	}
}

func TestAcceptNewRecordsOnce(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	for _, hash := range []string{"no", "yes"} {
		file := filepath.Join(tempDir(t), "sub", "known")
		o.Options = []string{"UserKnownHostsFile=" + file, "StrictHostKeyChecking=accept-new", "HashKnownHosts=" + hash}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				c, err := Dial(t.Context(), Target{Host: "user"}, o)
				if err != nil {
					t.Error(err)
					return
				}
				c.Close()
			})
		}
		wg.Wait()
		data, err := os.ReadFile(file)
		if err != nil || bytes.Count(data, []byte("\n")) != 1 {
			t.Errorf("hash %s: %q, %v", hash, data, err)
		}
		if hashed := strings.HasPrefix(string(data), "|1|"); hashed != (hash == "yes") {
			t.Errorf("hash %s: %q", hash, data)
		}
		if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", fi, err)
		}
		// ssh itself must find what was recorded.
		o.Options[1] = "StrictHostKeyChecking=yes"
		dial(t, "user", o)
		if out, err := exec.Command("ssh-keygen", "-F", xknownhosts.Normalize(s.Addr()), "-f", file).CombinedOutput(); err != nil {
			t.Errorf("ssh-keygen does not find it: %v %s", err, out)
		}
	}
}

func TestRecordingRepairsAMissingNewline(t *testing.T) {
	s := startServer(t, transporttest.Options{})
	file := filepath.Join(tempDir(t), "known")
	write(t, file, strings.TrimSpace(knownLine("other.example", testKey(t, "ed25519").PublicKey())))
	o := needSSH(t, s)
	o.Options = []string{"UserKnownHostsFile=" + file, "StrictHostKeyChecking=accept-new"}
	dial(t, "user", o)
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 2 || !strings.HasPrefix(string(data), "other.example ") {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAKeyRecordedMeanwhileIsNotOverruled(t *testing.T) {
	file := filepath.Join(tempDir(t), "known")
	write(t, file, "")
	h, err := newHostKeys(&sshconfig.Settings{Host: "host.example", Port: 22, UserKnownHosts: []string{file}, StrictHostKey: "accept-new"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, knownLine("host.example", testKey(t, "ed25519").PublicKey()))
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 22}
	if err := h.check("", addr, testKey(t, "ed25519").PublicKey()); !errors.Is(err, ErrHostKey) || h.passed {
		t.Errorf("got %v", err)
	}
}

func TestManyProcessesRecordAKeyOnce(t *testing.T) {
	file := filepath.Join(tempDir(t), "known")
	key := testKey(t, "ed25519").PublicKey()

	write(t, file, strings.Repeat(knownLine("other.example", testKey(t, "ed25519").PublicKey()), 200))
	h, err := newHostKeys(&sshconfig.Settings{Host: "host.example", Port: 22}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The lock belongs to an open file, so goroutines stand for processes.
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			if err := h.record(file, key); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(file)
	if n := strings.Count(string(data), "host.example "); err != nil || n != 1 {
		t.Errorf("recorded %d times, %v", n, err)
	}
}

func TestRecordingWaitsForWhoeverElseRecords(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "a lock of open files; a line is appended in one write there")
	}
	file := filepath.Join(tempDir(t), "known")
	other, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := lockFile(other); err != nil {
		t.Fatal(err)
	}
	key := testKey(t, "ed25519").PublicKey()
	h, err := newHostKeys(&sshconfig.Settings{Host: "host.example", Port: 22}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.record(file, key) }()
	select {
	case err := <-done:
		t.Fatalf("recorded beside somebody who held the lock: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := other.WriteString(knownLine("host.example", key)); err != nil {
		t.Fatal(err)
	}
	other.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || strings.Count(string(data), "\n") != 1 {
		t.Errorf("%q, %v", data, err)
	}
}
