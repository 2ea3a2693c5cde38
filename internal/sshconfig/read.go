package sshconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// Bounds of what is read.
const (
	maxFileBytes = 1 << 20 // of one file
	maxBytes     = 4 << 20 // of all files of one question, those read twice counted twice
	maxFiles     = 256     // files of one question, counted likewise
	maxDepth     = 16      // files that include each other, as in ssh
	maxWarnings  = 32      // of one question
	maxValues    = 100     // of IdentityFile and CertificateFile, as in ssh, and of SendEnv
)

// reader reads ssh_config for one machine, as ssh does.
type reader struct {
	q     Query
	home  string
	me    string // the user of this machine
	known map[string]directive

	// read, glob and lookup reach the machine's files and the DNS.
	read   func(name string) ([]byte, error)
	glob   func(pattern string) ([]string, error)
	lookup func(ctx context.Context, host string) bool

	raw     map[string][]string
	sources sources
	host    string // what Host is compared with
	final   bool   // this is the second pass
	again   bool   // there is to be a second pass
	files   int    // read so far
	bytes   int
	warned  []string
}

// newReader returns a reader of this machine's files.
func newReader(q Query) (*reader, error) {
	home, err := q.home()
	if err != nil {
		return nil, err
	}
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("finding the name of this user: %w", err)
	}
	me := u.Username
	if i := strings.LastIndexByte(me, '\\'); i >= 0 {
		me = me[i+1:] // Windows: DOMAIN\user
	}
	return &reader{
		q: q, home: home, me: me, host: q.Host, known: directives(), raw: make(map[string][]string),
		read: readConfig, glob: globConfig,
		lookup: func(ctx context.Context, host string) bool {
			_, err := net.DefaultResolver.LookupHost(ctx, host)
			return err == nil
		},
	}, nil
}

// readConfig reads a file, which is a plain one or the null device.
func readConfig(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && name != os.DevNull {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a file")}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d bytes", maxFileBytes)}
	}
	return text, err
}

// globConfig returns the files that pattern means; as in a shell, a wildcard does not stand for a
// leading dot.
func globConfig(pattern string) ([]string, error) {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	return slices.DeleteFunc(names, func(name string) bool {
		for i, part := range strings.Split(filepath.ToSlash(name), "/") {
			if i < len(parts) && strings.HasPrefix(part, ".") && strings.IndexAny(parts[i], "*?[") == 0 {
				return true
			}
		}
		return false
	}), nil
}

// systemDir is where the system's configuration is.
func systemDir() string {
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("ProgramData"), "ssh")
	}
	return "/etc/ssh"
}

// pass reads all files once.
func (r *reader) pass() error {
	top := func(name string, user, must bool) error {
		b := &block{file: name, user: user, active: true}
		err := r.file(b, 0)
		if errors.Is(err, fs.ErrNotExist) && !must {
			return nil
		}
		return err
	}
	switch {
	case strings.EqualFold(r.q.ConfigFile, "none"):
		return nil
	case r.q.ConfigFile != "":
		return top(r.q.ConfigFile, true, true)
	}
	name := filepath.Join(r.home, ".ssh", "config")
	if err := trusted(name); err != nil {
		return err
	}
	if err := top(name, true, false); err != nil {
		return err
	}
	return top(filepath.Join(systemDir(), "ssh_config"), false, false)
}

// commandLine takes what the command line says, which wins over all files.
func (r *reader) commandLine() error {
	if r.q.User != "" {
		r.raw["user"] = []string{r.q.User}
	}
	if r.q.Port != 0 {
		r.raw["port"] = []string{fmt.Sprint(r.q.Port)}
	}
	for _, f := range r.q.IdentityFiles {
		if f, err := (&expander{home: r.home}).tilde(f); err == nil && exists(f) {
			r.raw["identityfile"] = append(r.raw["identityfile"], f)
		}
	}
	for i, option := range r.q.Options {
		b := &block{file: "command line", line: i + 1, user: true, active: true}
		key, rest, err := keyword(option)
		switch {
		case err == nil && slices.Contains([]string{"host", "match", "include"}, key):
			err = errors.New("is not for the command line")
		case err == nil:
			err = r.directive(b, key, rest)
		}
		if err != nil {
			return fmt.Errorf("option %d on the command line: %w", i+1, err)
		}
	}
	return nil
}

// file reads the file of b, whose block goes on in it.
func (r *reader) file(b *block, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("%s: files include each other more than %d deep", display.Quote(b.file), maxDepth)
	}
	if r.files++; r.files > maxFiles {
		return fmt.Errorf("the ssh configuration has more than %d files", maxFiles)
	}
	text, err := r.read(b.file)
	if err != nil {
		return err
	}
	if r.bytes += len(text); r.bytes > maxBytes {
		return fmt.Errorf("the ssh configuration is larger than %d bytes", maxBytes)
	}
	r.sources.add(b.file)
	for line := range strings.Lines(string(text)) {
		b.line++
		if err := r.line(b, line, depth); err != nil {
			return fmt.Errorf("%s line %d: %w", display.Quote(b.file), b.line, err)
		}
	}
	return nil
}

// line reads one line. What is wrong with a line that does not apply is told, and the line skipped.
func (r *reader) line(b *block, line string, depth int) error {
	key, rest, err := keyword(line)
	if key == "" && err == nil {
		return nil
	}
	if err == nil {
		switch key {
		case "match":
			return r.matchBlock(b, rest)
		case "host", "include":
			var args []string
			if args, err = arguments(rest); err == nil {
				if key == "host" {
					return r.hostBlock(b, args)
				}
				return r.include(b, args, depth)
			}
		default:
			err = r.directive(b, key, rest)
		}
	}
	if err != nil && !b.active {
		r.warn(b, firstOf(key, "a line"), err.Error()) // the line's values are nobody's business
		return nil
	}
	return err
}

// include reads the files that patterns mean. A block that begins in one ends with it.
func (r *reader) include(b *block, patterns []string, depth int) error {
	for _, p := range patterns {
		full := p
		switch {
		case strings.HasPrefix(p, "~"):
			if !b.user {
				return fmt.Errorf("in Include %s: the system's configuration has no home directory", display.Said(p))
			}
			var err error
			if full, err = (&expander{home: r.home}).tilde(p); err != nil {
				return err
			}
		case !filepath.IsAbs(p) && b.user:
			full = filepath.Join(r.home, ".ssh", p)
		case !filepath.IsAbs(p):
			full = filepath.Join(systemDir(), p)
		}
		names, err := r.glob(full)
		if err != nil {
			return fmt.Errorf("in Include %s: %w", display.Said(p), err)
		}
		for _, name := range names {
			if err := trusted(name); err != nil {
				return err
			}
			inner := &block{file: name, user: b.user, active: b.active, never: b.never || !b.active}
			err := r.file(inner, depth+1)
			var unread *fs.PathError
			if errors.As(err, &unread) && unread.Path == name {
				r.warn(b, "Include "+p, err.Error())
				continue
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// directive takes a line that is neither a block's beginning nor Include.
func (r *reader) directive(b *block, key, text string) error {
	key = alias(key)
	d, ok := r.known[key]
	if !ok {
		if !matchesList(key, strings.ToLower(first(r.raw, "ignoreunknown"))) {
			r.warn(b, key, "no such keyword is known here")
		}
		return nil
	}
	args, err := arguments(text)
	if err != nil {
		return err
	}
	if text = strings.TrimLeft(text, blanks+"="); d.shape == rest && text == "" || len(args) == 0 {
		return fmt.Errorf("%s without a value", key)
	}
	if d.value != nil {
		for i, arg := range args {
			if args[i], err = d.value(arg); err != nil {
				if key == "setenv" {
					arg = "..." // which may be a secret
				}
				return fmt.Errorf("%s %s %w", key, display.Said(arg), err)
			}
		}
	}
	if (d.shape == one || d.shape == each) && (len(args) > 1 || args[0] == "") {
		return fmt.Errorf("%s takes one value", key)
	}
	if b.active && key == "refuseconnection" {
		return fmt.Errorf("the ssh configuration refuses the connection: %s", display.Said(args[0]))
	}
	if b.active {
		r.set(b, key, d.shape, args, text)
	}
	if (d.shape == each || d.shape == sendEnv) && len(r.raw[key]) > maxValues {
		return fmt.Errorf("more than %d values of %s", maxValues, key)
	}
	return nil
}

// set keeps what a line that applies says.
func (r *reader) set(b *block, key string, s shape, args []string, text string) {
	have := r.raw[key]
	switch s {
	case one, list1:
		if key == "addkeystoagent" {
			args = []string{strings.Join(args, " ")}
		}
		if len(have) == 0 {
			r.raw[key] = args
		}
	case rest:
		// ProxyCommand and ProxyJump are one choice: the first of either decides, but that no jumps
		// does not mean no command.
		taken := key == "proxyjump" && first(r.raw, "proxycommand") != "" ||
			key == "proxycommand" && none(first(r.raw, "proxyjump")) != ""
		if len(have) == 0 && !taken {
			r.raw[key] = []string{text}
		}
	case each:
		if !slices.Contains(have, args[0]) {
			r.raw[key] = append(have, args[0])
		}
	case sendEnv:
		for _, arg := range args {
			if gone, ok := strings.CutPrefix(arg, "-"); ok {
				have = slices.DeleteFunc(have, func(name string) bool { return Matches(name, gone) })
			} else {
				have = append(have, arg)
			}
		}
		r.raw[key] = have
	case unable:
		if none(args[0]) != "" && !no(args[0]) {
			r.warn(b, key, "has no effect without an ssh program")
		}
	}
}

// warn tells once that a line was skipped.
func (r *reader) warn(b *block, what, why string) {
	at := fmt.Sprintf("%s:%d", display.Quote(b.file), b.line)
	if slices.Contains(r.warned, at) || len(r.warned) == maxWarnings {
		return
	}
	r.warned = append(r.warned, at)
	r.q.Log.Warn("skipped in the ssh configuration", "target", display.Quote(r.q.Host), "at", at, "what", display.Said(what), "why", why)
}
