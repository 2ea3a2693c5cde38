package discovery

import (
	"fmt"
	"maps"
	"slices"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// Code names what discovery found wrong. The words are part of the JSON output and of profiles, and
// stay.
type Code string

// The codes of discovery.
const (
	NoDirectory    Code = "no-directory"     // the working directory does not exist, or is no directory
	NotDirectory   Code = "not-a-directory"  // what should be a collection is none
	Unreadable     Code = "unreadable"       // the system refused to read it
	LinkDangles    Code = "link-dangles"     // the link leads to nothing, or in a circle
	LinkEscapes    Code = "link-escapes"     // SKILL.md is a link that leaves its skill
	LinkRefused    Code = "link-refused"     // a link, where the profile follows none
	NotRegular     Code = "special-file"     // SKILL.md is no regular file
	TooLarge       Code = "file-too-large"   // SKILL.md is over 64 KiB
	ListingFull    Code = "too-many-bytes"   // the machine has more to say than is read
	TooManyEntries Code = "too-many-entries" // a collection has more entries than are looked at
	TooManySkills  Code = "too-many-skills"  // there are more skills than a catalog holds
	DuplicateName  Code = "duplicate-name"   // another skill of this name comes first
	LinkedTwice    Code = "linked-twice"     // the same skill is listed already, by its own name or a link
	Misnamed       Code = "misnamed"         // the file is called skill.md
	NestedSkills   Code = "nested-skills"    // the skill's directory holds other skills of the catalog
)

// CodeInfo says what a code means and how severe it is where no profile says otherwise.
type CodeInfo struct {
	Code    Code
	Default skill.Severity
	Fatal   bool   // there is nothing to list, so that no profile can soften it
	Meaning string // one line, for tables
}

// codes is never changed.
var codes = [...]CodeInfo{
	{NoDirectory, skill.Error, true, "the working directory does not exist, or is no directory"},
	{NotDirectory, skill.Error, true, "what should be a collection is no directory"},
	{Unreadable, skill.Error, true, "the system refused to read it"},
	{LinkDangles, skill.Error, true, "a skill's directory or SKILL.md is a link that leads to nothing, or in a circle"},
	{LinkEscapes, skill.Error, true, "SKILL.md is a link that leaves its skill"},
	{LinkRefused, skill.Error, true, "a skill's directory or SKILL.md is a link, where the profile follows none"},
	{NotRegular, skill.Error, true, "SKILL.md is no regular file"},
	{TooLarge, skill.Error, true, "SKILL.md is larger than 64 KiB"},
	{ListingFull, skill.Error, true, "the machine's collections have more to say than the 8 MiB that are read"},

	{TooManyEntries, skill.Warning, false, "a collection has more entries than are looked at (256)"},
	{TooManySkills, skill.Warning, false, "there are more skills than a catalog holds (128)"},
	{DuplicateName, skill.Ignore, false, "another skill of this name comes first"},
	{LinkedTwice, skill.Ignore, false, "the same directory is listed already, by its own name or another link"},
	{Misnamed, skill.Warning, false, "a directory without a SKILL.md has a skill.md"},
	{NestedSkills, skill.Warning, false, "the skill's directory holds other skills of the catalog"},
}

// Codes returns every code, its default severity and its meaning, the fatal ones first. The defaults
// are those of the berry profile.
func Codes() []CodeInfo { return slices.Clone(codes[:]) }

func lookup(code Code) (CodeInfo, bool) {
	for _, info := range codes {
		if info.Code == code {
			return info, true
		}
	}
	return CodeInfo{}, false
}

// Severities is one profile's choice of how severe discovery's own problems are, as skill.Severities
// is for those of a SKILL.md. The zero value is the defaults throughout.
type Severities map[Code]skill.Severity

// Of returns how severe a problem of this code is.
func (s Severities) Of(code Code) skill.Severity {
	info, known := lookup(code)
	if !known || info.Fatal {
		return skill.Error
	}
	if chosen, ok := s[code]; ok {
		return chosen
	}
	return info.Default
}

// Check reports the first choice, by code, that could have no effect, as skill.Severities.Check does.
func (s Severities) Check() error {
	for _, code := range slices.Sorted(maps.Keys(s)) {
		info, known := lookup(code)
		switch chosen := s[code]; {
		case !known:
			return fmt.Errorf("no such problem: %q", display.Quote(string(code)))
		case chosen < skill.Ignore || chosen > skill.Error:
			return fmt.Errorf("%s: no such severity: %d", code, int(chosen))
		case info.Fatal && chosen != skill.Error:
			return fmt.Errorf("%s is always an error: it leaves no skill to list", code)
		}
	}
	return nil
}
