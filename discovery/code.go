package discovery

// Code names what discovery found wrong. The words are part of the JSON output, and stay.
type Code string

// The codes of discovery.
const (
	NoDirectory    Code = "no-directory"     // the working directory does not exist
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
)
