package session

import (
	"context"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
)

// Environment is a machine and account that a conversation runs in, reached. Its methods may be called
// from many goroutines at once. Where the machine does not answer, their errors are ErrUnavailable.
type Environment interface {
	// Identify says which machine and account it is, in words that are the same however it is reached
	// and no other machine or account has, and the account's home directory.
	Identify(ctx context.Context) (id, home string, err error)
	// Collections asks for the collections of the host, and of the environment for the working
	// directory dir.
	Collections(ctx context.Context, dir string) (*Collections, error)
	// Skill reads the skill in a directory of the environment, an absolute path.
	Skill(ctx context.Context, dir string) (*Found, error)
	// Publish makes bundles stand in the environment, whole, and returns the skills' directories there,
	// in order. It is not called where the environment is this machine.
	Publish(ctx context.Context, bundles ...*bundle.Bundle) ([]string, error)
	// Close gives up what it holds.
	Close() error
}

// Found is a skill that an environment has.
type Found struct {
	Data  []byte   // of SKILL.md, at most skill.MaxFileBytes + 1 bytes
	Path  string   // its directory, as it was asked for
	Files []string // paths in it, the first MaxFilesListed of them
	More  int      // how many files there are beyond those, as far as it was looked
}

// Collections is what machines say of their collections.
type Collections struct {
	// Listings are for discovery.Build. The last is that of the environment.
	Listings []*discovery.Listing
	// Diagnostics are what else a person should know.
	Diagnostics []discovery.Diagnostic
}

// Config is what conversations have in common. What only reads or rewinds a record, as Open, State, Log
// and Rewind do, needs nothing but Storage; everything else needs all of it.
type Config struct {
	Conventions Conventions
	// Store keeps the bundles of the host's skills.
	Store *bundle.Store
	// Storage keeps the conversations.
	Storage Storage
	// Reach reaches a target; its errors are ErrUnavailable where that fails. A conversation reaches
	// each target when it needs it, once, and closes what it reached when it is closed itself.
	Reach func(ctx context.Context, t Target) (Environment, error)
}

// Conventions are what a profile says to a conversation.
type Conventions struct {
	Profile string           // the name that the profile is loaded by
	Rules   bundle.Rules     // what of a skill directory becomes a bundle
	Policy  discovery.Policy // how a catalog is made; Trusted does not count
	Limits  Limits
	Tools   Tools
}

// Limits bound what a conversation has at a time; 0 is no limit.
type Limits struct {
	Active    int64 // bytes of all loaded instructions
	Session   int64 // bytes of captured text. Where it is set, the session captures.
	Reference int   // characters of one reference
}

// Tools are the names of the tools that the model calls; "" is a tool that there is not.
type Tools struct {
	List      string // shows the catalog
	Load      string // loads a skill: {"name"}
	Unload    string // unloads one: {"name"}
	Reference string // reads a text of a loaded skill: {"name","path"}
}
