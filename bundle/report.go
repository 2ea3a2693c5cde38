package bundle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// Reason is a stable code for why a path was left out of a bundle or rejected it. A Reason is an
// error, so that a caller can ask errors.Is(err, bundle.LinkEscapes).
type Reason string

// Why a path was left out or rejected. Those marked soft leave a path out under Rules that say so,
// and reject it otherwise.
const (
	LeftOutByName  Reason = "left-out-name"    // in Rules.LeaveOut
	NotText        Reason = "not-text"         // not UTF-8 text, under Rules.TextOnly
	LinkRefused    Reason = "link-refused"     // a link under Rules.NoLinks (soft)
	LinkEscapes    Reason = "link-escapes"     // a link to outside the skill, or an absolute one
	LinkDangles    Reason = "link-dangles"     // a link to nothing
	LinkCycles     Reason = "link-cycles"      // a link to a directory it stands in, or to itself
	LinkTooLong    Reason = "link-too-long"    // more than MaxLinkHops links in a row
	SpecialFile    Reason = "special-file"     // a device, FIFO or socket
	BadName        Reason = "bad-name"         // see CheckName
	NamesCollide   Reason = "names-collide"    // equal under NFC and case folding
	TooManyEntries Reason = "too-many-entries" // over Limits.Entries
	TooManyLevels  Reason = "too-many-levels"  // over Limits.Levels (soft)
	TooManyFiles   Reason = "too-many-files"   // over Limits.Files (soft)
	TooManyBytes   Reason = "too-many-bytes"   // over Limits.Bytes (soft)
	FileTooLarge   Reason = "file-too-large"   // over Limits.FileBytes (soft)
	Unreadable     Reason = "unreadable"       // the system refused to read it
	Changing       Reason = "changing"         // it changed during each of several attempts
	NoSkillFile    Reason = "no-skill-file"    // the directory has no SKILL.md
	WrongDigest    Reason = "wrong-digest"     // a packed bundle is not what it is packed as
)

// Reasons returns every reason there is, for tables and their tests.
func Reasons() []Reason {
	return []Reason{
		LeftOutByName, NotText, LinkRefused, LinkEscapes, LinkDangles, LinkCycles, LinkTooLong, SpecialFile,
		BadName, NamesCollide, TooManyEntries, TooManyLevels, TooManyFiles, TooManyBytes, FileTooLarge,
		Unreadable, Changing, NoSkillFile, WrongDigest,
	}
}

// Error returns the code itself, so that a Reason can stand in an error chain.
func (r Reason) Error() string { return string(r) }

// Outcome is what became of a walked path.
type Outcome int

// The three ends of a walked path.
const (
	Kept Outcome = iota
	LeftOut
	Rejected
)

// String returns "kept", "left out" or "rejected".
func (o Outcome) String() string {
	switch o {
	case Kept:
		return "kept"
	case LeftOut:
		return "left out"
	case Rejected:
		return "rejected"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// Finding is the end of one walked path. Path is relative to the skill directory, with slashes, and
// "." for the directory itself; it is as the file system gave it and must be quoted before it is
// shown. Reason and Detail are empty for a path that was kept; Detail is a clause for people.
type Finding struct {
	Path    string
	Outcome Outcome
	Reason  Reason
	Detail  string
}

// Warning is something about a kept file that its owner would want to know before it leaves the
// machine. Code is "secret-name", "secret-content" or "script-not-executable".
type Warning struct {
	Path    string
	Code    string
	Message string
}

// Report accounts for a scan: every path that was walked, once, and warnings about those kept.
type Report struct {
	Findings []Finding
	Warnings []Warning
}

// LeftOut returns the findings with that outcome.
func (r *Report) LeftOut() []Finding { return r.only(LeftOut) }

// Rejected returns the findings with that outcome.
func (r *Report) Rejected() []Finding { return r.only(Rejected) }

func (r *Report) only(o Outcome) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Outcome == o {
			out = append(out, f)
		}
	}
	return out
}

// RejectedError says why a directory cannot become a bundle. errors.Is finds each Reason in it.
type RejectedError struct {
	Name     string    // the skill directory's name
	Findings []Finding // at least one, all of them Rejected
}

// Error names the first path and why it was rejected, and how many others there are.
func (e *RejectedError) Error() string {
	var b strings.Builder
	f := e.Findings[0]
	if f.Path != "." {
		fmt.Fprintf(&b, "%s: ", display.Quote(f.Path))
	}
	b.WriteString(f.Detail)
	if n := len(e.Findings) - 1; n > 0 {
		fmt.Fprintf(&b, " (and %d more)", n)
	}
	return b.String()
}

// Unwrap returns the reason of every finding.
func (e *RejectedError) Unwrap() []error {
	errs := make([]error, len(e.Findings))
	for i, f := range e.Findings {
		errs[i] = f.Reason
	}
	return errs
}

// errChanged is how the reading side tells that a path is no longer what the walk saw.
var errChanged = errors.New("the file changed while it was read")
