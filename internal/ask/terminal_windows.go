package ask

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/punnet/punnet/internal/proc"
)

func hasTerminal() bool {
	in, out, err := console()
	if err != nil {
		return false
	}
	defer out.Close()
	defer in.Close()
	return term.IsTerminal(int(in.Fd()))
}

// console opens the process's console, whatever standard input and output are.
func console() (in, out *os.File, err error) {
	if in, err = os.OpenFile("CONIN$", os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if out, err = os.OpenFile("CONOUT$", os.O_RDWR, 0); err != nil {
		in.Close()
		return nil, nil, err
	}
	return in, out, nil
}

// onTerminal asks on the console. A read of a console cannot be called off: when ctx ends, the
// console is put back as it was and the read is left to the next line, or to the end of the process.
func onTerminal(ctx context.Context, q Question) (string, error) {
	in, out, err := console()
	if err != nil {
		return "", fmt.Errorf("opening the console: %w", err)
	}
	defer out.Close()
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		in.Close()
		return "", fmt.Errorf("console: %w", err)
	}
	answer, err := converse(q, func(text string) (string, error) {
		fmt.Fprint(out, text)
		type line struct {
			text string
			err  error
		}
		read := make(chan line, 1)
		go func() {
			var l line
			if q.Secret {
				b, err := term.ReadPassword(int(in.Fd()))
				l = line{string(b), err}
			} else {
				l.text, l.err = bufio.NewReaderSize(in, maxAnswer).ReadString('\n')
			}
			read <- l
		}()
		select {
		case l := <-read:
			if q.Secret {
				fmt.Fprintln(out)
			}
			if l.err != nil {
				return "", errors.Join(ErrUnanswered, l.err)
			}
			return strings.TrimRight(l.text, "\r\n"), nil
		case <-ctx.Done():
			_ = term.Restore(int(in.Fd()), before)
			fmt.Fprintln(out)
			return "", proc.Ended(ctx)
		}
	})
	if ctx.Err() == nil { // no read is under way
		in.Close()
	}
	return answer, err
}
