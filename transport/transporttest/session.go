package transporttest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// session serves one channel: one command or the SFTP subsystem. It calls free before it says that
// the channel is over, so that a client that waits for that word finds room for another.
func (s *Server) session(nc ssh.NewChannel, a Account, free func()) {
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	var running sync.WaitGroup
	defer running.Wait()
	started := false
	proc := &process{}
	for r := range reqs {
		var arg struct{ Value string }
		_ = ssh.Unmarshal(r.Payload, &arg)
		var serve func()
		switch {
		case r.Type == "signal":
			proc.signal(arg.Value)
		case started:
		case r.Type == "exec" && !a.RefuseExec:
			serve = func() { s.exec(ch, a, arg.Value, proc) }
		case r.Type == "subsystem" && arg.Value == "sftp" && !a.NoFiles:
			serve = func() { s.sftp(ch, a) }
		}
		if r.WantReply {
			_ = r.Reply(serve != nil, nil)
		}
		if serve != nil {
			started = true
			running.Go(func() {
				serve()
				free()
				ch.Close()
			})
		}
	}
}

// exec runs line as the account's login shell would, and reports how it ended. When the channel is
// closed, the command finds its input and output closed and nothing else, as under sshd.
func (s *Server) exec(ch ssh.Channel, a Account, line string, p *process) {
	_, _ = io.WriteString(ch, a.Noise)
	if a.NoExec {
		_, _ = io.WriteString(ch, "This service allows sftp connections only.\n")
		exit(ch, 1)
		return
	}
	cmd := shell(line)
	if a.Shell != nil {
		argv, words := a.Shell(line)
		if len(argv) == 0 {
			_, _ = io.WriteString(ch.Stderr(), words)
			exit(ch, 1)
			return
		}
		cmd = program(argv)
	}
	home := s.Home(a.Name)
	cmd.Dir = filepath.Join(home, a.Start)
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "SHELL=/bin/sh",
		"USER=" + a.Name, "LOGNAME=" + a.Name,
	}
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	in, err := cmd.StdinPipe()
	if err == nil {
		err = p.start(cmd, s.closing)
	}
	if err != nil {
		_, _ = io.WriteString(ch.Stderr(), err.Error()+"\n")
		exit(ch, 127)
		return
	}
	go func() {
		_, _ = io.Copy(in, ch)
		in.Close()
	}()
	err = cmd.Wait()
	p.ended()
	var ee *exec.ExitError
	switch {
	case errors.As(err, &ee) && signalOf(ee.ProcessState) != "":
		_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}{Signal: signalOf(ee.ProcessState)}))
	case errors.As(err, &ee):
		exit(ch, ee.ExitCode())
	default:
		exit(ch, 0)
	}
}

func exit(ch ssh.Channel, status int) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

// sftp serves the whole file system, or the account's part of it, starting in the account's home.
func (s *Server) sftp(ch ssh.Channel, a Account) {
	_, _ = io.WriteString(ch, a.Noise)
	var rw io.ReadWriteCloser = &stalling{Channel: ch, s: s}
	if a.Chroot != "" {
		rw = &confined{ReadWriteCloser: rw, root: s.root(a.Name)}
	}
	srv, err := sftp.NewServer(rw, sftp.WithServerWorkingDirectory(s.Home(a.Name)))
	if err != nil {
		return
	}
	_ = srv.Serve()
	exit(ch, 0)
}

// stalling is a channel on which the server stops answering when Faults says so.
type stalling struct {
	ssh.Channel
	s      *Server
	spoken bool
}

func (c *stalling) Write(b []byte) (int, error) {
	// The first packet is the version.
	if c.spoken && c.s.currentFaults().StallFiles {
		return len(b), nil
	}
	c.spoken = true
	return c.Channel.Write(b)
}

// process is the command of one session, once it runs.
type process struct {
	mu   sync.Mutex
	p    *os.Process
	stop chan struct{}
}

// start starts cmd and sees to it that it does not outlive the server.
func (p *process) start(cmd *exec.Cmd, closing <-chan struct{}) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	p.p, p.stop = cmd.Process, make(chan struct{})
	go func(stop chan struct{}) {
		select {
		case <-closing:
			p.kill()
		case <-stop:
		}
	}(p.stop)
	return nil
}

func (p *process) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.p = nil
	close(p.stop)
}
