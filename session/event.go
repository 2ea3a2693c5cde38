package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
)

// Type is what an event says.
type Type string

// The types of events. Trusted, untrusted and rewound ones have no parent and are not part of the tree.
const (
	Started   Type = "started"   // the conversation began: Place, and Captured where the profile has that
	Moved     Type = "moved"     // it went to another place: Place
	Loaded    Type = "loaded"    // a skill was loaded: Skill
	Unloaded  Type = "unloaded"  // skills were unloaded: Unloaded
	Trusted   Type = "trusted"   // a repository is trusted from now on: Trust
	Untrusted Type = "untrusted" // it is not any more: Trust
	Rewound   Type = "rewound"   // the conversation goes on from an earlier event: Head
)

// Event is one thing that happened. Its ID is unique, and chosen at random so that histories which were
// continued apart can be joined.
type Event struct {
	ID     string    `json:"id"`
	Parent string    `json:"parent,omitempty"` // the event it came after; "" for the first, and outside of the tree
	Time   time.Time `json:"time"`             // UTC
	Type   Type      `json:"type"`

	Place    *Place    `json:"place,omitempty"`
	Captured *Capture  `json:"captured,omitempty"`
	Skill    *Snapshot `json:"skill,omitempty"`
	Unloaded []string  `json:"unloaded,omitempty"` // the ids of the loaded events that it ends
	Trust    *Trust    `json:"trust,omitempty"`
	Head     string    `json:"head,omitempty"` // the id of the event to go on from
}

// Target is a machine and account as it was named; the zero Target is this machine. It has the fields of
// a transport.Target.
type Target struct {
	User string `json:"user,omitempty"` // "" leaves it to the SSH configuration
	Host string `json:"host,omitempty"` // a name, an address or an alias; "" is this machine
	Port int    `json:"port,omitempty"` // 0 leaves it to the SSH configuration
}

// Local reports whether t is this machine.
func (t Target) Local() bool { return t.Host == "" }

// String returns t as it is written on a command line, which is how a transport.Target is. It must be
// quoted before it is shown.
func (t Target) String() string {
	if t.Local() {
		return "local:"
	}
	user, host := "", t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	switch {
	case t.Port != 0 && t.User != "":
		user = url.User(t.User).String() + "@"
	case t.User != "":
		user = t.User + "@"
	}
	if t.Port == 0 {
		return user + host
	}
	return "ssh://" + user + host + ":" + strconv.Itoa(t.Port)
}

// Place is where a conversation is.
type Place struct {
	// Environment is the identity of the machine and account; see Environment.Identify.
	Environment string `json:"environment"`
	Target      Target `json:"target"` // as it was named
	Dir         string `json:"dir"`    // the working directory there, an absolute path
}

// Snapshot is a skill as it was when it was loaded.
type Snapshot struct {
	Name   string `json:"name"`
	Scope  string `json:"scope"`  // the kind of collection, or ScopePath
	Source string `json:"source"` // the absolute path of its directory as it was found
	// OnHost says that it is of the host, and active everywhere. Any other belongs to Environment.
	OnHost      bool   `json:"onHost,omitempty"`
	Environment string `json:"environment"` // where it was loaded
	// Digest names the bundle that its files are in, for skills of the host.
	Digest bundle.Digest `json:"digest,omitzero"`
	// Directory is the skill's directory in Environment, where relative paths begin.
	Directory string   `json:"directory"`
	Files     []string `json:"files,omitempty"`     // paths in the directory, the first MaxFilesListed
	MoreFiles int      `json:"moreFiles,omitempty"` // how many others there are, as far as it was counted
	// Instructions are the bytes of SKILL.md, all of them, and SHA256 is their digest in hexadecimal.
	Instructions string `json:"instructions,omitempty"`
	SHA256       string `json:"sha256"`
	// Answered says that the model has the instructions: they were the answer to its call.
	Answered bool `json:"answered,omitempty"`
}

// ScopePath is the scope of a skill that was named by its path and is in no collection.
const ScopePath = "path"

// MaxFilesListed is how many of a skill's files a snapshot lists.
const MaxFilesListed = 64

// Trust is the word on one repository.
type Trust struct {
	Repository  string `json:"repository"` // its root's real path; outside of a repository the working directory
	Environment string `json:"environment"`
}

// Capture is everything that was captured when a conversation started.
type Capture struct {
	Skills      []Captured             `json:"skills"` // in order of precedence
	Diagnostics []discovery.Diagnostic `json:"diagnostics,omitempty"`
}

// Captured is one skill that was captured.
type Captured struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Scope       string        `json:"scope"`
	Source      string        `json:"source"`
	Digest      bundle.Digest `json:"digest"`
	Bytes       int64         `json:"bytes"` // of text
}

// newID returns an id for an event.
func newID() string { return strings.ToLower(rand.Text()[:16]) }

// NewID returns a random id for a conversation.
func NewID() string { return strings.ToLower(rand.Text()[:12]) }

// MaxIDBytes is the length of the longest id of a conversation.
const MaxIDBytes = 64

// CheckID returns an ErrBadID unless id is 1 to 64 characters of a-z, 0-9 and hyphen. An id is also a
// file's name.
func CheckID(id string) error {
	if id == "" || len(id) > MaxIDBytes || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return &Error{Code: ErrBadID, About: shortened(id), What: "not an id of a conversation: 1 to 64 characters of a-z, 0-9 and hyphen"}
	}
	return nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// intact returns an ErrDamaged where the instructions are not those that were recorded.
func (e *Event) intact() error {
	if digestOf(e.Skill.Instructions) != e.Skill.SHA256 {
		return &Error{Code: ErrDamaged, About: e.ID, What: "the recorded instructions of " + display.Quote(e.Skill.Name) + " are not what their digest says"}
	}
	return nil
}

// isAbs reports whether p is an absolute path of some machine.
func isAbs(p string) bool {
	return path.IsAbs(p) || len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\')
}
