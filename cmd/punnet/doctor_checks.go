package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
)

// Below these a push may still work, and doctor says so with a hint.
const (
	lowSpace  = 64 << 20        // bytes; a bundle has at most 32 MiB, and stands there twice for a moment
	lowInodes = 1000            // one a file or directory
	skewLimit = 3 * time.Minute // what a copy's last use may be off by without a word
)

// probed adds what the target offers, and what publishing there would meet.
func (d *diagnosis) probed(p *remote.Probe, noExec bool) {
	d.class(p, noExec)
	if p.System != "" || p.User != "" {
		d.add(check{Name: "account", OK: true, Value: join(p.User, p.System)})
	}
	if p.Shell != "" {
		value := display.Quote(p.Shell)
		if p.Sh != "" {
			value += "; /bin/sh is " + display.Quote(p.Sh)
		}
		d.add(check{Name: "shell", OK: true, Value: value})
	}
	d.tools(p)
	d.sftp(p)
	if p.Home != "" {
		d.add(check{Name: "home", OK: true, Value: display.Quote(p.Home)})
	}
	d.cache(p)
	d.space(p)
	if d.Connection != string(transport.WayLocal) && p.Latency > 0 {
		d.add(check{Name: "latency", OK: true, Value: duration(p.Latency) + " a round trip"})
	}
	d.clock(p)
}

// join puts the words that are there beside each other.
func join(words ...string) string {
	return display.Quote(strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ", "))
}

func (d *diagnosis) class(p *remote.Probe, noExec bool) {
	c := check{Name: "class", OK: p.Class != "", Value: p.Class}
	switch {
	case p.Class == "":
		c.Value, c.Hint = display.Quote(p.Unusable.Error()), display.Quote(transport.Hint(p.Unusable))
		if c.Hint == "" {
			c.Hint = "see whether the account's login shell is one that runs commands, or try --no-exec"
		}
	case p.Class == "exec":
		c.Value = "exec: by commands, in /bin/sh"
	case noExec:
		c.Value = "sftp: as --no-exec says"
	default:
		c.Value = "sftp: " + display.Quote(p.Exec.Error())
		if !errors.Is(p.Exec, remote.ErrTools) {
			break
		}
		c.Hint = "install " + display.Quote(strings.Join(p.Missing, ", ")) + " there: by commands a push takes fewer round trips"
	}
	d.add(c)
}

func (d *diagnosis) tools(p *remote.Probe) {
	if p.Missing == nil && p.SHA256 == "" {
		return // no command told
	}
	c := check{Name: "tools", OK: true}
	for _, name := range []string{"tar", "gzip", "zstd"} {
		if v := strings.Trim(p.Versions[name], "* "); strings.HasPrefix(v, name) {
			c.Value += display.Said(v) + "; "
		} else if v != "" {
			c.Value += name + ": " + display.Said(v) + "; "
		}
	}
	c.Value += "digests by " + display.Quote(orNone(p.SHA256))
	if !p.Zstd {
		c.Value += "; no zstd"
	}
	switch {
	case len(p.Missing) > 0:
		c.OK = p.Class == "sftp"
		c.Value = "missing: " + display.Quote(strings.Join(p.Missing, ", "))
		c.Hint = "install there what is missing"
	case p.SHA256 != "" && p.SHA256 != "sha256sum":
		c.Hint = "sha256sum would be faster than " + display.Quote(p.SHA256)
	}
	d.add(c)
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func (d *diagnosis) sftp(p *remote.Probe) {
	c := check{Name: "sftp", OK: true, Value: "there"}
	switch {
	case d.Connection == string(transport.WayLocal), p.Files != nil && p.Class == "":
		return // there is none to speak of, or class has said it
	case p.Files != nil:
		c.Value = display.Quote(p.Files.Error())
	case len(p.Extensions) > 0:
		list := strings.ReplaceAll(strings.Join(p.Extensions, ", "), "@openssh.com", "")
		c.Value = "there, with " + display.Said(list)
	}
	if p.Class == "sftp" && !slices.Contains(p.Extensions, "posix-rename@openssh.com") {
		c.Hint = "the server has no posix-rename; publishing works without, and a damaged copy is absent for a moment while it is replaced"
	}
	d.add(c)
}

// cache says where the copies are to be, and whether a push could put one there.
func (d *diagnosis) cache(p *remote.Probe) {
	if p.Class == "" {
		return
	}
	if p.Unusable != nil {
		d.add(failing("cache", p.Unusable))
	} else {
		d.add(check{Name: "cache", OK: true, Value: display.Quote(p.Cache) + ", which nobody else can change"})
	}
	switch {
	case p.ReadOnly != "":
		d.add(check{Name: "writable", Value: "the account may not write to " + display.Quote(p.ReadOnly),
			Hint: "make it writable for the account, or set XDG_CACHE_HOME on the target to a directory that is"})
	case p.Unusable == nil && p.Class == "exec":
		d.add(check{Name: "writable", OK: true, Value: "yes"})
	}
}

func (d *diagnosis) space(p *remote.Probe) {
	if p.Free >= 0 {
		c := check{Name: "free-space", OK: p.Free > 0, Value: size(p.Free)}
		if p.Free < lowSpace {
			c.Hint = "free some space on the target, for instance with punnet prune"
		}
		d.add(c)
	}
	// A file system that makes inodes as they are needed says that it has none.
	if p.Inodes > 0 && p.Inodes < lowInodes {
		d.add(check{Name: "free-files", OK: true, Value: fmt.Sprintf("room for %d", p.Inodes),
			Hint: "delete files on the target, for instance with punnet prune"})
	}
}

func (d *diagnosis) clock(p *remote.Probe) {
	if !p.Skewed {
		return
	}
	c := check{Name: "clock", OK: true, Value: "as here"}
	// It is known to half a second, and to what the way there adds.
	if skew := p.Skew.Round(time.Second); skew.Abs() > 2*time.Second {
		c.Value = duration(skew.Abs()) + " ahead of this machine's"
		if skew < 0 {
			c.Value = duration(skew.Abs()) + " behind this machine's"
		}
		if skew.Abs() > skewLimit {
			c.Hint = "set the clock of one of the two: prune goes by the target's"
		}
	}
	d.add(c)
}

// duration writes a time for people: two or three digits that count.
func duration(t time.Duration) string {
	switch {
	case t < time.Millisecond:
		return t.Round(10 * time.Microsecond).String()
	case t < time.Second:
		return t.Round(100 * time.Microsecond).String()
	case t < time.Minute:
		return t.Round(100 * time.Millisecond).String()
	}
	return t.Round(time.Second).String()
}
