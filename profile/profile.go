// Package profile describes a harness's conventions as data: where its skills are found, what a skill
// directory may hold, how severe its problems are, and where bundles are kept. Two profiles are built
// in, berry and headlesscode; a user's own is a YAML file of the same form, and nothing in Punnet
// decides anything by a harness's name.
package profile

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Version is the version of the file's form that this package reads.
const Version = 1

// MaxFileBytes bounds a profile's file, in bytes.
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
	// Name is the harness's, for messages: nothing is looked up by it.
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
// has a slash or an ending of .yaml or .yml. "" is Default. Errors are Parse's and, wrapped, the file's.
func Load(name string) (*Profile, error) {
	if name == "" {
		name = Default
	}
	if slices.Contains(Builtin(), name) {
		data, err := builtin.ReadFile(name + ".yaml")
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", name, err)
		}
		return decode(data, nil) // its shape is our own
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
	if err := s.UnmarshalText([]byte(n.Value)); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

// Parse reads a profile's file. Errors name the line; unknown and repeated keys are errors.
func Parse(data []byte) (*Profile, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("profile: larger than %d KiB", MaxFileBytes>>10)
	}
	node, err := checkShape(data)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return decode(data, node)
}

// decode reads a profile's file whose shape is settled. node is the same, for the lines of what is wrong.
func decode(data []byte, node *yaml.Node) (*Profile, error) {
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return nil, fmt.Errorf("profile: %w", PlainYAMLError(err))
	}
	p, err := d.profile()
	if err != nil {
		return nil, fmt.Errorf("profile: %w", withLine(node, err))
	}
	return p, nil
}

func (d *document) profile() (*Profile, error) {
	b := d.Bundle
	switch {
	case d.Version != Version:
		return nil, wrong(fmt.Errorf("version is %d, and this punnet reads version %d", d.Version, Version), "version")
	case d.Name == "":
		return nil, wrong(errors.New("name is missing"), "name")
	case len(d.Store) == 0:
		return nil, wrong(errors.New("store is missing: where bundles are kept on this machine"), "store")
	case !isCachePath(d.Cache):
		return nil, wrong(fmt.Errorf("cache %q is not a relative path of letters, digits, . _ - and single slashes", d.Cache), "cache")
	}
	if err := checkPlaces(d.Store); err != nil {
		return nil, wrong(fmt.Errorf("store: %w", err), "store")
	}
	if err := cmp.Or(b.check(), checkRoots(d.Roots), d.Limits.check(), d.Tools.check()); err != nil {
		return nil, err
	}
	p := &Profile{
		Name: d.Name, Store: d.Store, Cache: d.Cache, Roots: d.Roots, Limits: d.Limits, Tools: d.Tools,
		Severities: skill.Severities{}, DiscoverySeverities: discovery.Severities{},
		Rules: bundle.Rules{
			Limits:   bundle.Limits{Entries: b.Entries, Levels: b.Levels, Bytes: b.Bytes, Files: b.Files, FileBytes: b.FileBytes},
			LeaveOut: b.LeaveOut, NoLinks: !b.FollowLinks, TextOnly: b.TextOnly, LeaveOutExcess: b.LeaveOutExcess,
		},
	}
	for _, code := range slices.Sorted(maps.Keys(d.Severities)) {
		if err := p.setSeverity(code, d.Severities[code].Severity); err != nil {
			return nil, wrong(fmt.Errorf("severities: %w", err), "severities", code)
		}
	}
	return p, nil
}

// setSeverity says how severe one problem is.
func (p *Profile) setSeverity(code string, s skill.Severity) error {
	own := slices.ContainsFunc(discovery.Codes(), func(c discovery.CodeInfo) bool { return string(c.Code) == code })
	if own {
		p.DiscoverySeverities[discovery.Code(code)] = s
	}
	// One code is both: a SKILL.md that is too large.
	if !own || slices.ContainsFunc(skill.Codes(), func(c skill.CodeInfo) bool { return string(c.Code) == code }) {
		p.Severities[skill.Code(code)] = s
	}
	return cmp.Or(p.Severities.Check(), p.DiscoverySeverities.Check())
}

func (b rules) check() error {
	err := checkLimits("bundle", []limit{
		{"entries", int64(b.Entries), maxEntries}, {"levels", int64(b.Levels), maxLevels}, {"bytes", b.Bytes, maxBytes},
		{"files", int64(b.Files), maxEntries}, {"fileBytes", b.FileBytes, maxBytes},
	})
	if err != nil {
		return err
	}
	for i, name := range b.LeaveOut {
		err := bundle.CheckName(name)
		if name == bundle.SkillFile {
			err = errors.New("it is what makes a skill")
		}
		if err != nil {
			return wrong(fmt.Errorf("bundle: leaveOut: %q: %w", name, err), "bundle", "leaveOut", strconv.Itoa(i))
		}
	}
	return nil
}

func (l Limits) check() error {
	return checkLimits("limits", []limit{
		{"skills", int64(l.Skills), maxEntries}, {"active", l.Active, maxBytes}, {"session", l.Session, maxBytes},
		{"reference", int64(l.Reference), maxEntries},
	})
}

// limit is one number of a profile, and what it can be.
type limit struct {
	key        string
	value, max int64
}

func checkLimits(of string, limits []limit) error {
	for _, l := range limits {
		switch {
		case l.value < 0:
			return wrong(fmt.Errorf("%s: %s is negative", of, l.key), of, l.key)
		case l.value > l.max:
			return wrong(fmt.Errorf("%s: %s is over what can be, %d", of, l.key, l.max), of, l.key)
		}
	}
	return nil
}

func (t Tools) check() error {
	taken := make(map[string]bool)
	for _, tool := range [][2]string{{"list", t.List}, {"load", t.Load}, {"unload", t.Unload}, {"reference", t.Reference}} {
		key, name := tool[0], tool[1]
		if name == "" {
			continue
		}
		if !isToolName(name) || taken[name] {
			return wrong(fmt.Errorf("tools: %s: %q is no name of up to 64 letters, digits, _ and - that starts with a letter, or it is there twice", key, name), "tools", key)
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
