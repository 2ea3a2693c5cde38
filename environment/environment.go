package environment

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
)

// Options say how environments are reached. Profile must be set.
type Options struct {
	Profile *profile.Profile
	// Getenv looks up a variable of this machine; nil is os.Getenv.
	Getenv func(string) string
	// Dial connects to a target that is not this machine; nil does what ssh would.
	Dial func(context.Context, transport.Target) (transport.Conn, error)
	// NoExec keeps to SFTP.
	NoExec bool
	// Believed and Published remember what is on a target between processes, see remote.Options:
	// Published is told what is there, whole. Both may be nil.
	Believed  func(transport.Target, bundle.Digest) bool
	Published func(transport.Target, []bundle.Digest)
	// Log receives what is found out on the way; nil discards it.
	Log *slog.Logger
}

// Conventions returns what a profile says to a conversation. name is the one that it was loaded by.
func Conventions(p *profile.Profile, name string) session.Conventions {
	return session.Conventions{
		Profile: name, Rules: p.Rules, Policy: p.Policy(false),
		Limits: session.Limits{Active: p.Limits.Active, Session: p.Limits.Session, Reference: p.Limits.Reference},
		Tools:  session.Tools{List: p.Tools.List, Load: p.Tools.Load, Unload: p.Tools.Unload, Reference: p.Tools.Reference},
	}
}

// Reach reaches a target, for session.Config.
func (o Options) Reach(ctx context.Context, t session.Target) (session.Environment, error) {
	if t.Local() {
		return New(transport.Local(), t, o)
	}
	dial := o.Dial
	if dial == nil {
		dial = func(ctx context.Context, t transport.Target) (transport.Conn, error) {
			return transport.Dial(ctx, t, transport.Options{Log: o.Log})
		}
	}
	conn, err := dial(ctx, transport.Target(t))
	if err != nil {
		return nil, unavailable(ctx, t, err)
	}
	e, err := New(conn, t, o)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return e, nil
}

// Environment is an environment that was reached.
type Environment struct {
	o      Options
	target session.Target
	conn   transport.Conn
	cache  *remote.Cache

	asking   chan struct{} // one token: who asks which machine it is
	id, home string

	mu    sync.Mutex
	there map[bundle.Digest]bool // published by this Environment
}

// New returns the environment that conn leads to; t is how it was named, and conn leads to this machine
// where t is. It asks nothing yet. The machine is asked once which it is, so conn must lead to the same one
// for as long as the Environment is open, whatever it connects anew, as a transport.Lazy does. Closing the
// Environment closes conn.
func New(conn transport.Conn, t session.Target, o Options) (*Environment, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	e := &Environment{o: o, target: t, conn: conn, asking: make(chan struct{}, 1), there: make(map[bundle.Digest]bool)}
	var err error
	e.cache, err = remote.Open(conn, remote.Options{Dir: o.Profile.Cache, NoExec: o.NoExec, Believed: e.believed, Log: o.Log})
	return e, err
}

// Close closes the connection.
func (e *Environment) Close() error { return e.conn.Close() }

func (e *Environment) believed(d bundle.Digest) bool {
	e.mu.Lock()
	there := e.there[d]
	e.mu.Unlock()
	return there || e.o.Believed != nil && e.o.Believed(transport.Target(e.target), d)
}

// unavailable gives an error its kind where the machine did not answer.
func unavailable(ctx context.Context, t session.Target, err error) error {
	if _, ok := errors.AsType[*transport.Error](err); !ok || ctx.Err() != nil || errors.Is(err, session.ErrUnavailable) {
		return err
	}
	return &session.Error{Code: session.ErrUnavailable, About: t.String(), What: "the conversation's machine cannot be used", Err: err}
}

// Collections implements session.Environment. The host and a target are asked at the same time.
func (e *Environment) Collections(ctx context.Context, dir string) (*session.Collections, error) {
	out := &session.Collections{}
	if e.target.Local() {
		q, qerr := e.o.Profile.LocalQuery(e.o.Getenv, dir)
		l, err := ReadHere(ctx, q)
		out.Listings, out.Diagnostics = []*discovery.Listing{l}, e.enabledProblem(qerr)
		return out, err
	}
	q, qerr := e.o.Profile.HostQuery(e.o.Getenv)
	out.Diagnostics = e.enabledProblem(qerr)
	var here, there *discovery.Listing
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		here, err = ReadHere(gctx, q)
		return err
	})
	g.Go(func() (err error) {
		q := e.o.Profile.EnvironmentQuery(dir)
		if len(q.Roots) == 0 {
			there = &discovery.Listing{Dir: dir}
			return nil
		}
		there, err = e.cache.Collections(gctx, q)
		return unavailable(gctx, e.target, err)
	})
	err := g.Wait()
	out.Listings = []*discovery.Listing{here, there}
	return out, err
}

// ReadHere asks this machine for its collections.
func ReadHere(ctx context.Context, q discovery.Query) (*discovery.Listing, error) {
	files, err := transport.Local().Files(ctx)
	if err != nil {
		return nil, err
	}
	q.Dir = filepath.ToSlash(q.Dir)
	return discovery.Read(ctx, files, q)
}

// enabledProblem tells why the roots that a file enables are not among those that were asked for.
func (e *Environment) enabledProblem(err error) []discovery.Diagnostic {
	if err == nil {
		return nil
	}
	machine := ""
	if !e.target.Local() {
		machine = discovery.OnHost
	}
	return []discovery.Diagnostic{e.o.Profile.EnabledProblem(e.o.Getenv, machine, err)}
}

// Skill implements session.Environment.
func (e *Environment) Skill(ctx context.Context, dir string) (*session.Found, error) {
	files, err := e.conn.Files(ctx)
	if err != nil {
		return nil, unavailable(ctx, e.target, err)
	}
	src, d, err := OpenSkill(files, dir, e.o.Profile.Rules)
	if err != nil {
		return nil, unavailable(ctx, e.target, err)
	}
	defer src.Close()
	found := &session.Found{Path: path.Clean(dir)}
	found.Data, err = src.ReadSkillFile(ctx, e.o.Profile.Rules)
	if lost := d.Alive(); lost != nil {
		return nil, unavailable(ctx, e.target, lost)
	}
	if err != nil {
		return nil, err
	}
	found.Files, found.More = d.list(e.o.Profile.Rules.LeaveOut)
	return found, nil
}

// list returns the paths of a skill's files and links, in order.
func (d *Distant) list(leaveOut []string) (files []string, more int) {
	for p, info := range d.infos {
		if info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0 {
			if !slices.Contains(leaveOut, path.Base(p)) {
				files = append(files, p)
			}
		}
	}
	slices.Sort(files)
	if n := len(files) - session.MaxFilesListed; n > 0 {
		return files[:session.MaxFilesListed], n
	}
	return files, 0
}

// Publish implements session.Environment.
func (e *Environment) Publish(ctx context.Context, bundles ...*bundle.Bundle) ([]string, error) {
	results, err := e.cache.Publish(ctx, bundles...)
	if err != nil {
		return nil, unavailable(ctx, e.target, err)
	}
	paths := make([]string, len(results))
	var there []bundle.Digest
	for i, r := range results {
		if r.Err != nil {
			return nil, unavailable(ctx, e.target, r.Err)
		}
		paths[i], there = r.Path, append(there, r.Digest)
	}
	e.mu.Lock()
	for _, d := range there {
		e.there[d] = true
	}
	e.mu.Unlock()
	if e.o.Published != nil {
		e.o.Published(transport.Target(e.target), there)
	}
	return paths, nil
}
