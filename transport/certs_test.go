package transport

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

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
		if opens := c.name == "named" || c.name == "RSA, encrypted"; opens != (err == nil) || opens && !strings.Contains(how, " certificate "+ssh.FingerprintSHA256(publicHalf(home+"/"+c.key, nil))) {
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
