package transport

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
)

// Bounds of files of host keys, in bytes.
const (
	maxRevoked = 16 << 20
	maxKnown   = 64 << 20 // of one that has to be copied
)

// knownFiles is what the known_hosts files say.
type knownFiles struct {
	db    *knownhosts.HostKeyDB
	names map[string]string // of the files that db has read a copy of, by the copy's
}

// knownKey is one line of known_hosts that speaks of a machine.
type knownKey struct {
	ssh.PublicKey
	authority bool   // the key signs the keys of machines
	place     string // file:line
}

// readKnown reads the files that are there. What cannot be read as a whole or in part is told to log
// and is otherwise as if it were not there: it can make a machine unknown, never known.
func readKnown(files []string, log *slog.Logger) (*knownFiles, error) {
	k := &knownFiles{names: make(map[string]string)}
	var usable []string
	for _, f := range files {
		if ok, err := isFile(f); !ok {
			if !errors.Is(err, os.ErrNotExist) && f != os.DevNull {
				log.Warn("known hosts file is not used", "file", f, "error", err)
			}
			continue
		}
		name, err := readable(f, log)
		if err == nil && name != f {
			defer os.RemoveAll(filepath.Dir(name))
			k.names[name] = f
		}
		if err == nil {
			_, err = knownhosts.NewDB(name)
		}
		if err != nil {
			log.Warn("known hosts file is not used", "file", f, "error", err)
			continue
		}
		usable = append(usable, name)
	}
	var err error
	if k.db, err = knownhosts.NewDB(usable...); err != nil {
		return nil, fmt.Errorf("reading known hosts: %w", err)
	}
	return k, nil
}

// readable returns the name of a file that the library reads as ssh would read file: file itself, or a
// copy in a directory of its own. There a line that is longer than the library reads is left empty, so that
// the others keep their numbers, and names with capitals stand in small letters too, for ssh takes both
// for the same.
func readable(file string, log *slog.Logger) (string, error) {
	data, err := readBounded(file, maxKnown)
	if err != nil {
		return "", err
	}
	var copied bytes.Buffer
	for line := range bytes.Lines(data) {
		if len(line) >= bufio.MaxScanTokenSize {
			log.Warn("known hosts file has a line that is too long, which is left out", "file", file)
			line = []byte("\n")
		}
		copied.Write(inSmallLetters(line))
	}
	if bytes.Equal(copied.Bytes(), data) {
		return file, nil
	}
	dir, err := os.MkdirTemp("", "punnet-known-")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "known_hosts")
	if err := os.WriteFile(name, copied.Bytes(), 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return name, nil
}

// inSmallLetters adds to the names of a line of known_hosts the same in small letters, where they differ.
func inSmallLetters(line []byte) []byte {
	names := bytes.TrimLeft(line, " \t")
	if bytes.HasPrefix(names, []byte("@")) {
		_, names, _ = bytes.Cut(names, []byte(" "))
		names = bytes.TrimLeft(names, " \t")
	}
	end := bytes.IndexAny(names, " \t")
	if end < 0 || names[0] == '|' || names[0] == '#' {
		return line
	}
	small := bytes.ToLower(names[:end])
	if bytes.Equal(small, names[:end]) {
		return line
	}
	at := len(line) - len(names) + end
	return slices.Concat(line[:at], []byte(","), small, line[at:])
}

// lines returns the lines that speak of a machine, host:port, by file and number.
func (k *knownFiles) lines(lookup string) []knownKey {
	var e *xknownhosts.KeyError
	// A key that is nobody's is answered with all that would have been right.
	if err := k.db.HostKeyCallback()(lookup, &net.TCPAddr{IP: net.IPv4zero}, noKey{}); !errors.As(err, &e) {
		return nil
	}
	want := slices.Clone(e.Want)
	slices.SortFunc(want, func(a, b xknownhosts.KnownKey) int {
		if c := strings.Compare(a.Filename, b.Filename); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	var list []knownKey
	for i, key := range k.db.HostKeys(lookup) { // the same lines in the same order, with what they are
		list = append(list, knownKey{PublicKey: key.PublicKey, authority: key.Cert, place: k.place(want[i])})
	}
	return list
}

// revoked returns where a key is marked as revoked, or "".
func (k *knownFiles) revoked(lookup string, key ssh.PublicKey) string {
	var e *xknownhosts.RevokedError
	if err := k.db.HostKeyCallback()(lookup, &net.TCPAddr{IP: net.IPv4zero}, key); errors.As(err, &e) {
		return k.place(e.Revoked)
	}
	return ""
}

func (k *knownFiles) place(key xknownhosts.KnownKey) string {
	name := key.Filename
	if real, ok := k.names[name]; ok {
		name = real
	}
	return name + ":" + strconv.Itoa(key.Line)
}

// noKey is the key of no machine.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// readRevoked reads a file of revoked keys, one a line, and returns where each stands by its bytes. As
// with ssh, a file that cannot be read leaves no key that can be trusted.
func readRevoked(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := readBounded(file, maxRevoked)
	if err != nil {
		return nil, &revokedFileError{file, fault.Bare(err), "make it readable, or take RevokedHostKeys out of the ssh configuration"}
	}
	if bytes.HasPrefix(data, []byte(revocationMagic)) {
		return nil, &revokedFileError{file, errors.New("it is a key revocation list, which only the ssh program can read"),
			"connect by the ssh program, with --transport system"}
	}
	revoked := make(map[string]string)
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		if key, _, err := publicKey(line); err == nil {
			revoked[string(key.Marshal())] = file + ":" + strconv.Itoa(n)
		}
	}
	return revoked, nil
}

// revokedFileError is a RevokedHostKeys that cannot be used, so that no host key can be accepted.
type revokedFileError struct {
	file   string
	err    error
	advice string
}

func (e *revokedFileError) Error() string {
	return fmt.Sprintf("no host key is accepted, for RevokedHostKeys %s cannot be used: %s", display.Quote(e.file), display.Said(e.err.Error()))
}
func (e *revokedFileError) Unwrap() error        { return e.err }
func (e *revokedFileError) Is(target error) bool { return target == ErrHostKey }
func (e *revokedFileError) Hint() string         { return e.advice }
