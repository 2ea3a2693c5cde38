package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

// probeLimit bounds each of the questions that Probe asks, so that one without an answer leaves time
// for the others.
const probeLimit = 30 * time.Second

// Probe is what a target offers, and what publishing there would meet. What a target did not say is
// zero. Every string is as the target sent it.
type Probe struct {
	Class string // "exec" or "sftp" for the way publishing would take, "" where there is none
	Exec  error  // why commands are not used; nil where they are
	Files error  // why there is no SFTP; nil where there is, or where it is not known

	// Known where a command ran.
	System   string            // kind of system and processor
	User     string            // the account's name
	Shell    string            // its login shell
	Sh       string            // where /bin/sh leads, if it is a link
	Home     string            // its home directory
	Missing  []string          // programs that publishing by commands needs and that are not there
	Versions map[string]string // what tar, gzip and zstd say of themselves, by name
	SHA256   string            // the program that computes digests
	Zstd     bool              // zstd is there
	Skewed   bool              // Skew is known
	Skew     time.Duration     // how far the target's clock is ahead of ours, to half a second or so

	// Extensions are those of the SFTP server.
	Extensions []string

	Cache    string // where the cache is or would be, absolute
	Unusable error  // why it cannot be used as it stands, such as ErrUnsafe
	ReadOnly string // the directory where the account would have to write and cannot
	Free     int64  // bytes that the account may still write there, -1 where it is not known
	Inodes   int64  // files that it may still make, -1 where it is not known

	// Latency is one round trip, the median of three; 0 where it could not be measured.
	Latency time.Duration
}

// Probe asks the target what it offers and whether its cache could be used, by every way it allows.
// Nothing on the target is changed. What is found wrong stands in the Probe; the error is for a
// target that could not be asked.
func (c *Cache) Probe(ctx context.Context) (*Probe, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &Probe{Free: -1, Inodes: -1}
	exec := c.way == nil || c.way.name() == "exec"
	var f *facts
	var cache error
	if exec {
		p.Cache, f, cache, p.Exec = c.probeExec(ctx)
	} else {
		p.Exec = errors.New("commands are not to be used")
		if !c.o.NoExec {
			p.Exec = fmt.Errorf("%s has no /bin/sh", display.Said(c.conn.Server()))
		}
	}
	// After the commands, not beside them: SFTP keeps its channel, and a server may open only one.
	p.Extensions, p.Latency, p.Files = c.probeFiles(ctx)
	if err := ctx.Err(); err != nil {
		return nil, side("probe", "on the way to the target", context.Cause(ctx))
	}
	if f != nil {
		p.fill(f)
	}
	switch {
	case p.Exec == nil:
		p.Class, p.Unusable = "exec", cache
		p.Free, p.Inodes, p.ReadOnly = f.free, f.nodes, f.readonly
		if p.Files != nil {
			p.Latency = c.echo(ctx)
		}
	case exec && !isNoExec(p.Exec):
		if lost := over(p.Exec); lost != nil {
			return nil, lost
		}
		p.Unusable = p.Exec // the account runs commands, and they do not do what they should
	case p.Files == nil:
		p.Class = "sftp"
		c.probeCache(ctx, p)
	default:
		if lost := over(p.Exec, p.Files); lost != nil {
			return nil, lost
		}
		p.Unusable = &Error{Op: "probe", Kind: ErrNoAccess, Err: fmt.Errorf("%w; and by SFTP: %w", p.Exec, p.Files),
			Advice: "allow the account to run /bin/sh, or the SFTP subsystem"}
	}
	if p.Skewed && p.Latency > 0 {
		p.Skew += p.Latency / 2
	}
	return p, nil
}

// over returns the one of the errors that says that the connection ended, or nil.
func over(errs ...error) error {
	for _, err := range errs {
		if errors.Is(err, transport.ErrLost) || errors.Is(err, transport.ErrClosed) {
			return err
		}
	}
	return nil
}

func isNoExec(err error) bool {
	_, ok := errors.AsType[*noExecError](err)
	return ok
}

// fill takes over what the target said of itself.
func (p *Probe) fill(f *facts) {
	p.System, p.User, p.Shell, p.Sh, p.Home = f.words["system"], f.words["user"], f.words["shell"], f.words["sh"], f.words["homedir"]
	if f.seen["has"] {
		p.Missing = f.lacks(without + " " + needed)
		if p.SHA256 = f.hash(); p.SHA256 == "" {
			p.Missing = append(p.Missing, hashes()[0])
		}
	}
	p.Versions, p.Zstd = f.says, f.tools["zstd"]
	if f.now > 0 {
		// The clock told whole seconds, and its answer was half a round trip on the way.
		p.Skewed, p.Skew = true, time.Unix(f.now, 0).Add(time.Second/2).Sub(f.heard)
	}
}

// probeExec asks by a command. cache is what is wrong with the cache, and err why no command is used
// there; f is what was learned in either case.
func (c *Cache) probeExec(ctx context.Context) (dir string, f *facts, cache, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	r := &reply{verb: verbProbe, facts: newFacts()}
	err = newExecWay(c.conn, c.o).run(ctx, r, nil, nil)
	f = r.facts
	if e, judged := errors.AsType[*Error](err); judged && e.Kind != ErrReply {
		cache, err = err, nil
	}
	if err == nil {
		if missing := f.lacks(without); len(missing) > 0 {
			err = &noExecError{tool: missing[0]}
		} else if f.hash() == "" {
			err = &noExecError{tool: hashes()[0]}
		}
	}
	return r.root, f, cache, err
}

// probeFiles asks what SFTP there is, and measures a round trip by it.
func (c *Cache) probeFiles(ctx context.Context) ([]string, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	files, err := c.conn.Files(ctx)
	if err != nil {
		return nil, 0, err
	}
	trip, err := median(func() error {
		_, err := files.RealPath(".")
		return err
	})
	return transport.Extensions(files), trip, err
}

// probeCache looks at the cache by SFTP.
func (c *Cache) probeCache(ctx context.Context, p *Probe) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	s, err := newSFTPWay(c.conn, c.o).open(ctx, "probe")
	if err != nil {
		p.Unusable = err
		return
	}
	p.Cache = s.shown
	if err := s.survey(ctx, 0, nil); err != nil {
		p.Unusable = s.ended(err)
		return
	}
	at := s.path.exists(s.root)
	if n, err := s.fs.FreeSpace(at); err == nil {
		p.Free = int64(min(n, 1<<60))
	}
	// Whether the account may write shows for certain only when it does. Of its own directory the
	// mode tells; root may write whatever the mode is.
	info, err := s.fs.Lstat(at)
	if err != nil || !s.modes || !s.path.named {
		return
	}
	uid, _, named := transport.Owner(info)
	if named && uid == s.path.user && uid != 0 && info.Mode().Perm()&0o300 != 0o300 {
		p.ReadOnly = at
	}
}
