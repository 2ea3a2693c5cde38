package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/sftp"
)

// Files opens the SFTP subsystem on the first call, and again when it has ended since.
func (c *sshConn) Files(ctx context.Context) (FS, error) {
	end, err := c.begin("files")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.usable(ctx, "files"); err != nil {
		return nil, err
	}
	select {
	case c.filesLock <- struct{}{}:
		defer func() { <-c.filesLock }()
	case <-ctx.Done():
		return nil, c.newError("files", nil, proc.Ended(ctx))
	case <-c.closed:
		return nil, c.newError("files", ErrClosed, nil)
	}
	if c.files != nil && c.files.Err() == nil {
		return sftpFiles{c.files.Files(ctx)}, nil
	}
	files, err := c.openFiles(ctx)
	if err != nil {
		return nil, err
	}
	c.files = files
	return sftpFiles{files.Files(ctx)}, nil
}

// sftpFiles are a machine's files over SFTP, as FS.
type sftpFiles struct{ *sftp.FS }

func (s sftpFiles) Open(name string) (File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s sftpFiles) Create(name string, perm fs.FileMode) (FileWriter, error) {
	w, err := s.FS.Create(name, perm)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// openFiles opens a channel and speaks SFTP's opening words on it.
func (c *sshConn) openFiles(ctx context.Context) (*sftp.Client, error) {
	o, release, err := c.channel(ctx, "files", "subsystem", sftpSubsystem(), ErrNoFiles)
	if err != nil {
		return nil, err
	}
	finished := make(chan struct{})
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		ssh.DiscardRequests(o.reqs)
		close(finished)
		release()
	}()
	words := &words{kept: proc.FirstBytes{Max: display.SaidBytes}}
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		_, _ = io.Copy(words, o.ch.Stderr())
	}()
	hangUp := sync.OnceFunc(func() { c.spawn(func() { c.hangUp(o.ch, finished) }) })
	files, err := c.greet(ctx, o.ch, hangUp)
	if err != nil {
		if fault.IsEnd(err) && c.isDead(ctx) {
			return nil, c.lost("files", err)
		}
		return nil, c.greetError(ctx, err, words)
	}
	// The client's loops end when it does; Close waits for them.
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		files.Wait()
	}()
	return files, nil
}

// greet speaks the opening words until ctx ends or nothing came for the idle limit.
func (c *sshConn) greet(ctx context.Context, ch ssh.Channel, hangUp func()) (*sftp.Client, error) {
	type result struct {
		files *sftp.Client
		err   error
	}
	done := make(chan result, 1)
	go func() {
		files, err := sftp.Start(ch, &hangingWriter{ch, hangUp}, c.idle)
		done <- result{files, err}
	}()
	limit := c.timer()
	defer limit.Stop()
	var err error
	select {
	case r := <-done:
		if r.err != nil {
			hangUp()
		}
		return r.files, r.err
	case <-ctx.Done():
		err = proc.Ended(ctx)
	case <-c.closed:
		err = ErrClosed
	case <-limit.C:
		err = fault.Both(fmt.Errorf("no SFTP server spoke within %v", c.idle), ErrTimeout)
	}
	hangUp()
	go func() {
		if r := <-done; r.files != nil {
			r.files.Close()
		}
	}()
	return nil, err
}

// isDead reports whether it is the whole connection that ended, as an end of one of its channels can
// be the first sign of. A borrowed connection shows it by what becomes of another channel.
func (c *sshConn) isDead(ctx context.Context) bool {
	if !c.owned {
		o, release, err := c.channel(ctx, "files", "subsystem", sftpSubsystem(), ErrNoFiles)
		if err == nil {
			o.ch.Close()
			go ssh.DiscardRequests(o.reqs)
			release()
		}
		e, ours := errors.AsType[*Error](err)
		return ours && e.early
	}
	sign := time.NewTimer(endGrace)
	defer sign.Stop()
	select {
	case <-c.dead:
		return true
	case <-sign.C:
		return false
	}
}

func sftpSubsystem() []byte { return ssh.Marshal(struct{ Name string }{"sftp"}) }

// endGrace is how long the end of a connection may take to be known after that of its channels.
const endGrace = 100 * time.Millisecond

// greetError says why there is no SFTP.
func (c *sshConn) greetError(ctx context.Context, err error, w *words) error {
	switch {
	case ctx.Err() != nil:
		return c.newError("files", nil, proc.Ended(ctx))
	case errors.Is(err, ErrClosed):
		return c.newError("files", ErrClosed, nil)
	case errors.Is(err, ErrTimeout):
		e := c.newError("files", ErrTimeout, err)
		e.Advice = "see what the account runs in place of an SFTP server: a forced command of the key, or a start file that waits for input"
		return e
	}
	if text := w.String(); text != "" {
		err = fmt.Errorf("%w; the account said: %s", err, display.Said(text))
	}
	return c.newError("files", ErrNoFiles, err)
}

// hangingWriter is a channel's input whose Close hangs up the whole channel.
type hangingWriter struct {
	ch     ssh.Channel
	hangUp func()
}

func (h *hangingWriter) Write(p []byte) (int, error) { return h.ch.Write(p) }

func (h *hangingWriter) Close() error {
	h.hangUp()
	return nil
}

// words keeps the beginning of what is written to it.
type words struct {
	mu   sync.Mutex
	kept proc.FirstBytes
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept.Write(p)
}

func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.kept.Bytes())
}
