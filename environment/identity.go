package environment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
)

// account is what tells an environment from others. What is not known is "".
type account struct {
	machine string // the machine's id
	user    string // the account's number
	home    string // its home directory's real path
}

// id returns the environment's identity, "" where it is not known for certain. A machine's id is not for
// others to see, so a hash of it is.
func (a account) id() string {
	machine := machineSaid(a.machine)
	if machine == "" || a.user == "" || a.home == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("punnet environment\n" + machine + "\n" + a.user + "\n" + a.home))
	return "machine:" + hex.EncodeToString(sum[:16])
}

var uuid = regexp.MustCompile(`[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}`)

// identity returns what an environment is known by. Where the machine does not say it is its host key and
// the account's name; a name of the target's, which can lead elsewhere tomorrow, only where nobody saw the
// key.
func identity(a account, hostKey, login string, t session.Target) string {
	if id := a.id(); id != "" {
		return id
	}
	if hostKey == "" || login == "" {
		return "target:" + t.String()
	}
	sum := sha256.Sum256([]byte("punnet environment\n" + hostKey + "\n" + login))
	return "key:" + hex.EncodeToString(sum[:16])
}

// machineID returns the 128 bits in what a system says its id is, "" where there are none, or they are
// what a machine has that has none yet.
func machineID(said string) string {
	id := strings.ToLower(strings.ReplaceAll(uuid.FindString(said), "-", ""))
	if strings.Trim(id, "0") == "" || strings.Trim(id, "f") == "" {
		return ""
	}
	return id
}

// hostKeyFile has the host key of a machine that has no id, as its SSH server wrote it.
const hostKeyFile = "/etc/ssh/ssh_host_ed25519_key.pub"

// machineSaid returns the machine's id, or its host key where that is what it said.
func machineSaid(said string) string {
	if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(said)); err == nil {
		return ssh.FingerprintSHA256(key)
	}
	return machineID(said)
}

// Identify implements session.Environment. The machine is asked once.
func (e *Environment) Identify(ctx context.Context) (id, home string, err error) {
	select {
	case e.asking <- struct{}{}:
		defer func() { <-e.asking }()
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
	if e.id != "" {
		return e.id, e.home, nil
	}
	var a account
	if e.target.Local() {
		a, err = here(ctx, e.conn)
		home = e.o.Getenv("HOME")
	} else {
		a, err = e.ask(ctx)
	}
	if err != nil {
		return "", "", unavailable(ctx, e.target, err)
	}
	if !filepath.IsAbs(home) {
		home = a.home
	}
	e.home = home
	key, login := transport.Login(e.conn)
	e.id = identity(a, key, login, e.target)
	return e.id, e.home, nil
}

// machineFiles hold the machine's id: Linux with and without systemd, FreeBSD.
func machineFiles() []string {
	return []string{"/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostid"}
}

// here describes this machine and account.
func here(ctx context.Context, conn transport.Conn) (account, error) {
	a := account{machine: localMachine()}
	for _, f := range machineFiles() {
		if a.machine == "" {
			data, _ := os.ReadFile(f)
			a.machine = machineID(string(data))
		}
	}
	u, err := user.Current()
	if err == nil {
		a.user = u.Uid
		if passwd, err := user.LookupId(u.Uid); err == nil {
			u = passwd // and not what the environment says
		}
		a.home = u.HomeDir
	}
	if real, err := filepath.EvalSymlinks(a.home); err == nil {
		a.home = filepath.ToSlash(real)
	}
	if a.machine == "" {
		if said, ok, err := byExec(ctx, conn); err == nil && ok {
			a.machine = said.machine
		}
	}
	return a, ctx.Err()
}

// ask asks a target, by a command where it runs one.
func (e *Environment) ask(ctx context.Context) (account, error) {
	if !e.o.NoExec {
		a, ok, err := byExec(ctx, e.conn)
		if err != nil || ok {
			return a, err
		}
	}
	return byFiles(ctx, e.conn)
}

// question is what is asked of a target's shell: one line for any login shell to pass on to /bin/sh, see
// package remote. On macOS the machine's id is in a registry.
const question = `exec /bin/sh -c 'm=; for f in /etc/machine-id /var/lib/dbus/machine-id; do if test -z "$m" && test -f $f && test -r $f; then read m <$f; fi; done; ` +
	`if test -z "$m"; then m=$(sysctl -n kern.hostuuid 2>/dev/null || ioreg -rd1 -c IOPlatformExpertDevice 2>/dev/null | grep IOPlatformUUID); fi; ` +
	`if test -z "$m" && test -f ` + hostKeyFile + ` && test -r ` + hostKeyFile + `; then read -r m <` + hostKeyFile + `; fi; ` +
	`printf "%%s\n" %[1]s "$m" "$(id -u)" "$(cd && pwd -P)" %[1]s.'`

// maxSaid bounds what a target's shell may say, login noise included.
const maxSaid = 64 << 10

// byExec asks by a command. ok is false where the account runs none.
func byExec(ctx context.Context, conn transport.Conn) (a account, ok bool, err error) {
	nonce := strings.ToLower(rand.Text())
	var said bounded
	err = conn.Exec(ctx, transport.Cmd{Line: fmt.Sprintf(question, nonce), Stdout: &said})
	_, exited := errors.AsType[*transport.ExitError](err)
	if err != nil && !exited && !errors.Is(err, transport.ErrNoExec) && !said.full {
		return a, false, err
	}
	_, rest, begun := strings.Cut(string(said.b), nonce+"\n")
	answer, _, ended := strings.Cut(rest, "\n"+nonce+".")
	parts := strings.Split(answer, "\n")
	if !begun || !ended || len(parts) != 3 || !path.IsAbs(parts[2]) {
		return a, false, nil
	}
	return account{machine: parts[0], user: parts[1], home: parts[2]}, true, nil
}

// bounded keeps what is written to it and refuses what is too much.
type bounded struct {
	b    []byte
	full bool
}

func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > maxSaid {
		w.full = true
		return 0, errors.New("more than was asked for")
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// byFiles asks by SFTP. The account is whoever owns the directory where a session starts.
func byFiles(ctx context.Context, conn transport.Conn) (account, error) {
	files, err := conn.Files(ctx)
	if err != nil {
		return account{}, err
	}
	var a account
	sources := append(machineFiles(), hostKeyFile)
	said := make([]string, len(sources))
	g, _ := errgroup.WithContext(ctx)
	for i, f := range sources {
		g.Go(func() error {
			if info, err := files.Lstat(f); err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0) {
				data, _ := files.ReadFile(f, 4<<10)
				if machineSaid(string(data)) != "" {
					said[i] = string(data)
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		home, err := files.RealPath(".")
		if err != nil {
			return err
		}
		info, err := files.Lstat(home)
		if err != nil {
			return err
		}
		a.home = home
		// A directory of root's in which another account is confined says nothing about that account.
		if uid, _, ok := transport.Owner(info); ok && home != "/" {
			a.user = fmt.Sprint(uid)
		}
		return nil
	})
	err = g.Wait()
	for _, s := range said {
		if a.machine == "" {
			a.machine = s
		}
	}
	return a, err
}
