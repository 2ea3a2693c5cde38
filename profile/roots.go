package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Root is a place where skills are found, or several that count as one.
type Root struct {
	// Scope is what kind of place it is: project, host, user, enabled, managed, or a word of the
	// profile's own.
	Scope string `yaml:"scope"`
	// On says which machine it is on.
	On Machine `yaml:"on"`
	// Places are where it is. On the host, in the order of preference, see Locate. In the
	// environment it is one place, below that account's home directory, ~/.agents/skills, or below
	// the working directory, .agents/skills.
	Places []string `yaml:"places"`
	// EnabledBy are the places, in the order of preference, of the file that lists the root's
	// directories, see Enabled. A root has either this or Places.
	EnabledBy []string `yaml:"enabledBy"`
	// Walk looks also above the working directory, as discovery.Root says.
	Walk Walk `yaml:"walk"`
	// Trust hides the root's skills until its repository is trusted.
	Trust bool `yaml:"trust"`
	// Import makes this the root that skills are imported into.
	Import bool `yaml:"import"`
	// Entries is how many entries of each of its directories are looked at.
	Entries int `yaml:"entries"`
}

// Machine is one of the two that a conversation has to do with.
type Machine string

// The machines.
const (
	Host        Machine = "host"        // the one that the harness runs on
	Environment Machine = "environment" // the one that the conversation works on, often the same
)

// Walk is how far up a root is looked for.
type Walk string

// ToRepository looks in the directories above through the root of the repository; outside of one, in
// the working directory alone.
const ToRepository Walk = "repository"

// maxRoots bounds how many places a profile has a machine look at.
const maxRoots = 32

// checkRoots finds what keeps roots from being looked for.
func checkRoots(roots []Root) error {
	if len(roots) > maxRoots {
		return wrong(fmt.Errorf("roots: %d of them; at most %d are looked at", len(roots), maxRoots), "roots", strconv.Itoa(maxRoots))
	}
	imports, files := 0, 0
	for i, r := range roots {
		if key, err := r.check(); err != nil {
			return wrong(fmt.Errorf("roots: number %d (%s): %w", i+1, display.Quote(r.Scope), err), "roots", strconv.Itoa(i), key)
		}
		if r.Import {
			imports++
		}
		if len(r.EnabledBy) > 0 {
			files++
		}
		if imports > 1 || files > 1 {
			return wrong(errors.New("roots: at most one is for imports, and one enabled by a file"), "roots", strconv.Itoa(i))
		}
	}
	return nil
}

// check says what is wrong with a root, and which key it is about.
func (r Root) check() (key string, err error) {
	switch {
	case r.Scope == "":
		return "scope", errors.New("scope is missing")
	case r.On != Host && r.On != Environment:
		return "on", fmt.Errorf("on is %q: it is host or environment", r.On)
	case r.Entries <= 0 || r.Entries > discovery.MaxListed:
		return "entries", fmt.Errorf("entries is %d: it is 1 to %d", r.Entries, discovery.MaxListed)
	case (len(r.Places) == 0) == (len(r.EnabledBy) == 0):
		return "enabledBy", errors.New("it has either places or enabledBy")
	case r.Walk != "" && r.Walk != ToRepository:
		return "walk", fmt.Errorf("walk is %q: it is repository, or left out", r.Walk)
	}
	below, ofHome := "", false
	if r.On == Environment {
		if len(r.EnabledBy) > 0 || r.Import || len(r.Places) != 1 {
			return "places", errors.New("in the environment it has one place, and neither enabledBy nor import")
		}
		below, ofHome = strings.CutPrefix(r.Places[0], "~/")
		if below == "." || !fs.ValidPath(below) || strings.ContainsAny(below, "$~\\") {
			return "places", fmt.Errorf("%q is neither below ~ nor relative, without dots as its elements", r.Places[0])
		}
	}
	switch here := r.On == Host; {
	case (here || ofHome) && r.Walk != "":
		return "walk", errors.New("walk and trust are for places below the working directory")
	case (here || ofHome) && r.Trust:
		return "trust", errors.New("walk and trust are for places below the working directory")
	case here && r.Import && len(r.Places) == 0:
		return "import", errors.New("import needs places")
	case here && len(r.Places) > 0:
		return "places", checkPlaces(r.Places)
	case here:
		return "enabledBy", checkPlaces(r.EnabledBy)
	}
	return "", nil
}

// HostQuery asks this machine for the collections that are on it whatever the conversation's
// environment is. getenv looks a variable up. The error is of a file that lists enabled roots; the
// query then has the others.
func (p *Profile) HostQuery(getenv func(string) string) (discovery.Query, error) {
	return p.query(getenv, "", Host)
}

// EnvironmentQuery asks the machine that a conversation runs on. dir is its working directory there,
// an absolute path, discovery.Home, or "" for none.
func (p *Profile) EnvironmentQuery(dir string) discovery.Query {
	q, _ := p.query(nil, dir, Environment)
	return q
}

// LocalQuery asks this machine for both, for a conversation that runs here.
func (p *Profile) LocalQuery(getenv func(string) string, dir string) (discovery.Query, error) {
	return p.query(getenv, dir, Host, Environment)
}

func (p *Profile) query(getenv func(string) string, dir string, machines ...Machine) (discovery.Query, error) {
	q := discovery.Query{Dir: dir}
	var failed error
	for i, r := range p.Roots {
		for _, m := range machines {
			if r.On != m {
				continue
			}
			paths, err := r.paths(getenv)
			failed = errors.Join(failed, err)
			for _, at := range paths {
				q.Roots = append(q.Roots, discovery.Root{ID: i, Path: at, Walk: r.Walk == ToRepository, Entries: r.Entries})
			}
		}
	}
	return q, failed
}

// paths returns where a root is to be looked for, none where the environment names no place.
func (r Root) paths(getenv func(string) string) ([]string, error) {
	if r.On == Environment {
		return []string{path.Clean(r.Places[0])}, nil
	}
	if len(r.EnabledBy) > 0 {
		file, err := Locate(r.EnabledBy, getenv)
		if err != nil {
			return nil, nil
		}
		enabled, err := LoadEnabled(file)
		if err != nil {
			return nil, err
		}
		var paths []string
		for _, at := range enabled.Paths() {
			paths = append(paths, filepath.ToSlash(at))
		}
		return paths, nil
	}
	at, err := Locate(r.Places, getenv)
	if err != nil {
		return nil, nil
	}
	return []string{filepath.ToSlash(at)}, nil
}

// Policy is what the catalog's making needs to know of the profile. trusted says that the
// conversation's repository is.
func (p *Profile) Policy(trusted bool) discovery.Policy {
	policy := discovery.Policy{
		Trusted: trusted, Skills: p.Limits.Skills, NoLinks: p.Rules.NoLinks,
		SkillSeverities: p.Severities, Severities: p.DiscoverySeverities,
	}
	for _, r := range p.Roots {
		policy.Roots = append(policy.Roots, discovery.RootPolicy{
			Scope: r.Scope, OnHost: r.On == Host, NeedsTrust: r.Trust, Entries: r.Entries,
		})
	}
	return policy
}

// ErrNoRoot is the error of a profile that has no root of the kind that is asked for.
var ErrNoRoot = errors.New("the profile has no such root")

// EnabledFile returns where the file is that lists enabled roots; ErrNoRoot where the profile has no
// root that is enabled so.
func (p *Profile) EnabledFile(getenv func(string) string) (string, error) {
	for _, r := range p.Roots {
		if len(r.EnabledBy) > 0 {
			return Locate(r.EnabledBy, getenv)
		}
	}
	return "", fmt.Errorf("%s: %w: none is enabled by a file", display.Quote(p.Name), ErrNoRoot)
}

// MendEnabled is the hint that mends a file of enabled roots.
const MendEnabled = "mend it, or move it away and enable the roots again"

// EnabledProblem is the diagnostic of an error of HostQuery or LocalQuery, which says that the file of
// enabled roots cannot be used. machine is the diagnostic's.
func (p *Profile) EnabledProblem(getenv func(string) string, machine string, err error) discovery.Diagnostic {
	file, _ := p.EnabledFile(getenv)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // the path stands beside it
	}
	return discovery.Diagnostic{
		Severity: skill.Error, Code: string(discovery.Unreadable), Machine: machine, Path: file,
		Message: "the file of enabled roots cannot be used: " + display.Quote(err.Error()),
		Hint:    MendEnabled,
	}
}

// ImportRoot returns the directory that skills are imported into; ErrNoRoot where the profile has none.
func (p *Profile) ImportRoot(getenv func(string) string) (string, error) {
	for _, r := range p.Roots {
		if r.Import {
			return Locate(r.Places, getenv)
		}
	}
	return "", fmt.Errorf("%s: %w: none is for imports", display.Quote(p.Name), ErrNoRoot)
}
