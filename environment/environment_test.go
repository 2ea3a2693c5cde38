package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// lab is a host and a server on loopback with the accounts "dev" and "ops".
type lab struct {
	t      *testing.T
	server *transporttest.Server
	home   string // the host's
	cfg    session.Config
}

func newLab(t *testing.T, profileName string) *lab {
	t.Helper()
	server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{{Name: "dev"}, {Name: "ops"}, {Name: "files", NoExec: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	p, err := profile.Load(profileName)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, server: server, home: t.TempDir()}
	if l.home, err = filepath.EvalSymlinks(l.home); err != nil {
		t.Fatal(err)
	}
	store, err := bundle.OpenStore(filepath.Join(l.home, "store"), p.Rules.Limits)
	if err != nil {
		t.Fatal(err)
	}
	files, err := session.NewFiles(filepath.Join(l.home, "conversations"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Profile: p,
		Getenv:  func(name string) string { return map[string]string{"HOME": l.home}[name] },
		Dial: func(ctx context.Context, t transport.Target) (transport.Conn, error) {
			return transport.Dial(ctx, t, transport.Options{ConfigFile: server.ConfigFile()})
		},
	}
	l.cfg = session.Config{Conventions: Conventions(p, profileName), Store: store, Storage: files, Reach: o.Reach}
	return l
}

// skill writes a skill of the text in a collection.
func (l *lab) skill(collection, name, text string) string {
	l.t.Helper()
	dir := filepath.Join(collection, name)
	for file, data := range map[string]string{
		"SKILL.md":          "---\nname: " + name + "\ndescription: does " + name + "\n---\n" + text + "\n",
		"references/a.md":   "reference of " + name + "\n",
		"scripts/check.txt": "check\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755), os.WriteFile(filepath.Join(dir, file), []byte(data), 0o644)); err != nil {
			l.t.Fatal(err)
		}
	}
	return dir
}

func (l *lab) start(target, dir string) *session.Conversation {
	l.t.Helper()
	c, err := session.Start(context.Background(), l.cfg, "", session.Target{Host: target}, dir)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	return c
}

func (l *lab) prompt(c *session.Conversation) session.Prompt {
	l.t.Helper()
	p, err := c.Prompt(context.Background(), session.PromptOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) command(c *session.Conversation, line string) session.Answer {
	l.t.Helper()
	a, err := c.Command(context.Background(), line)
	if err != nil {
		l.t.Fatalf("%s: %v", line, err)
	}
	return a
}

func words(skills []session.PromptSkill) string {
	var out []string
	for _, s := range skills {
		out = append(out, s.Name+":"+s.Scope)
	}
	return strings.Join(out, " ")
}

func TestAConversationOnATargetLoadsWhatIsThereAndWhatIsHere(t *testing.T) {
	l := newLab(t, "berry")
	host := filepath.Join(l.home, ".config/berry/skills")
	l.skill(host, "release", "release it")
	home := l.server.Home("dev")
	work := filepath.Join(home, "w")
	l.skill(filepath.Join(work, ".agents/skills"), "quokka", "feed it")
	l.skill(filepath.Join(home, ".agents/skills"), "remote", "be far")
	if err := os.Mkdir(filepath.Join(work, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := l.start("dev", work)
	for _, line := range []string{"/skill release", "/skill remote", "/skill quokka"} {
		l.command(c, line)
	}
	p := l.prompt(c)
	if got := words(p.Active); got != "release:host remote:user quokka:project" {
		t.Errorf("active: %s", got)
	}
	there, err := os.ReadFile(filepath.Join(p.Active[0].Directory, "references/a.md"))
	if err != nil || string(there) != "reference of release\n" || !strings.HasPrefix(p.Active[0].Directory, home) {
		t.Errorf("%s: %q, %v", p.Active[0].Directory, there, err)
	}
	if p.Active[2].Directory != filepath.Join(work, ".agents/skills/quokka") {
		t.Errorf("the project's skill is at %s", p.Active[2].Directory)
	}
	if err := os.RemoveAll(filepath.Join(home, ".cache")); err != nil {
		t.Fatal(err)
	}
	l.prompt(c)
	if _, err := os.Stat(p.Active[0].Directory); err != nil {
		t.Errorf("a lost copy is not back for the next prompt: %v", err)
	}
	if err := c.Move(context.Background(), session.Target{Host: "ops"}, ""); err != nil {
		t.Fatal(err)
	}
	p = l.prompt(c)
	if words(p.Active) != "release:host" || words(p.Paused) != "remote:user quokka:project" {
		t.Errorf("elsewhere active: %s, paused: %s", words(p.Active), words(p.Paused))
	}
	if !strings.HasPrefix(p.Active[0].Directory, l.server.Home("ops")) {
		t.Errorf("the bundle is at %s", p.Active[0].Directory)
	}
}
