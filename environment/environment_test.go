package environment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
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
	o      Options
}

func newLab(t *testing.T, profileName string) *lab {
	t.Helper()
	server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{{Name: "dev"}, {Name: "ops"}, {Name: "files", NoExec: true}, {Name: "noisy", Noise: "welcome\nto this machine\n"}}})
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
		Dial:    dialer(server),
	}
	l.o = o
	l.cfg = session.Config{Conventions: Conventions(p, profileName), Store: store, Storage: files, Reach: o.Reach}
	return l
}

func dialer(server *transporttest.Server) func(context.Context, transport.Target) (transport.Conn, error) {
	return func(ctx context.Context, t transport.Target) (transport.Conn, error) {
		return transport.Dial(ctx, t, transport.Options{ConfigFile: server.ConfigFile()})
	}
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

func (l *lab) identify(target string, o Options) string {
	l.t.Helper()
	e, err := o.Reach(context.Background(), session.Target{Host: target})
	if err != nil {
		l.t.Fatal(err)
	}
	defer e.Close()
	id, home, err := e.Identify(context.Background())
	if err != nil || !filepath.IsAbs(home) {
		l.t.Fatalf("%s: home %q, %v", target, home, err)
	}
	return id
}

func TestAnEnvironmentIsAMachineAndAccountHoweverItIsReached(t *testing.T) {
	if localMachine() == "" && machineOf(machineFiles()) == "" {
		testenv.Missing(t, "a machine id")
	}
	l := newLab(t, "berry")
	config, err := os.ReadFile(l.server.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	again := l.o
	again.Dial = func(ctx context.Context, t transport.Target) (transport.Conn, error) {
		file := filepath.Join(l.home, "ssh_config")
		err := os.WriteFile(file, []byte(strings.ReplaceAll(string(config), "Host dev", "Host dev again")), 0o600)
		if err != nil {
			return nil, err
		}
		return transport.Dial(ctx, t, transport.Options{ConfigFile: file})
	}
	files := l.o
	files.NoExec = true
	dev := l.identify("dev", l.o)
	if !strings.HasPrefix(dev, "machine:") {
		t.Errorf("the machine is not known: %s", dev)
	}
	for what, id := range map[string]string{"again": l.identify("dev", l.o), "by another alias": l.identify("again", again), "by SFTP": l.identify("dev", files)} {
		if id != dev {
			t.Errorf("%s it is %s, not %s", what, id, dev)
		}
	}
	seen := map[string]string{dev: "dev"}
	for _, other := range []string{"ops", "files", "noisy", ""} {
		id := l.identify(other, l.o)
		if seen[id] != "" || !strings.HasPrefix(id, "machine:") {
			t.Errorf("%q is %s, as is %q", other, id, seen[id])
		}
		seen[id] = other
	}
}

func machineOf(files []string) string {
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && machineID(string(data)) != "" {
			return machineID(string(data))
		}
	}
	return ""
}

func TestOnlyAWholeIDNamesAMachine(t *testing.T) {
	for said, want := range map[string]string{
		"3d1219c7c4c5404aaa1f6d2a48adfda4\n":                          "3d1219c7c4c5404aaa1f6d2a48adfda4",
		"3D1219C7-C4C5-404A-AA1F-6D2A48ADFDA4":                        "3d1219c7c4c5404aaa1f6d2a48adfda4",
		`  "IOPlatformUUID" = "3D1219C7-C4C5-404A-AA1F-6D2A48ADFDA4"`: "3d1219c7c4c5404aaa1f6d2a48adfda4",
		"": "", "uninitialized\n": "", "3d1219c7": "", "00000000000000000000000000000000": "", "ffffffff-ffff-ffff-ffff-ffffffffffff": "",
	} {
		if got := machineID(said); got != want {
			t.Errorf("%q: %q; want %q", said, got, want)
		}
	}
	if (account{machine: "3d1219c7c4c5404aaa1f6d2a48adfda4", home: "/home/u"}).id() != "" {
		t.Error("an account without a number is known")
	}
}

// A restarted process believes its journal about the machine, but never shows one what another has.
func TestATargetThatIsAnotherMachineNowIsFoundOut(t *testing.T) {
	l := newLab(t, "berry")
	ctx := context.Background()
	l.skill(filepath.Join(l.home, ".config/berry/skills"), "release", "release it")
	c := l.start("dev", "")
	l.command(c, "/skill release")
	cfg := l.cfg
	cfg.Reach = func(ctx context.Context, t session.Target) (session.Environment, error) {
		return l.o.Reach(ctx, session.Target{Host: "ops"}) // the alias leads elsewhere now
	}
	again, err := session.Open(ctx, cfg, c.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := again.Prompt(ctx, session.PromptOptions{}); !errors.Is(err, session.ErrElsewhere) {
		t.Errorf("%v", err)
	}
}

func TestAnUnreachableTargetIsSaidToBe(t *testing.T) {
	l := newLab(t, "berry")
	ctx := context.Background()
	l.skill(filepath.Join(l.home, ".config/berry/skills"), "release", "release it")
	c := l.start("dev", "")
	l.command(c, "/skill release")
	before := l.prompt(c)
	if err := l.server.Close(); err != nil {
		t.Fatal(err)
	}
	for _, conversation := range []*session.Conversation{c, reopened(t, l, c.ID())} {
		if _, err := conversation.Prompt(ctx, session.PromptOptions{}); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("prompt: %v", err)
		}
		if _, err := conversation.Command(ctx, "/skill release"); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("load: %v", err)
		}
		p, err := conversation.Prompt(ctx, session.PromptOptions{Unverified: true})
		if err != nil || p.Active[0].Directory != before.Active[0].Directory {
			t.Errorf("unverified: %+v, %v", p.Active, err)
		}
	}
}

func reopened(t *testing.T, l *lab, id string) *session.Conversation {
	t.Helper()
	c, err := session.Open(context.Background(), l.cfg, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestAnAccountWithoutCommandsIsReadByFiles(t *testing.T) {
	l := newLab(t, "berry")
	home := l.server.Home("files")
	l.skill(filepath.Join(home, ".agents/skills"), "mine", "words")
	l.skill(filepath.Join(l.home, ".config/berry/skills"), "release", "release it")
	c := l.start("files", "")
	l.command(c, "/skill mine")
	l.command(c, "/skill release")
	p := l.prompt(c)
	if words(p.Active) != "mine:user release:host" || !strings.Contains(p.Text, "Files: SKILL.md, references/a.md, scripts/check.txt") {
		t.Errorf("%s\n%s", words(p.Active), p.Text)
	}
	if err := os.RemoveAll(p.Active[1].Directory); err != nil {
		t.Fatal(err)
	}
	l.prompt(c)
	if _, err := os.Stat(filepath.Join(p.Active[1].Directory, "SKILL.md")); err != nil {
		t.Error(err)
	}
}
