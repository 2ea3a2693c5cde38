package transport

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"
)

// recordCommand is the ssh command that records the key the way this connection would look for it.
func (h *hostKeys) recordCommand() string {
	args := []string{"ssh"}
	if h.o.ConfigFile != "" {
		args = append(args, "-F", word(h.o.ConfigFile))
	}
	for _, kv := range h.o.Options {
		args = append(args, "-o", word(kv))
	}
	args = append(args, "-o", "StrictHostKeyChecking=accept-new")
	if h.s.Port != 22 {
		args = append(args, "-p", strconv.Itoa(h.s.Port))
	}
	if h.s.User != "" {
		args = append(args, "-l", word(h.s.User))
	}
	if len(h.through) > 0 {
		args = append(args, "-J", word(strings.Join(h.through, ",")))
	}
	return strings.Join(append(args, word(h.s.Alias), "true"), " ")
}

// errMeanwhile is a machine whose key has become known since it was looked for, and is another.
var errMeanwhile = errors.New("another key was recorded at the same time")

// record appends key to file, unless another process did so since it was read. The lock makes two
// of us agree; ssh itself appends without one, in a single write, as this does.
func (h *hostKeys) record(file string, key ssh.PublicKey) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if _, err := isFile(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := lockFile(f); err != nil {
		return err
	}
	if now, err := readKnown([]string{file}, h.log); err == nil {
		for _, k := range now.lines(h.lookup) {
			if string(k.Marshal()) == string(key.Marshal()) && !k.authority {
				return nil
			}
		}
		if slices.ContainsFunc(now.lines(h.lookup), func(k knownKey) bool { return !k.authority }) {
			return errMeanwhile
		}
	}
	host := knownhosts.Normalize(h.lookup)
	if h.s.HashKnownHosts {
		host = xknownhosts.HashHostname(host)
	}
	line := host + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + "\n"
	if !endsLine(f) {
		line = "\n" + line
	}
	_, err = f.WriteString(line)
	return err
}

// endsLine reports whether f is empty or ends in a newline.
func endsLine(f *os.File) bool {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return true
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, fi.Size()-1)
	return err == nil && last[0] == '\n'
}

// word quotes s for a shell, if it has to be.
func word(s string) string {
	safe := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("@%+=:,./_-~", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !safe(r) }) {
		return s
	}
	if runtime.GOOS == "windows" {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// publicKey reads the first authorized_keys line of data.
func publicKey(data []byte) (ssh.PublicKey, string, error) {
	key, comment, _, _, err := ssh.ParseAuthorizedKey(bytes.TrimSpace(data))
	return key, comment, err
}
