package sshconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
)

// askTimeout bounds a question, which may run the commands of Match exec and ask the DNS.
const askTimeout = 10 * time.Second

// maxAnswer bounds what `ssh -G` may print, in bytes. OpenSSH prints about 5 KiB.
const maxAnswer = 1 << 20

// BrokenError is a program named ssh that does not answer as OpenSSH does.
type BrokenError struct {
	Path string // of the program
	Err  error  // how it ended, or what its answer lacks
}

// Error names the program and what it did.
func (e *BrokenError) Error() string {
	if errors.Is(e.Err, exec.ErrDot) {
		return fmt.Sprintf("PATH leads to %s by way of the working directory, so it is not run", display.Quote(e.Path))
	}
	return fmt.Sprintf("%s does not answer `ssh -G` as OpenSSH does: %v", display.Quote(e.Path), e.Err)
}

// Unwrap returns how the program ended.
func (e *BrokenError) Unwrap() error { return e.Err }

// Hint says what mends it.
func (e *BrokenError) Hint() string {
	if errors.Is(e.Err, exec.ErrDot) {
		return "take the directories that do not begin with / out of PATH"
	}
	return "run " + display.Quote(e.Path) + " -V; install OpenSSH's client (6.8 or later), or take that program out of PATH: without any ssh the configuration is read directly"
}

// ask asks the ssh program at path. It runs with -vvv, which costs nothing and says what decided.
func ask(ctx context.Context, path string, q Query) (*answer, error) {
	d := &diary{words: proc.FirstBytes{Max: 2 * display.SaidBytes}}
	cmd := exec.CommandContext(ctx, path, append([]string{"-vvv", "-G"}, q.Args()...)...)
	cmd.Stderr = d
	out, err := proc.Output(ctx, cmd, maxAnswer)
	d.end()
	if ctx.Err() != nil {
		return nil, err
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) && d.openSSH {
		if said := d.words.Bytes(); len(said) > 0 {
			return nil, &proc.Error{Name: "ssh", Said: display.Said(string(said)), Err: failed}
		}
	}
	if err != nil {
		var p *proc.Error
		if errors.As(err, &p) {
			p.Said = display.Said(string(d.words.Bytes()))
		}
		return nil, &BrokenError{Path: path, Err: err}
	}
	raw, err := parseAnswer(string(out))
	if err != nil {
		return nil, &BrokenError{Path: path, Err: err}
	}
	return &answer{raw: raw, sources: d.sources.list}, nil
}

// parseAnswer reads the output of `ssh -G`: a lower-case keyword and its value on each line, some
// keywords several times. The result holds a list of files as a value each.
func parseAnswer(out string) (map[string][]string, error) {
	raw := make(map[string][]string)
	for line := range strings.Lines(out) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if !ok || key == "" {
			continue // a keyword without a value
		}
		key = strings.ToLower(key)
		if key == "userknownhostsfile" || key == "globalknownhostsfile" {
			raw[key] = append(raw[key], splitFiles(value)...)
			continue
		}
		raw[key] = append(raw[key], value)
	}
	if first(raw, "hostname") == "" || first(raw, "port") == "" {
		return nil, errors.New("it did not print a host name and port")
	}
	return raw, nil
}

// splitFiles takes a list of file names apart that ssh printed without the quotes they were written
// in. Every name but the first that is not a whole path is taken for the rest of a name with a space,
// unless there is such a file.
func splitFiles(s string) []string {
	var names []string
	for word := range strings.SplitSeq(s, " ") {
		n := len(names)
		if n > 0 && !whole(word) && (word == "" || whole(names[n-1]) && !exists(word)) {
			names[n-1] += " " + word
			continue
		}
		names = append(names, word)
	}
	for i, name := range names {
		names[i] = strings.TrimRight(name, " ")
	}
	return names
}

// whole reports whether name begins as a path does that does not depend on the working directory.
func whole(name string) bool {
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.HasPrefix(name, `\`) ||
		len(name) > 2 && name[1] == ':' && (name[2] == '/' || name[2] == '\\')
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
