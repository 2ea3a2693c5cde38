package profile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/skill"
)

func load(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestBerryLooksOnBothMachines(t *testing.T) {
	abs := t.TempDir()
	at := func(rest string) string { return filepath.ToSlash(filepath.Join(abs, rest)) }
	p := load(t, "berry")
	project := discovery.Root{ID: 0, Path: ".agents/skills", Walk: true, Entries: 256}
	user := discovery.Root{ID: 2, Path: "~/.agents/skills", Entries: 256}
	for _, c := range []struct {
		vars map[string]string
		host string
	}{
		{map[string]string{"HOME": abs}, at(".config/berry/skills")},
		{map[string]string{"HOME": abs, "XDG_CONFIG_HOME": abs + "/x"}, at("x/berry/skills")},
		{map[string]string{"HOME": abs, "XDG_CONFIG_HOME": "relative"}, at(".config/berry/skills")},
	} {
		host := discovery.Root{ID: 1, Path: c.host, Entries: 256}
		q, err := p.HostQuery(env(c.vars))
		if want := (discovery.Query{Roots: []discovery.Root{host}}); err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("with %v the host is asked %+v, %v; want %+v", c.vars, q, err, want)
		}
		q, err = p.LocalQuery(env(c.vars), "/w")
		if want := (discovery.Query{Dir: "/w", Roots: []discovery.Root{project, host, user}}); err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("this machine is asked %+v, %v; want %+v", q, err, want)
		}
	}
	if q, want := p.EnvironmentQuery("/w"), (discovery.Query{Dir: "/w", Roots: []discovery.Root{project, user}}); !reflect.DeepEqual(q, want) {
		t.Errorf("the environment is asked %+v, want %+v", q, want)
	}
	if q, err := p.HostQuery(env(nil)); err != nil || len(q.Roots) > 0 {
		t.Errorf("without an environment the host is asked %+v, %v", q, err)
	}
	policy := p.Policy(true)
	want := []discovery.RootPolicy{
		{Scope: "project", NeedsTrust: true, Entries: 256}, {Scope: "host", OnHost: true, Entries: 256}, {Scope: "user", Entries: 256},
	}
	if !reflect.DeepEqual(policy.Roots, want) || policy.Skills != 128 || policy.NoLinks || !policy.Trusted || p.Policy(false).Trusted {
		t.Errorf("the policy is %+v", policy)
	}
	if s := policy.Severities; s.Of(discovery.DuplicateName) != skill.Ignore || s.Of(discovery.LinkedTwice) != skill.Ignore {
		t.Error("what is shadowed or linked is a problem")
	}
	if p.Limits != (Limits{Skills: 128, Active: 128 << 10}) || p.Tools != (Tools{Load: "load_skill"}) {
		t.Errorf("limits are %+v, tools %+v", p.Limits, p.Tools)
	}
	if at, err := p.EnabledFile(env(map[string]string{"HOME": abs})); !errors.Is(err, ErrNoRoot) {
		t.Errorf("roots are enabled by %q, %v", at, err)
	}
	if dir, err := p.ImportRoot(env(map[string]string{"HOME": abs})); err != nil || filepath.ToSlash(dir) != at(".config/berry/skills") {
		t.Errorf("skills are imported into %q, %v", dir, err)
	}
}

func TestHeadlessCodeLooksWhereItsDataIs(t *testing.T) {
	abs := t.TempDir()
	at := func(rest string) string { return filepath.ToSlash(filepath.Join(abs, rest)) }
	p := load(t, "headlesscode")
	vars := env(map[string]string{"HOME": abs})
	file, err := p.EnabledFile(vars)
	if err != nil || filepath.ToSlash(file) != at(".local/share/headlesscode/skills-enabled.json") {
		t.Fatalf("the file is %q, %v", file, err)
	}
	for _, root := range []string{"w/.agents/skills", "extra"} {
		if isNew, err := Enable(t.Context(), file, filepath.Join(abs, filepath.FromSlash(root))); err != nil || !isNew {
			t.Fatalf("%v, %v", isNew, err)
		}
	}
	paths := func(getenv func(string) string) (paths []string, ids []int) {
		q, err := p.HostQuery(getenv)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range q.Roots {
			if r.Entries != 512 || r.Walk {
				t.Errorf("asked %+v", r)
			}
			paths, ids = append(paths, r.Path), append(ids, r.ID)
		}
		return paths, ids
	}
	got, ids := paths(vars)
	if want := []string{at("w/.agents/skills"), at("extra"), at(".local/share/headlesscode/skills"), at(".agents/skills")}; !slices.Equal(got, want) || !slices.Equal(ids, []int{0, 0, 1, 2}) {
		t.Errorf("asked %q as %d, want %q", got, ids, want)
	}
	moved := env(map[string]string{"HOME": abs, "HEADLESSCODE_DATA_DIR": filepath.Join(abs, "d")})
	if got, _ := paths(moved); !slices.Equal(got, []string{at("d/skills"), at(".agents/skills")}) {
		t.Errorf("with a data directory asked %q", got)
	}
	if root, err := p.ImportRoot(moved); err != nil || filepath.ToSlash(root) != at("d/skills") {
		t.Errorf("imports go to %q, %v", root, err)
	}
	if q := p.EnvironmentQuery("/w"); len(q.Roots) > 0 {
		t.Errorf("a target is asked %+v", q)
	}
	policy := p.Policy(false)
	if s := policy.Severities; !policy.NoLinks || policy.Skills != 128 || s.Of(discovery.DuplicateName) != skill.Error || s.Of(discovery.LinkedTwice) != skill.Error {
		t.Errorf("the policy is %+v", policy)
	}
	if p.Limits != (Limits{Skills: 128, Session: 4 << 20, Reference: 20_000}) || p.Tools != (Tools{Load: "skill", Reference: "read_skill_reference"}) {
		t.Errorf("limits are %+v, tools %+v", p.Limits, p.Tools)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if q, err := p.HostQuery(vars); err == nil || len(q.Roots) != 2 {
		t.Errorf("with a broken file asked %+v, %v; want the error and the other roots", q, err)
	}
}

func TestEnablingKeepsWhatItDoesNotKnow(t *testing.T) {
	abs := t.TempDir()
	file := filepath.Join(abs, "new", "skills-enabled.json")
	root := filepath.Join(abs, "a & b")
	isNew, err := Enable(t.Context(), file, root+string(filepath.Separator)+".")
	if err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	if isNew, err := Enable(t.Context(), file, root); err != nil || isNew {
		t.Errorf("again: %v, %v", isNew, err)
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "a & b") {
		t.Errorf("%q, %v", data, err)
	}
	const other = `{"note": {"by": "another"}, "roots": ["relative", {"path": "/x"}, 7], "version": 1.50}`
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		do      func(context.Context, string, string) (bool, error)
		changes bool
		roots   []string
	}{{Enable, true, []string{root}}, {Enable, false, []string{root}}, {Disable, true, nil}, {Disable, false, nil}} {
		changed, err := step.do(t.Context(), file, root)
		e, lerr := LoadEnabled(file)
		if err != nil || lerr != nil || changed != step.changes || !slices.Equal(e.Paths(), step.roots) {
			t.Fatalf("%v, %v, %v: %q", changed, err, lerr, e.Paths())
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range []string{`"by": "another"`, `"relative"`, `"path": "/x"`, "7", "1.50"} {
			if !strings.Contains(string(data), kept) {
				t.Errorf("%s is lost: %s", kept, data)
			}
		}
	}
}

func TestBrokenListOfRootsIsLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skills-enabled.json")
	root := filepath.Dir(file)
	for _, text := range []string{"", "{", "[]", `{"roots": "x"}`, "\x1b[2J", `{"roots": [` + strings.Repeat(" ", maxEnabledBytes) + `]}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Enable(t.Context(), file, root); err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.20q: %v", text, err)
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != text {
			t.Errorf("%.20q became %.20q, %v", text, data, err)
		}
	}
	for text, says := range map[string]string{
		"": "it is empty", " \n": "it is empty", "[]": "it is not an object", `{"roots": "x"}`: "roots is not a list", "{\n\"a\": 1,\n}": "line 3:",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadEnabled(file); !errors.Is(err, ErrNotRoots) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%q: %v, want it to say %q", text, err, says)
		}
	}
	for _, bad := range []string{"relative", "", root + "/\xff"} {
		if _, err := Enable(t.Context(), file, bad); err == nil {
			t.Errorf("%q was enabled", bad)
		}
	}
}

func TestTwoWhoEnableAtOnceLoseNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "skills-enabled.json")
	var wg sync.WaitGroup
	const n = 20
	for i := range n {
		wg.Go(func() {
			if isNew, err := Enable(t.Context(), file, filepath.Join(dir, string(rune('a'+i)))); err != nil || !isNew {
				t.Errorf("%v, %v", isNew, err)
			}
		})
	}
	wg.Wait()
	if e, err := LoadEnabled(file); err != nil || len(e.Paths()) != n {
		t.Errorf("%d roots, %v", len(e.Paths()), err)
	}
}

func TestWhoWaitsToEnableCanBeStopped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skills-enabled.json")
	other := flock.New(file + ".lock")
	if err := other.Lock(); err != nil {
		t.Fatal(err)
	}
	defer other.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Enable(ctx, file, filepath.Dir(file)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was enabled all the same")
	}
}

func TestAListOfRootsThatIsALinkStaysOne(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "skills-enabled.json")
	if err := errors.Join(os.WriteFile(real, []byte(`{"mine": 1}`), 0o600), os.Symlink("real.json", link)); err != nil {
		testenv.Missing(t, "a file system with links: "+err.Error())
	}
	if _, err := Enable(t.Context(), link, dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if e, err := LoadEnabled(real); err != nil || !slices.Equal(e.Paths(), []string{dir}) {
		t.Errorf("%v, %v", e, err)
	}
}

func TestAListOfRootsIsAFile(t *testing.T) {
	if _, err := LoadEnabled(t.TempDir()); !errors.Is(err, ErrNotRoots) {
		t.Errorf("%v", err)
	}
}
