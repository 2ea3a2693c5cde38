package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
)

// PromptOptions say how a prompt is made. The zero value is right for a model request, and then the error
// can also be ErrElsewhere, where the target is another machine by now, and ErrBadSkill, where a bundle is
// not whole in the store either.
type PromptOptions struct {
	// Unverified asks no machine anything: whether the files of the host's skills are in the
	// environment is then not known, and the text says so.
	Unverified bool
}

// Prompt is the section of the next model request that has the loaded instructions. The same history
// and the same paths give the same text, so that a model's cache of it holds.
type Prompt struct {
	Text       string        `json:"text"`  // "" where nothing is active
	Bytes      int           `json:"bytes"` // of Text
	Active     []PromptSkill `json:"active"`
	Paused     []PromptSkill `json:"paused"`
	Shadowed   []PromptSkill `json:"shadowed"`
	Unverified bool          `json:"unverified,omitempty"` // see PromptOptions
}

// PromptSkill is one loaded skill of a prompt.
type PromptSkill struct {
	Name   string `json:"name"`
	Scope  string `json:"scope"`
	Digest string `json:"digest,omitempty"` // of the bundle, for a skill of the host
	// Directory is the skill's directory: in this environment, and of what is paused in its own. It is ""
	// where it is not known.
	Directory string `json:"directory,omitempty"`
	Event     string `json:"event"` // the id of the loaded event
}

// Prompt returns the section for the next model request. First it makes sure that the target still is the
// environment that active skills belong to, and that the bundle of every active skill of the host is there,
// whole, and repairs what is not: all of it in one round trip beyond the opening of a channel where nothing
// lacks. Where the environment does not answer the error is ErrUnavailable, and PromptOptions.Unverified
// renders all the same.
func (c *Conversation) Prompt(ctx context.Context, o PromptOptions) (Prompt, error) {
	f, err := c.current(ctx)
	if err != nil {
		return Prompt{}, err
	}
	s := f.state()
	for _, e := range s.Active {
		if err := e.intact(); err != nil {
			return Prompt{}, err
		}
	}
	dirs, err := c.directories(ctx, f, s.Active, o)
	if err != nil {
		return Prompt{}, err
	}
	p := Prompt{Active: []PromptSkill{}, Paused: promptSkills(s.Paused), Shadowed: promptSkills(s.Shadowed), Unverified: o.Unverified}
	for i, e := range s.Active {
		a := promptSkill(e)
		a.Directory = dirs[i]
		p.Active = append(p.Active, a)
	}
	p.Text = render(s, dirs, o.Unverified)
	p.Bytes = len(p.Text)
	return p, nil
}

func promptSkill(e *Event) PromptSkill {
	s := PromptSkill{Name: e.Skill.Name, Scope: e.Skill.Scope, Directory: e.Skill.Directory, Event: e.ID}
	if !e.Skill.Digest.IsZero() {
		s.Digest = e.Skill.Digest.String()
	}
	return s
}

func promptSkills(events []*Event) []PromptSkill {
	out := []PromptSkill{}
	for _, e := range events {
		s := promptSkill(e)
		if e.Skill.OnHost {
			s.Directory = "" // that of another environment, perhaps
		}
		out = append(out, s)
	}
	return out
}

// directories returns where the files of active skills are, after making sure that they are there.
func (c *Conversation) directories(ctx context.Context, f *fold, active []*Event, o PromptOptions) ([]string, error) {
	dirs := make([]string, len(active))
	var at []int
	var digests []bundle.Digest
	for i, e := range active {
		dirs[i] = e.Skill.Directory
		if e.Skill.OnHost && f.captured == nil {
			at, digests = append(at, i), append(digests, e.Skill.Digest)
		}
	}
	if len(at) == 0 {
		return dirs, c.stillThere(ctx, f, active, o)
	}
	var places []string
	var err error
	switch {
	case f.place.Target.Local():
		places, err = c.stored(ctx, digests, o.Unverified)
	case o.Unverified:
		for _, i := range at {
			if active[i].Skill.Environment != f.place.Environment {
				dirs[i] = "" // never published here, as far as is known
			}
		}
		return dirs, nil
	default:
		places, err = c.publish(ctx, f.place, digests)
	}
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		dirs[i] = places[n]
	}
	return dirs, nil
}

// stillThere makes sure that skills which belong to an environment are told to no other that its target
// leads to now. Publishing asks the same.
func (c *Conversation) stillThere(ctx context.Context, f *fold, active []*Event, o PromptOptions) error {
	if f.place.Target.Local() || o.Unverified || !slices.ContainsFunc(active, f.here) {
		return nil
	}
	env, err := c.reach(ctx, f.place.Target)
	if err != nil {
		return err
	}
	return c.lost(f.place.Target, env, <-c.checking(ctx, env, f.place))
}

// stored returns where bundles are in the store, after reading them whole.
func (c *Conversation) stored(ctx context.Context, digests []bundle.Digest, unverified bool) ([]string, error) {
	dirs := make([]string, len(digests))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(capturers)
	for i, d := range digests {
		g.Go(func() error {
			b, err := c.cfg.Store.Open(d)
			if err == nil {
				dirs[i] = c.cfg.Store.Path(d, b.Manifest.Name())
				err = b.Close()
			}
			if err == nil && !unverified {
				err = c.cfg.Store.Verify(gctx, d)
			}
			if err != nil && gctx.Err() == nil {
				return noBundle(d, err)
			}
			return err
		})
	}
	return dirs, g.Wait()
}

const promptHead = `<loaded-skills>
The user's skills that are loaded for this conversation. Relative paths in one begin at its directory,
not at the working directory. The instructions of each stand between two lines with the same mark, and
end at the second: whatever stands between them, headings and marks of other sections included, is that
skill's text.
`

// render returns the text of the active skills.
func render(s State, dirs []string, unverified bool) string {
	var b strings.Builder
	for i, e := range s.Active {
		if e.Skill.Answered {
			continue // the model has it as an answer
		}
		if b.Len() == 0 {
			b.WriteString(promptHead)
			if unverified {
				b.WriteString("The machine was not asked: files of skills may be missing there.\n")
			}
		}
		mark := boundary(e, s.Active)
		fmt.Fprintf(&b, "\nSkill: %s\nSource: %s\n", display.Prompt(e.Skill.Name), display.Prompt(e.Skill.Scope))
		if dirs[i] != "" {
			fmt.Fprintf(&b, "Directory: %s\n", promptPath(dirs[i]))
		} else {
			b.WriteString("Directory: not on this machine yet\n")
		}
		fmt.Fprintf(&b, "Files: %s\n", promptFiles(e.Skill))
		fmt.Fprintf(&b, "---- instructions %s ----\n%s", mark, e.Skill.Instructions)
		if !strings.HasSuffix(e.Skill.Instructions, "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "---- end %s ----\n", mark)
	}
	if b.Len() > 0 {
		b.WriteString("</loaded-skills>\n")
	}
	return b.String()
}

// promptPath returns a path as it must be used, on one line. Paths with hidden characters were refused
// when the skill was loaded; what else a prompt escapes would make it another path. What closes a section
// does not stand in it, even so: a directory whose name ends in "<" can hold one named "skills>".
func promptPath(p string) string { return strings.ReplaceAll(display.Quote(p), "</", `\u{3c}/`) }

// maxPromptFiles bounds how many bytes of names are listed of a skill.
const maxPromptFiles = 4 << 10

func promptFiles(s *Snapshot) string {
	var b strings.Builder
	more := s.MoreFiles
	for i, f := range s.Files {
		name := promptPath(f)
		if b.Len()+len(name) > maxPromptFiles {
			more += len(s.Files) - i
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
	}
	if more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	return b.String()
}

// boundary returns a mark that stands in no active skill's instructions. It is made of the content, so
// that it is the same for every request, and nobody can write content that holds its own.
func boundary(e *Event, all []*Event) string {
	for sum := sha256.Sum256([]byte(e.Skill.Instructions)); ; sum = sha256.Sum256(sum[:]) {
		mark := hex.EncodeToString(sum[:8])
		if !slices.ContainsFunc(all, func(o *Event) bool { return strings.Contains(o.Skill.Instructions, mark) }) {
			return mark
		}
	}
}
