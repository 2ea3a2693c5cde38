package remote

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
)

// The answer of a script is lines of text between "begin:" and "end:" with the command's nonce. An
// empty line means nothing. A word is separated from the next by one space; the last one may hold
// spaces. D is a digest, and the slash in a NAME stands for a line end.
//
//	tool NAME                       it needs a program that is not there; the last line
//	home                            the account has no usable home directory; the last line
//	unsafe owner|mode PATH          someone else could change what is at PATH; the last line
//	fail PATH, said WORDS           a step about PATH failed; the last two lines
//	root PATH                       where the cache is; the first line otherwise
//	none                            it does not exist; the last line
//
//	is D ok|damaged [NAME]          check and publish, one for each digest in the command
//	is D absent|older               older: publish alone, the older bundle is there, whole
//	=K SHA256  ./PATH               a file in the copy just said to be damaged
//	go                              publish reads its standard input now
//	new|had|mended D                placed; found placed by another; placed over a damaged copy
//	torn|bad|refused D              not placed: the stream had no end; it is not what D names;
//	                                the name was taken again and again
//	said WORDS                      what the programs said that unpacked, at the end
//
//	now SECONDS                     list, once
//	copy D -|ok|damaged SECONDS|- FILES BYTES NAME
//	other NAME
//
//	now|system|...                  probe, before and after root, see facts
//
//	gone|used|removed D             prune, one for each digest: not there; used since; taken away
//	kept D WORDS                    it could not be taken away

// reply is an answer as far as it was read. It trusts nothing: a line that is not of the verb, a
// digest that was not asked about or twice, an answer that lacks a digest are all errors.
type reply struct {
	verb  string
	asked map[bundle.Digest]*asked // what the command's words were; nil for list
	facts *facts                   // what probe asks for; nil for the others
	ready func()                   // called when the target waits for the stream
	heard chan<- struct{}          // gets something when a line came, if there is room; may be nil

	root   string
	none   bool
	stop   error // why the script stopped short
	tool   string
	going  bool
	said   string
	now    int64
	copies []Copy
	seen   map[string]bool // names that list has said

	damaged *asked // what a line about a file belongs to
	closed  bool   // no line may follow but "said"
}

// asked is one digest of a command, and what the answer says of it.
type asked struct {
	manifest *bundle.Manifest // nil where only the digest is known
	older    bool             // the command names an older bundle
	state    string
	name     string
	result   string
	words    string
	lines    map[string]string // from a manifest's lines to its paths
	intact   map[string]bool   // paths that a damaged copy has as they should be
}

// take reads one line.
func (r *reply) take(l []byte) error {
	if bytes.IndexByte(l, 0) >= 0 {
		return errors.New("a line holds a NUL")
	}
	select {
	case r.heard <- struct{}{}:
	default:
	}
	word, rest, _ := strings.Cut(string(l), " ")
	if r.closed && word != "said" {
		return unexpected(l)
	}
	if !strings.HasPrefix(word, "=") {
		r.damaged = nil
	}
	ok := false
	switch {
	case r.facts.has(word):
		ok = r.facts.take(word, rest)
	case word == "said":
		ok, r.said = r.said == "", rest
		r.closed = true
	case r.root == "":
		return r.first(word, rest)
	case word == "none":
		r.none, r.closed = true, true
		ok = !r.going && rest == "" && r.nothing()
	case word == "tool" && r.verb == verbPublish || word == "tool" && r.verb == verbList || word == "fail":
		r.root = ""
		return r.first(word, rest)
	case r.verb == verbList:
		ok = r.listed(word, rest)
	case r.verb == verbPrune:
		ok = r.result(word, rest, "gone used removed kept")
	case word == "is":
		ok = !r.going && r.is(rest)
	case r.verb == verbPublish && strings.HasPrefix(word, "="):
		ok = r.damaged != nil
		if ok {
			if p, known := r.damaged.lines[string(l[1:])]; known {
				r.damaged.intact[p] = true
			}
		}
	case r.verb == verbPublish && word == "go":
		ok = !r.going && rest == "" && r.complete(func(a *asked) bool { return a.state != "" })
		if ok {
			r.going = true
			r.ready()
		}
	case r.verb == verbPublish && r.going:
		ok = r.result(word, rest, "new had mended torn bad refused")
	}
	if !ok {
		return unexpected(l)
	}
	return nil
}

func unexpected(l []byte) error {
	return fmt.Errorf("it has the line %q", display.Said(string(l)))
}

// first reads the line that begins an answer, or that ends it early.
func (r *reply) first(word, rest string) error {
	if r.stop != nil {
		return unexpected([]byte(word + " " + rest))
	}
	switch {
	case word == "root":
		if err := checkPath(rest); err != nil {
			return err
		}
		r.root = rest
		return nil
	case word == "tool" && rest != "" && strings.IndexByte(rest, ' ') < 0:
		r.tool = rest
		r.stop = &Error{Op: r.verb, Kind: ErrTools, Path: rest, Advice: "install " + display.Quote(rest) + " on the target"}
	case word == "home" && rest == "":
		r.stop = &Error{Op: r.verb, Err: errors.New("the account has no usable home directory"),
			Advice: "set HOME on the target, or XDG_CACHE_HOME to an absolute path"}
	case word == "unsafe":
		what, p, _ := strings.Cut(rest, " ")
		if what != "owner" && what != "mode" || checkPath(p) != nil {
			return unexpected([]byte(word + " " + rest))
		}
		r.stop = unsafeError(r.verb, p, what == "owner")
	case word == "fail" && checkPath(rest) == nil:
		r.stop = failure(r.verb, rest, "")
		return nil // the words follow
	default:
		return unexpected([]byte(word + " " + rest))
	}
	r.closed = true
	return nil
}

// checkPath holds a path of the target to what can stand in a prompt and on one line.
func checkPath(p string) error {
	switch {
	case len(p) > 4096:
		return errors.New("a path is longer than 4096 bytes")
	case !path.IsAbs(p):
		return fmt.Errorf("the path %q is not absolute", display.Said(p))
	case strings.ContainsFunc(p, display.Hidden):
		return fmt.Errorf("the path %q holds a hidden character", display.Said(p))
	}
	return nil
}

// is reads the state of one digest.
func (r *reply) is(rest string) bool {
	a, rest := r.one(rest)
	if a == nil || a.state != "" {
		return false
	}
	state, name, named := strings.Cut(rest, " ")
	name = unflat(name)
	switch {
	case state == "absent" && !named:
	case state == "older" && !named && a.older:
	case state == "ok" && r.verb == verbPublish && !named:
	case state == "ok" && r.verb == verbCheck && bundle.CheckName(name) == nil:
		a.name = name
	case state == "damaged" && r.verb == verbCheck && named:
		a.name = name
	case state == "damaged" && r.verb == verbPublish && !named:
		a.lines, a.intact = manifestLines(a.manifest), make(map[string]bool)
		r.damaged = a
	default:
		return false
	}
	a.state = state
	return true
}

// manifestLines returns a bundle's files by their lines in the manifest.
func manifestLines(m *bundle.Manifest) map[string]string {
	lines := make(map[string]string)
	for _, e := range m.Entries() {
		if e.Kind != bundle.Dir {
			lines[fmt.Sprintf("%c %x  ./%s", e.Kind, e.SHA256, e.Path)] = e.Path
		}
	}
	return lines
}

// result reads what became of one digest.
func (r *reply) result(word, rest, words string) bool {
	a, rest := r.one(rest)
	if a == nil || a.result != "" || a.state == "ok" || !hasWord(words, word) || rest != "" && word != "kept" {
		return false
	}
	a.result, a.words = word, unflat(rest)
	return true
}

func hasWord(words, word string) bool {
	return strings.Contains(" "+words+" ", " "+word+" ")
}

// one takes a digest off the beginning of s, if it is one that was asked about.
func (r *reply) one(s string) (*asked, string) {
	text, rest, _ := strings.Cut(s, " ")
	d, err := bundle.ParseDigest(text)
	if err != nil {
		return nil, ""
	}
	return r.asked[d], rest
}

// listed reads what list says of one entry.
func (r *reply) listed(word, rest string) bool {
	switch {
	case word == "now" && r.now == 0:
		r.now = parseCount(rest)
		return r.now > 0
	case r.now == 0:
		return false
	case word == "other" && rest != "" && !r.seen[rest]:
		r.seen[rest] = true
		r.copies = append(r.copies, Copy{Name: unflat(rest), State: Foreign})
		return true
	case word == "copy":
		return r.copied(rest)
	}
	return false
}

func (r *reply) copied(rest string) bool {
	f := strings.SplitN(rest, " ", 6)
	if len(f) != 6 || r.seen[f[0]] {
		return false
	}
	d, err := bundle.ParseDigest(f[0])
	if err != nil {
		return false
	}
	r.seen[f[0]] = true
	c := Copy{Digest: d, Name: unflat(f[5])}
	switch f[1] {
	case "-":
	case "ok":
		c.State = Whole
	case "damaged":
		c.State = Damaged
	default:
		return false
	}
	if f[2] != "-" {
		t := parseCount(f[2])
		if t < 0 {
			return false
		}
		c.Used = time.Unix(t, 0)
	}
	files, bytes := parseCount(f[3]), parseCount(f[4])
	if files < 0 || bytes < -1 {
		return false
	}
	// Some shells count with 32 bits; what they cannot count is not known.
	c.Files, c.Bytes = int(min(files, 1<<30)), max(bytes, 0)
	r.copies = append(r.copies, c)
	return true
}

// parseCount reads a number; -1 is one below zero, and -2 none at all.
func parseCount(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || s[0] == '+':
		return -2
	case n < 0:
		return -1
	}
	return n
}

// unflat undoes what the script does to a name with line ends.
func unflat(s string) string { return strings.ReplaceAll(s, "/", "\n") }

// nothing reports whether no digest has been spoken of.
func (r *reply) nothing() bool {
	return len(r.copies) == 0 && r.complete(func(a *asked) bool { return a.state == "" && a.result == "" })
}

func (r *reply) complete(has func(*asked) bool) bool {
	for _, a := range r.asked {
		if !has(a) {
			return false
		}
	}
	return true
}

// end says whether the answer is whole, now that nothing follows: nil, why the script stopped, or
// what is missing.
func (r *reply) end() error {
	if e, ok := errors.AsType[*Error](r.stop); ok {
		if e.Kind == nil && r.said != "" {
			return failure(e.Op, e.Path, r.said)
		}
		return e
	}
	missing := errors.New("it is not complete")
	switch {
	case r.root == "":
		return missing
	case r.none:
		return nil
	case r.verb == verbList && r.now == 0:
		return missing
	case r.verb == verbCheck && !r.complete(func(a *asked) bool { return a.state != "" }):
		return missing
	case r.verb == verbPrune && !r.complete(func(a *asked) bool { return a.result != "" }):
		return missing
	case r.verb == verbProbe && !r.facts.seen["has"]:
		return missing
	case r.verb == verbPublish && !r.complete(func(a *asked) bool { return a.state == "ok" || a.state != "" && a.result != "" }):
		return missing
	}
	return nil
}
