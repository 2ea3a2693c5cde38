package skill

import (
	"fmt"
	"maps"
	"slices"
)

// Severity is how much a problem counts for a caller. A greater value counts more.
type Severity int

// The severities. An error keeps its skill out of the catalog; a warning is told and the skill loads;
// an ignored problem is not told.
const (
	Ignore Severity = iota
	Warning
	Error
)

// String returns "ignore", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Ignore:
		return "ignore"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// MarshalText returns the severity's word, for JSON and YAML.
func (s Severity) MarshalText() ([]byte, error) {
	if s < Ignore || s > Error {
		return nil, fmt.Errorf("no such severity: %d", int(s))
	}
	return []byte(s.String()), nil
}

// UnmarshalText reads one of the words that String returns.
func (s *Severity) UnmarshalText(text []byte) error {
	for known := Ignore; known <= Error; known++ {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("no such severity: %s (use ignore, warning or error)", quote(string(text)))
}

// Severities is one profile's choice of how severe problems are. A code it does not list has the
// default that Codes gives; the zero value is the defaults throughout.
type Severities map[Code]Severity

// Of returns how severe a problem of this code is. A code that leaves no skill to load is an Error
// whatever s says, and so is a code this package does not know.
func (s Severities) Of(code Code) Severity {
	info, known := lookup(code)
	if !known || info.Fatal {
		return Error
	}
	if chosen, ok := s[code]; ok {
		return chosen
	}
	return info.Default
}

// Worst returns the greatest severity among problems, Ignore when there are none. The skill may be
// used unless this is Error.
func (s Severities) Worst(problems []Problem) Severity {
	worst := Ignore
	for _, p := range problems {
		worst = max(worst, s.Of(p.Code))
	}
	return worst
}

// Check reports the first choice, by code, that could have no effect: of a code that does not exist,
// of a severity that does not exist, or softening a code that is always an error.
func (s Severities) Check() error {
	for _, code := range slices.Sorted(maps.Keys(s)) {
		info, known := lookup(code)
		switch chosen := s[code]; {
		case !known:
			return fmt.Errorf("no such problem: %s", quote(string(code)))
		case chosen < Ignore || chosen > Error:
			return fmt.Errorf("%s: no such severity: %d", code, int(chosen))
		case info.Fatal && chosen != Error:
			return fmt.Errorf("%s is always an error: it leaves no skill to load", code)
		}
	}
	return nil
}
