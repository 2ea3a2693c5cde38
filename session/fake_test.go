package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

// world is a host with skills and machines with skills of their own, all in memory but the host's.
type world struct {
	t    testing.TB
	host string // the host's collection
	cfg  Config

	mu       sync.Mutex
	machines map[string]*machine // by target host; "" is this machine
}

// machine is one environment.
type machine struct {
	id      string
	skills  map[string]string // the SKILL.md by the skill's directory
	trouble error             // what every question fails with
	publish error             // what publishing fails with
	has     map[bundle.Digest]bool
	asked   int
}

const (
	userRoot    = "/home/u/.agents/skills"
	projectRoot = "/proj/.agents/skills"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	store, err := bundle.OpenStore(filepath.Join(dir, "store"), bundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, host: filepath.Join(dir, "host"), machines: map[string]*machine{}}
	for name, id := range map[string]string{"": "machine:here", "a": "machine:a", "a-again": "machine:a", "b": "machine:b"} {
		w.machines[name] = &machine{id: id, skills: map[string]string{}, has: map[bundle.Digest]bool{}}
	}
	w.machines["a-again"] = w.machines["a"]
	w.cfg = Config{
		Conventions: Conventions{
			Profile: "berry",
			Policy: discovery.Policy{Roots: []discovery.RootPolicy{
				{Scope: "project", NeedsTrust: true, Entries: 256}, {Scope: "host", OnHost: true, Entries: 256}, {Scope: "user", Entries: 256},
			}},
			Limits: Limits{Active: 128 << 10},
			Tools:  Tools{Load: "load_skill", List: "list_skills", Unload: "unload_skill"},
		},
		Store: store, Storage: new(Memory), Reach: w.reach,
	}
	return w
}

func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: does " + name + "\n---\n" + body
}

// onHost writes a skill of the host.
func (w *world) onHost(name, text string) {
	w.t.Helper()
	at := filepath.Join(w.host, name, "SKILL.md")
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// on writes a skill of a machine.
func (w *world) on(machine, root, name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machines[machine].skills[path.Join(root, name)] = text
}

func (w *world) reach(_ context.Context, t Target) (Environment, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machines[t.Host]
	if m == nil {
		return nil, &Error{Code: ErrUnavailable, About: t.String(), What: "no such machine"}
	}
	return &fakeEnv{w, m}, m.trouble
}

type fakeEnv struct {
	w *world
	m *machine
}

func (e *fakeEnv) begin() (func(), error) {
	e.w.mu.Lock()
	e.m.asked++
	return e.w.mu.Unlock, e.m.trouble
}

func (e *fakeEnv) Close() error { return nil }

func (e *fakeEnv) Identify(context.Context) (string, string, error) {
	end, err := e.begin()
	defer end()
	return e.m.id, "/home/u", err
}

func (e *fakeEnv) Collections(ctx context.Context, dir string) (*Collections, error) {
	end, err := e.begin()
	defer end()
	if err != nil {
		return nil, err
	}
	host := &discovery.Listing{Collections: []discovery.Collection{{Root: 1, Path: filepath.ToSlash(e.w.host), Real: filepath.ToSlash(e.w.host)}}}
	entries, _ := os.ReadDir(e.w.host)
	for _, d := range entries {
		data, err := os.ReadFile(filepath.Join(e.w.host, d.Name(), "SKILL.md"))
		if err == nil {
			c := &host.Collections[0]
			c.Entries = append(c.Entries, entry(c.Path, d.Name(), string(data)))
		}
	}
	there := &discovery.Listing{Dir: dir, Home: "/home/u"}
	if dir == "/proj" || strings.HasPrefix(dir, "/proj/") {
		there.Repository = "/proj"
	}
	for root, at := range map[int]string{0: projectRoot, 2: userRoot} {
		c := discovery.Collection{Root: root, Path: at, Real: at}
		for p, text := range e.m.skills {
			if path.Dir(p) == at {
				c.Entries = append(c.Entries, entry(at, path.Base(p), text))
			}
		}
		if root != 0 || there.Repository != "" {
			there.Collections = append(there.Collections, c)
		}
	}
	return &Collections{Listings: []*discovery.Listing{host, there}}, nil
}

func entry(dir, name, text string) discovery.Entry {
	e := discovery.Entry{Name: name, Real: path.Join(dir, name), Size: int64(len(text))}
	if len(text) > skill.MaxFileBytes {
		e.Problem = discovery.TooLarge
	} else {
		e.Head = []byte(text)[:skill.Head([]byte(text))]
	}
	return e
}

func (e *fakeEnv) Skill(_ context.Context, dir string) (*Found, error) {
	end, err := e.begin()
	defer end()
	if err != nil {
		return nil, err
	}
	text, ok := e.m.skills[dir]
	if !ok {
		return nil, os.ErrNotExist
	}
	return &Found{Data: []byte(text), Path: dir, Files: []string{"SKILL.md"}}, nil
}

func (e *fakeEnv) Publish(_ context.Context, bundles ...*bundle.Bundle) ([]string, error) {
	end, err := e.begin()
	defer end()
	if err := errors.Join(err, e.m.publish); err != nil {
		return nil, err
	}
	var out []string
	for _, b := range bundles {
		e.m.has[b.Manifest.Digest()] = true
		out = append(out, path.Join("/home/u/.cache", b.Manifest.Digest().String(), b.Manifest.Name()))
	}
	return out, nil
}

func (w *world) start(target, dir string) *Conversation {
	w.t.Helper()
	c, err := Start(context.Background(), w.cfg, "", Target{Host: target}, dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) load(c *Conversation, name string) *Event {
	w.t.Helper()
	e, err := c.Load(context.Background(), name)
	if err != nil {
		w.t.Fatalf("load %s: %v", name, err)
	}
	return e
}

func (w *world) move(c *Conversation, target, dir string) {
	w.t.Helper()
	if err := c.Move(context.Background(), Target{Host: target}, dir); err != nil {
		w.t.Fatal(err)
	}
}

// show is a state on one line.
func show(s State) string {
	list := func(events []*Event) string {
		var out []string
		for _, e := range events {
			out = append(out, e.Skill.Name+":"+e.Skill.Scope)
		}
		return strings.Join(out, " ")
	}
	return fmt.Sprintf("active[%s] shadowed[%s] paused[%s]", list(s.Active), list(s.Shadowed), list(s.Paused))
}

func (w *world) state(c *Conversation) string {
	w.t.Helper()
	s, err := c.State(context.Background(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return show(s)
}

func (w *world) head(c *Conversation) string {
	w.t.Helper()
	l, err := c.Log(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return l.Head
}

func (w *world) prompt(c *Conversation) Prompt {
	w.t.Helper()
	p, err := c.Prompt(context.Background(), PromptOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}
