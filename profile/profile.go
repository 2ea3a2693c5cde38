// Package profile describes a harness's conventions as data: what a skill directory may hold, how
// severe its problems are, and where bundles are kept. Two profiles are built in, berry and
// headlesscode; a user's own is a YAML file of the same form, and nothing else in Punnet knows a
// harness by name.
package profile

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Version is the version of the file's form that this package reads.
const Version = 1

// MaxFileBytes bounds a profile's file.
const MaxFileBytes = 64 << 10

// The largest limits that a profile can set for a bundle. A path of more levels is longer than
// systems open.
const (
	maxEntries = 1_000_000
	maxLevels  = 1000
	maxBytes   = 1 << 40
)

// Default is the name of the profile that is used where none is named.
const Default = "berry"

//go:embed berry.yaml headlesscode.yaml
var builtin embed.FS

// Profile is one harness's conventions.
type Profile struct {
	Name string
	// Rules say what of a skill directory becomes a bundle.
	Rules bundle.Rules
	// Severities say how much each problem of a SKILL.md counts, and DiscoverySeverities each of a
	// collection.
	Severities          skill.Severities
	DiscoverySeverities discovery.Severities
	// Store holds the places of the host store in the order of preference; see Locate.
	Store []string
	// Roots are the places where skills are found, the one whose skills win first.
	Roots []Root
	// Limits bound what a conversation has at a time.
	Limits Limits
	// Tools are the tools that the model calls.
	Tools Tools
	// Cache is the place of a target's cache below its cache directory, with slashes.
	Cache string
}

// Limits bound what a conversation has at a time; 0 is no limit.
type Limits struct {
	Skills    int   `yaml:"skills"`    // skills in its catalog
	Active    int64 `yaml:"active"`    // bytes of all active instructions
	Session   int64 `yaml:"session"`   // bytes of all text that is captured when it begins
	Reference int   `yaml:"reference"` // characters of one reference
}

// Tools are the names of the tools that the model calls; "" is a tool that the harness does not have.
type Tools struct {
	List      string `yaml:"list"`      // shows the catalog
	Load      string `yaml:"load"`      // loads a skill's instructions
	Unload    string `yaml:"unload"`    // takes them back
	Reference string `yaml:"reference"` // reads a text of a loaded skill
}

// Builtin returns the names of the built-in profiles, sorted.
func Builtin() []string { return []string{"berry", "headlesscode"} }

// Load returns the profile that a --profile flag names: a built-in one, or a file where the name
// has a slash or an ending of .yaml or .yml. "" is Default.
func Load(name string) (*Profile, error) {
	if name == "" {
		name = Default
	}
	if slices.Contains(Builtin(), name) {
		data, err := builtin.ReadFile(name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
		return decode(data) // its shape is our own
	}
	if ext := filepath.Ext(name); !strings.ContainsAny(name, `/\`) && ext != ".yaml" && ext != ".yml" {
		return nil, fmt.Errorf("no profile %s: it is one of %s, or a YAML file", display.Quote(name), strings.Join(Builtin(), ", "))
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("profile %s: not a file of at most %d KiB", display.Quote(name), MaxFileBytes>>10)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	p, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", display.Quote(name), err)
	}
	return p, nil
}

// document is the form of the file.
type document struct {
	Version    int                      `yaml:"version"`
	Name       string                   `yaml:"name"`
	Store      []string                 `yaml:"store"`
	Cache      string                   `yaml:"cache"`
	Roots      []Root                   `yaml:"roots"`
	Limits     Limits                   `yaml:"limits"`
	Bundle     rules                    `yaml:"bundle"`
	Tools      Tools                    `yaml:"tools"`
	Severities map[string]severityField `yaml:"severities"`
}

type rules struct {
	Entries        int      `yaml:"entries"`
	Levels         int      `yaml:"levels"`
	Bytes          int64    `yaml:"bytes"`
	Files          int      `yaml:"files"`
	FileBytes      int64    `yaml:"fileBytes"`
	LeaveOut       []string `yaml:"leaveOut"`
	FollowLinks    bool     `yaml:"followLinks"`
	TextOnly       bool     `yaml:"textOnly"`
	LeaveOutExcess bool     `yaml:"leaveOutExcess"`
}

// severityField is a skill.Severity that yaml.v3 reads through its text.
type severityField struct{ skill.Severity }

func (s *severityField) UnmarshalYAML(n *yaml.Node) error {
	return s.UnmarshalText([]byte(n.Value))
}

// Parse reads a profile's file. Errors name the line; unknown and repeated keys are errors.
func Parse(data []byte) (*Profile, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("profile: larger than %d KiB", MaxFileBytes>>10)
	}
	if err := checkShape(data); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return decode(data)
}

// decode reads a profile's file whose shape is settled.
func decode(data []byte) (*Profile, error) {
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("profile: %w", PlainYAMLError(err))
	}
	p, err := d.profile()
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return p, nil
}

// maxNodes bounds what the decoder is given: its report of repeated keys takes time and memory by
// the square of their number.
const maxNodes = 2000

// checkShape refuses what would make decoding costly, before it is decoded.
func checkShape(data []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return PlainYAMLError(err)
	}
	count := 0
	var walk func(n *yaml.Node) error
	walk = func(n *yaml.Node) error {
		if count++; count > maxNodes {
			return fmt.Errorf("line %d: more than %d values", n.Line, maxNodes)
		}
		if n.Kind == yaml.AliasNode || n.Anchor != "" {
			return fmt.Errorf("line %d: anchors and aliases are not used here", n.Line)
		}
		for _, c := range n.Content {
			if err := walk(c); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(&n)
}

// notFound is compiled when something is wrong, and not by every command as it starts.
var notFound = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`field (\S+) not found in type \S+`)
})

// PlainYAMLError returns the words of an error of the YAML decoder, without its name and the names of
// Go types, safe to show.
func PlainYAMLError(err error) error {
	msg := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ", "")
	msg = notFound().ReplaceAllString(msg, "unknown key $1")
	return errors.New(display.Quote(strings.ReplaceAll(msg, "\n  ", "; ")))
}

func (d *document) profile() (*Profile, error) {
	b := d.Bundle
	switch {
	case d.Version != Version:
		return nil, fmt.Errorf("version is %d, and this punnet reads version %d", d.Version, Version)
	case d.Name == "":
		return nil, errors.New("name is missing")
	case len(d.Store) == 0:
		return nil, errors.New("store is missing: where bundles are kept on this machine")
	case !isCachePath(d.Cache):
		return nil, fmt.Errorf("cache %q is not a relative path of letters, digits, . _ - and single slashes", d.Cache)
	case b.Entries < 0 || b.Levels < 0 || b.Bytes < 0 || b.Files < 0 || b.FileBytes < 0:
		return nil, errors.New("bundle: a limit is negative")
	case b.Entries > maxEntries || b.Levels > maxLevels || b.Files > maxEntries || b.Bytes > maxBytes || b.FileBytes > maxBytes:
		return nil, fmt.Errorf("bundle: a limit is over what can be: %d entries and files, %d levels, %d bytes", maxEntries, maxLevels, int64(maxBytes))
	}
	if err := checkPlaces(d.Store); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := cmp.Or(checkRoots(d.Roots), d.Limits.check(), d.Tools.check()); err != nil {
		return nil, err
	}
	for _, name := range b.LeaveOut {
		if err := bundle.CheckName(name); err != nil {
			return nil, fmt.Errorf("bundle: leaveOut: %q: %w", name, err)
		}
		if name == bundle.SkillFile {
			return nil, fmt.Errorf("bundle: leaveOut: %s is what makes a skill", name)
		}
	}
	p := &Profile{
		Name: d.Name, Store: d.Store, Cache: d.Cache, Roots: d.Roots, Limits: d.Limits, Tools: d.Tools,
		Severities: skill.Severities{}, DiscoverySeverities: discovery.Severities{},
		Rules: bundle.Rules{
			Limits:   bundle.Limits{Entries: b.Entries, Levels: b.Levels, Bytes: b.Bytes, Files: b.Files, FileBytes: b.FileBytes},
			LeaveOut: b.LeaveOut, NoLinks: !b.FollowLinks, TextOnly: b.TextOnly, LeaveOutExcess: b.LeaveOutExcess,
		},
	}
	for code, s := range d.Severities {
		own := slices.ContainsFunc(discovery.Codes(), func(c discovery.CodeInfo) bool { return string(c.Code) == code })
		if own {
			p.DiscoverySeverities[discovery.Code(code)] = s.Severity
		}
		// One code is both: a SKILL.md that is too large.
		if !own || slices.ContainsFunc(skill.Codes(), func(c skill.CodeInfo) bool { return string(c.Code) == code }) {
			p.Severities[skill.Code(code)] = s.Severity
		}
	}
	if err := cmp.Or(p.Severities.Check(), p.DiscoverySeverities.Check()); err != nil {
		return nil, fmt.Errorf("severities: %w", err)
	}
	return p, nil
}

func (l Limits) check() error {
	if l.Skills < 0 || l.Active < 0 || l.Session < 0 || l.Reference < 0 {
		return errors.New("limits: one is negative")
	}
	if l.Skills > maxEntries || l.Reference > maxEntries || l.Active > maxBytes || l.Session > maxBytes {
		return fmt.Errorf("limits: one is over what can be: %d skills and characters, %d bytes", maxEntries, int64(maxBytes))
	}
	return nil
}

func (t Tools) check() error {
	taken := make(map[string]bool)
	for _, name := range []string{t.List, t.Load, t.Unload, t.Reference} {
		if name == "" {
			continue
		}
		if !isToolName(name) || taken[name] {
			return fmt.Errorf("tools: %q is no name of up to 64 letters, digits, _ and - that starts with a letter, or it is there twice", name)
		}
		taken[name] = true
	}
	return nil
}

// isToolName holds a tool's name to what model interfaces take.
func isToolName(s string) bool {
	letter := func(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
	return s != "" && len(s) <= 64 && letter(s[0]) && hasOnly(s, "_-")
}

// isCachePath holds a cache's place to what needs no quoting in any shell.
func isCachePath(s string) bool { return fs.ValidPath(s) && hasOnly(s, "._-/") }

// hasOnly reports whether s is of letters, digits and others.
func hasOnly(s, others string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r|0x20 < 'a' || 'z' < r|0x20) && (r < '0' || '9' < r) && !strings.ContainsRune(others, r)
	})
}
