//go:build unix

package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/punnet/punnet/internal/proc"
)

// maxSocketDir is how long the path of a socket's directory may be, in bytes. A Unix socket's path
// has at most 103 on some systems, and ssh binds it under a name that is 17 longer.
const maxSocketDir = 103 - len("/s") - 17

// watch runs ssh, in place of the shell, beside a watcher that waits for the end of a pipe whose
// other end this process holds: when this process dies, however it dies, ssh is ended and the
// directory $0 removed. A line on the pipe ends the watcher alone. An interrupt from the terminal is
// not for ssh: what runs over its connection may have to be cleaned up first.
const watch = `trap "" INT; { read x || { kill $$; rm -rf "$0"; }; } <&3 >/dev/null 2>&1 & exec "$@" 3<&-`

// systemSSH returns the path of the user's ssh.
func systemSSH() (string, error) {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return "", errors.New("there is no ssh program on the PATH")
	}
	return path, nil
}

// master is the system's ssh holding a connection.
type master struct {
	socket string // where the connection is shared

	dir   string
	cmd   *exec.Cmd
	alive *os.File // says that this process lives
	words *words   // standard error, where nobody else reads it
	group bool     // it has a process group of its own
	done  chan struct{}
	err   error // how it ended, once done is closed
}

// startMaster starts ssh with the arguments that args makes of a socket and a log file. If ask is
// set, ssh can ask a person: on the terminal of this process or by SSH_ASKPASS.
func startMaster(ssh string, args func(socket, log string) []string, ask bool) (*master, error) {
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	m := &master{
		dir: dir, socket: filepath.Join(dir, "s"), group: !ask,
		words: &words{kept: proc.FirstBytes{Max: maxKeyFile}}, done: make(chan struct{}),
	}
	watched, alive, err := os.Pipe()
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	defer watched.Close()
	m.alive = alive
	m.cmd = exec.Command("/bin/sh", append([]string{"-c", watch, dir, ssh}, args(m.socket, m.log())...)...)
	m.cmd.ExtraFiles = []*os.File{watched}
	m.cmd.WaitDelay = cancelGrace
	m.cmd.Stderr = m.words
	if ask && term.IsTerminal(int(os.Stderr.Fd())) {
		m.cmd.Stderr = os.Stderr // where ssh says that a security key wants to be touched
	}
	// Without a terminal nothing that ssh loads can ask on it.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !ask}
	if err := m.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		alive.Close()
		return nil, err
	}
	go func() {
		m.err = m.cmd.Wait()
		close(m.done)
	}()
	return m, nil
}

// socketDir makes a directory for a socket, which nobody else can look into.
func socketDir() (string, error) {
	var failed error
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		// ssh reads % and ${ in the socket's name as something else.
		if parent == "" || !filepath.IsAbs(parent) || strings.ContainsAny(parent, "%$") {
			continue
		}
		dir, err := os.MkdirTemp(parent, "punnet-")
		if err != nil {
			failed = err
			continue
		}
		if len(dir) <= maxSocketDir {
			return dir, nil
		}
		_ = os.Remove(dir)
	}
	if failed == nil {
		failed = errors.New("no directory has a name short enough for a socket")
	}
	return "", failed
}

func (m *master) log() string { return filepath.Join(m.dir, "log") }

// await waits until ssh shares its connection.
func (m *master) await(ctx context.Context) error {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if _, err := os.Lstat(m.socket); err == nil {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-m.done:
			timer.Stop()
			if m.err == nil {
				return errors.New("it ended")
			}
			return m.err
		case <-ctx.Done():
			timer.Stop()
			return proc.Ended(ctx)
		case <-timer.C:
		}
	}
}

// stop ends ssh, removes its directory and returns what it wrote.
func (m *master) stop() string {
	m.signal(syscall.SIGTERM)
	limit := time.NewTimer(cancelGrace)
	defer limit.Stop()
	select {
	case <-m.done:
	case <-limit.C:
		m.signal(syscall.SIGKILL)
		<-m.done
	}
	_, _ = fmt.Fprintln(m.alive)
	m.alive.Close()
	text := m.lastWords()
	_ = os.RemoveAll(m.dir)
	return text
}

// signal signals ssh and, where they are its own, the processes that it started.
func (m *master) signal(s syscall.Signal) {
	select {
	case <-m.done:
	default:
		_ = m.cmd.Process.Signal(s)
		if m.group {
			_ = syscall.Kill(-m.cmd.Process.Pid, s)
		}
	}
}

// lastWords returns what ssh wrote. It waits a moment for ssh to end.
func (m *master) lastWords() string {
	limit := time.NewTimer(lastWords)
	defer limit.Stop()
	select {
	case <-m.done:
	case <-limit.C:
	}
	log, _ := readBounded(m.log(), maxKeyFile)
	return strings.TrimSpace(string(log) + m.words.String())
}

// duplicate returns another descriptor of conn's socket, nil where there is none to be had. It is
// for use once conn is closed: the two share whether they block.
func duplicate(conn *net.UnixConn) (f *os.File) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) {
		if n, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			f = os.NewFile(uintptr(n), "socket")
		}
	})
	return f
}

// startHolder starts a process that holds a socket open until its other end is closed, and returns
// the process's id. Nobody waits for the process.
func startHolder(socket *os.File) (pid string, err error) {
	if err := syscall.SetNonblock(int(socket.Fd()), false); err != nil { // cat would end at once
		return "", err
	}
	p := exec.Command("/bin/sh", "-c", `cat <&3 >/dev/null 2>&1 & echo $!`)
	p.ExtraFiles = []*os.File{socket}
	p.Dir = "/"
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.WaitDelay = cancelGrace
	out, err := p.Output()
	return strings.TrimSpace(string(out)), err
}
