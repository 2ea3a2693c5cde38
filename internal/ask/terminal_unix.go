//go:build unix

package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/punnet/punnet/internal/proc"
)

const (
	// terminal is the process's own, whatever standard input and output are.
	terminal = "/dev/tty"
	// glance is how often a waiting question looks whether its context has ended.
	glance = 100 * time.Millisecond
)

func hasTerminal() bool {
	fd, err := openTerminal(terminal)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

func openTerminal(name string) (int, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func onTerminal(ctx context.Context, q Question) (string, error) { return askOn(ctx, terminal, q) }

// askOn asks on the terminal of this name.
func askOn(ctx context.Context, name string, q Question) (string, error) {
	fd, err := openTerminal(name)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", name, err)
	}
	defer unix.Close(fd)
	return converse(q, func(text string) (string, error) {
		if q.Secret {
			return readHidden(ctx, fd, text)
		}
		return readShown(ctx, fd, text)
	})
}

func readShown(ctx context.Context, fd int, text string) (string, error) {
	if err := writeAll(fd, text); err != nil {
		return "", err
	}
	answer, err := readLine(ctx, fd)
	if err != nil {
		_ = writeAll(fd, "\n")
	}
	return answer, err
}

// readHidden reads without echo. What was typed before the question is not its answer. The terminal
// is as before when it returns: an interrupt from the keyboard is a signal, which ends ctx.
func readHidden(ctx context.Context, fd int, text string) (answer string, err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	quiet := *before
	quiet.Lflag &^= unix.ECHO
	quiet.Lflag |= unix.ICANON | unix.ISIG
	quiet.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, flushTermios, &quiet); err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		err = errors.Join(err, unix.IoctlSetTermios(fd, setTermios, before), writeAll(fd, "\n"))
	}()
	if err := writeAll(fd, text); err != nil {
		return "", err
	}
	return readLine(ctx, fd)
}

func writeAll(fd int, text string) error {
	for len(text) > 0 {
		n, err := unix.Write(fd, []byte(text))
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		text = text[n:]
	}
	return nil
}

// readLine reads a line until ctx ends.
func readLine(ctx context.Context, fd int) (string, error) {
	var line []byte
	buf := make([]byte, 512)
	for len(line) <= maxAnswer {
		ready, err := waitReadable(fd, glance)
		if ctx.Err() != nil {
			return "", proc.Ended(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("terminal: %w", err)
		}
		if !ready {
			continue
		}
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return "", fmt.Errorf("terminal: %w", err)
		case n == 0: // the end of input was typed
			return "", ErrUnanswered
		}
		line = append(line, buf[:n]...)
		if text, _, ok := strings.Cut(string(line), "\n"); ok {
			return strings.TrimSuffix(text, "\r"), nil
		}
	}
	return "", fmt.Errorf("%w: the answer is longer than %d bytes", ErrUnanswered, maxAnswer)
}

// waitReadable waits for something to read. It is select because poll does not know terminals on
// every system.
func waitReadable(fd int, limit time.Duration) (bool, error) {
	if fd >= unix.FD_SETSIZE {
		return false, errors.New("too many files are open")
	}
	var set unix.FdSet
	set.Set(fd)
	tv := unix.NsecToTimeval(int64(limit))
	n, err := unix.Select(fd+1, &set, nil, nil, &tv)
	if err == unix.EINTR {
		return false, nil
	}
	return n > 0, err
}
