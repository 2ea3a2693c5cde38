package bundle

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// headBytes is how much of a file's start is looked at for what it is.
const headBytes = 512

// facts are what passing over a file's content once tells.
type facts struct {
	head   []byte // its first bytes
	script bool   // it starts with #!
	secret bool   // it starts as a private key does
	text   bool   // it is UTF-8 without NUL bytes
	split  []byte // the start of a character whose rest is still to come
}

// take looks at the next bytes of the content and keeps up to keep bytes of its start.
func (f *facts) take(p []byte, keep int) {
	if n := keep - len(f.head); n > 0 {
		f.head = append(f.head, p[:min(n, len(p))]...)
	}
	if !f.text {
		return
	}
	if bytes.IndexByte(p, 0) >= 0 {
		f.text = false
		return
	}
	for len(f.split) > 0 && len(p) > 0 && !utf8.FullRune(f.split) {
		f.split = append(f.split, p[0])
		p = p[1:]
	}
	if len(f.split) > 0 {
		if !utf8.FullRune(f.split) {
			return
		}
		if !utf8.Valid(f.split) {
			f.text = false
			return
		}
		f.split = f.split[:0]
	}
	tail := len(p)
	for tail > 0 && len(p)-tail < utf8.UTFMax && !utf8.RuneStart(p[tail-1]) {
		tail--
	}
	if tail > 0 && !utf8.FullRune(p[tail-1:]) {
		f.split = append(f.split, p[tail-1:]...)
		p = p[:tail-1]
	}
	f.text = utf8.Valid(p)
}

// end settles what only the end of the content tells.
func (f *facts) end() {
	f.text = f.text && len(f.split) == 0
	f.script = bytes.HasPrefix(f.head, []byte("#!"))
	f.secret = isSecretContent(f.head)
}

// isSecretName reports whether files of this name hold credentials by the convention of some
// program. Case does not matter.
func isSecretName(p string) bool {
	base := strings.ToLower(path.Base(p))
	switch base {
	case ".env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd",
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
		"credentials", "credentials.json", "secrets.json", "secrets.yaml", "secrets.yml",
		"client_secret.json", "service-account.json", "service_account.json",
		"kubeconfig", "key.pem", "private.pem", "privkey.pem":
		return true
	}
	if rest, ok := strings.CutPrefix(base, ".env."); ok {
		// What such files are called when they are meant to be shared.
		switch rest {
		case "example", "sample", "template", "dist", "defaults":
			return false
		}
		return true
	}
	switch path.Ext(base) {
	case ".p12", ".pfx", ".key", ".ppk", ".jks", ".keystore", ".kdbx":
		return true
	}
	return strings.HasSuffix(p, ".aws/config") || strings.HasSuffix(p, ".docker/config.json") || strings.HasSuffix(p, ".kube/config")
}

// isSecretContent reports whether a file's start is that of a private key.
func isSecretContent(head []byte) bool {
	s := strings.TrimLeft(strings.TrimPrefix(string(head[:min(len(head), headBytes)]), "\ufeff"), " \t\r\n")
	switch {
	case strings.HasPrefix(s, "-----BEGIN "):
		first, _, _ := strings.Cut(s, "\n")
		return strings.Contains(first, "PRIVATE KEY")
	case strings.HasPrefix(s, "PuTTY-User-Key-File-"), strings.HasPrefix(s, "AGE-SECRET-KEY-1"):
		return true
	case strings.HasPrefix(s, "# created: "): // an age identity begins with a comment
		return strings.Contains(s, "\nAGE-SECRET-KEY-1")
	}
	return false
}

// warnings returns what the owner of a kept file would want to know before it leaves the machine.
func warnings(k scanned) []Warning {
	var out []Warning
	switch {
	case k.facts.secret:
		out = append(out, Warning{k.out, "secret-content", "it holds a private key, and will be copied like any other file"})
	case isSecretName(k.out):
		out = append(out, Warning{k.out, "secret-name", "files of this name hold secrets, and it will be copied like any other file"})
	}
	if hasExecBits && k.facts.script && k.entry.Kind == File {
		out = append(out, Warning{k.out, "script-not-executable", "it starts with #! and is not executable; chmod +x it if it is to be run by its name"})
	}
	return out
}
