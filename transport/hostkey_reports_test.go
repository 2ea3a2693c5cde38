package transport

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// threeKeys starts an sshd with a host key of each type, whose ed25519 key alone is on record.
func threeKeys(t *testing.T, lines ...string) *sshd {
	t.Helper()
	keys := tempDir(t)
	for _, kind := range []string{"rsa", "ecdsa"} {
		keygen(t, filepath.Join(keys, kind), "-t", kind)
		lines = append(lines, "HostKey "+filepath.Join(keys, kind))
	}
	d := newSSHD(t, tempDir(t), lines...)
	t.Cleanup(d.stop)
	return d
}

// golang/go#29286: a host known by its ed25519 key is asked for its ECDSA key, which "mismatches".
func TestReport3Go29286TheKnownTypeOfHostKeyIsAskedFor(t *testing.T) {
	d := threeKeys(t)
	dial(t, d.alias, d.options())
}

// fluxcd/pkg#1294: algorithms taken from other hosts' lines make the host answer with a key that is not
// on record.
func TestReport4Fluxcd1294OfOtherHostsNothingIsTaken(t *testing.T) {
	d := threeKeys(t)
	known, err := os.ReadFile(filepath.Join(d.dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	keygen(t, filepath.Join(d.dir, "other"), "-t", "ecdsa")
	ecdsa, err := os.ReadFile(filepath.Join(d.dir, "other.pub"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tempDir(t), "known")
	write(t, file, knownLine("other.example", testKey(t, "rsa").PublicKey())+"github.example "+string(ecdsa)+string(known))
	o := d.options()
	o.Options = []string{"UserKnownHostsFile=" + file}
	dial(t, d.alias, o)
}

// skeema/knownhosts#6: a line of an RSA key must lead to the signatures that servers make with it today.
func TestReport6Skeema6AnRSALineSuitsAServerWithoutSHA1(t *testing.T) {
	d := threeKeys(t, "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256")
	conf, err := os.ReadFile(filepath.Join(d.dir, "sshd_config"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(conf), "HostKey "+d.dir+"/host_ed25519\n")
	_, after, _ = strings.Cut(after, "HostKey ")
	rsa, _, _ := strings.Cut(after, "\n")
	pub, err := os.ReadFile(rsa + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(filepath.Join(d.dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(string(old), " ")
	file := filepath.Join(tempDir(t), "known")
	write(t, file, host+" "+string(pub))
	o := d.options()
	o.Options = []string{"UserKnownHostsFile=" + file}
	dial(t, d.alias, o)
}

// golang/go#33366: a server that offers a certificate to a client that knows its plain key.
func TestReport5Go33366AServerWithACertificateIsReachedByItsPlainKey(t *testing.T) {
	ca := filepath.Join(tempDir(t), "ca")
	keygen(t, ca)
	dir := tempDir(t)
	d := newSSHD(t, dir, "HostCertificate "+dir+"/host_ed25519-cert.pub")
	t.Cleanup(d.stop)
	sign := exec.Command(findTool(t, "ssh-keygen"), "-q", "-s", ca, "-I", "host", "-h", "-n", "127.0.0.1", dir+"/host_ed25519.pub")
	if out, err := sign.CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen -s: %v: %s", err, out)
	}
	o := d.options()
	dial(t, d.alias, o)
	// Also where authorities of other machines are on record, so that certificates are asked for.
	known, err := os.ReadFile(filepath.Join(d.dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tempDir(t), "known")
	write(t, file, "@cert-authority * "+string(ssh.MarshalAuthorizedKey(testKey(t, "ed25519").PublicKey()))+string(known))
	o.Options = []string{"UserKnownHostsFile=" + file}
	dial(t, d.alias, o)
	o.Options = []string{"UserKnownHostsFile=" + tempDir(t) + "/new", "StrictHostKeyChecking=accept-new"}
	dial(t, d.alias, o)
}
