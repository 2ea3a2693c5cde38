// Package discovery makes a conversation's catalog out of what two machines say of their collections.
//
// A collection is a directory whose immediate subdirectories are skills, each with a file SKILL.md. It
// happens in two steps. A machine is asked once, and answers with a [Listing]: [Read] does that where
// its files are at hand, and package remote asks a target in one command. Then [Build] makes a
// [Catalog] of the listings, without looking at anything: the same listings give the same catalog,
// whichever way they came.
package discovery

// Limits on what one machine can make this process hold.
const (
	// MaxListed is how many names of one directory are read. The entries that count are the first of
	// them in byte order, so a directory of more names than this is looked at as far as it was read.
	MaxListed = 10_000
	// MaxListing bounds all of one Listing, in bytes of names and heads.
	MaxListing = 8 << 20
	// MaxAncestors is how many directories above the working directory are looked at for a repository.
	MaxAncestors = 64
)

// Home is the home directory of the account, whose path the machine alone knows.
const Home = "~"

// Query is what one machine is asked.
type Query struct {
	// Dir is the working directory: an absolute path, or Home for the account's home directory; "" for
	// none, which roots relative to it then do without.
	Dir string
	// Roots are the places to look at, in order of precedence.
	Roots []Root
}

// Root is a place where a collection may be.
type Root struct {
	// ID is handed back in Collection.Root: the root's index in its profile.
	ID int
	// Path is an absolute path; one below the account's home directory, "~/.agents/skills"; or one
	// below the working directory, ".agents/skills".
	Path string
	// Walk looks also below the ancestors of the working directory through the nearest one that holds
	// .git or .jj, a file or a directory; where none does, below the working directory alone. Path is
	// relative.
	Walk bool
	// Entries is how many entries of a collection are looked at, more than zero.
	Entries int
}

// Listing is what a machine says of its collections.
type Listing struct {
	Home       string // the account's home directory
	Dir        string // the real path of the working directory, as asked where there is none (Home's path for Home); "" for none asked about
	Repository string // the real path of the repository's root, "" outside of one
	// Collections are those that are there, in the order of Query.Roots; for a Root that walks, the
	// nearest first.
	Collections []Collection
	// Problem says why Dir could not be looked at: NoDirectory or Unreadable; "" when it could.
	Problem Code
}

// Bound holds a listing to MaxListing, for whoever made it: what is past it, in order, keeps its name
// and has the problem ListingFull.
func (l *Listing) Bound() {
	total := 0
	for i := range l.Collections {
		for k := range l.Collections[i].Entries {
			e := &l.Collections[i].Entries[k]
			if total += len(e.Name) + len(e.Real) + len(e.Head); total > MaxListing {
				*e = Entry{Name: e.Name, Link: e.Link, Problem: ListingFull}
			}
		}
	}
}

// Collection is a directory of skills.
type Collection struct {
	Root    int     // Root.ID
	Path    string  // where it was looked for: an absolute path
	Real    string  // its real path
	Entries []Entry // in byte order of their names, at most Root.Entries
	More    bool    // there are more entries than that
	// Problem says why it could not be listed: Unreadable or NotDirectory; "" when it could.
	Problem Code
}

// Entry is one entry of a collection that may be a skill: a directory, or a link to one, that holds
// something called SKILL.md, or meant to be; or a link that leads nowhere. All other entries count for
// Root.Entries and are not listed.
type Entry struct {
	Name string // as the machine sent it; any bytes but NUL and slash
	Real string // the real path of the directory; "" where a link leads to none
	Link bool   // the entry itself is a link
	// FileLink says that SKILL.md is a link. It is read all the same where it leads to a regular file
	// inside the skill's directory.
	FileLink bool
	// Size is SKILL.md's size in bytes.
	Size int64
	// Head is SKILL.md from its beginning through the end of its frontmatter, see skill.Head. Of a file
	// larger than skill.MaxFileBytes there is none.
	Head []byte
	// Problem says why there is no Head: LinkEscapes, LinkDangles, NotRegular, Unreadable, TooLarge,
	// ListingFull, or Misnamed where there is a skill.md and no SKILL.md; "" when there is one.
	Problem Code
}
