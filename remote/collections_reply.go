package remote

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

// The answer about collections is lines, compressed by gzip where the target has it. A word comes
// first; TEXT goes to the end of the line, or where it has a line end itself is missing, and lines of
// hexadecimal bytes follow that begin with a space.
//
//	tool NAME                    it needs a program that is not there; the last line
//	home TEXT                    the account's home directory
//	dir TEXT                     the working directory; not where none was asked about
//	nodir CODE                   it cannot be looked at
//	repo TEXT                    the repository's root; not outside of one
//
//	in ROOT DEPTH                the collection of the command's ROOTth root, DEPTH directories above the
//	                             working directory, is there
//	real TEXT                    its real path
//	shut CODE                    it cannot be listed; the last line about it
//	more                         it has more entries than are looked at
//
//	e TEXT                       an entry
//	link TEXT                    it is a link, to there
//	file                         its SKILL.md is a link
//	bad CODE [SIZE]              its SKILL.md, of that size, is not read
//	f                            its SKILL.md is read, and follows later: each of these in its turn is
//	s SIZE|-, then |LINE...      the size and the lines of the head; - for a file that is gone
//	x, then hexadecimal bytes    all of it
//	full                         after either: nothing of it, for there was too much before
//
//	done                         the last line

const (
	// maxUnpacked bounds an answer once it is not compressed any more: what is kept of it and as much
	// again, in hexadecimal.
	maxUnpacked = 8 * discovery.MaxListing
	// maxUnpackedLine bounds a line: a whole SKILL.md without line ends.
	maxUnpackedLine = skill.MaxFileBytes + 16
	// maxTargetPath bounds a path, as Unix systems do.
	maxTargetPath = 4096
	// maxTargetName bounds a name, as discovery.Read does.
	maxTargetName = 255
)

// collectionsReply is an answer as far as it was read. It trusts nothing.
type collectionsReply struct {
	query   discovery.Query
	listing *discovery.Listing
	tool    string
	torn    bool // a file is not of the size it was said to be
	done    bool

	kept    int                   // bytes of names and heads in the listing
	asked   int                   // root of the collection
	depth   int                   // of the collection, see in
	c       *discovery.Collection // nil before the first
	entries []*discovery.Entry    // of c
	names   map[string]bool       // in c
	e       *discovery.Entry      // nil before the first in c
	waiting []*discovery.Entry    // whose files are to come, or have come
	next    int                   // of waiting
	gone    map[*discovery.Entry]bool
	file    *headText              // what is coming
	text    func(text string) bool // takes the text that is coming in hexadecimal
	hex     []byte
}

// headText is what was sent of a SKILL.md.
type headText struct {
	entry *discovery.Entry
	size  int64 // as it was said to be
	whole bool  // all of it is sent
	data  []byte
	full  bool // none of it is
}

func newCollectionsReply(q discovery.Query) *collectionsReply {
	return &collectionsReply{query: q, listing: &discovery.Listing{}, asked: -1, gone: make(map[*discovery.Entry]bool)}
}

// read reads a whole answer.
func (r *collectionsReply) read(body []byte) error {
	var in io.Reader = bytes.NewReader(body)
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("it does not unpack: %w", err)
		}
		in = unpacked
	}
	lines := bufio.NewReaderSize(&io.LimitedReader{R: in, N: maxUnpacked}, maxUnpackedLine)
	for {
		l, err := lines.ReadSlice('\n')
		if err == io.EOF && len(l) == 0 {
			break
		}
		if err == bufio.ErrBufferFull {
			return fmt.Errorf("a line of the answer is longer than %d bytes", maxUnpackedLine)
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("it does not unpack: %w", err)
		}
		if err == io.EOF || r.done || r.tool != "" {
			return errors.New("it does not end as it should")
		}
		if err := r.take(l[:len(l)-1]); err != nil {
			return err
		}
	}
	if r.tool == "" && !r.done {
		return errors.New("it is not complete")
	}
	r.listing.Bound()
	return nil
}

// take reads one line.
func (r *collectionsReply) take(l []byte) error {
	ok := false
	switch {
	case len(l) == 0:
	case l[0] == ' ':
		ok = r.bytes(l)
	case l[0] == '|':
		// An awk may print what it has read of a line, and a file may grow.
		if ok = r.file != nil && !r.file.whole && !r.file.full; ok {
			r.file.data = append(append(r.file.data, l[1:]...), '\n')
			ok = len(r.file.data) <= maxUnpackedLine
		}
	default:
		ok = r.word(l)
	}
	if !ok {
		return unexpected(l)
	}
	return nil
}

// bytes takes a line in hexadecimal.
func (r *collectionsReply) bytes(l []byte) bool {
	digits := bytes.ReplaceAll(l, []byte(" "), nil)
	raw, err := hex.AppendDecode(nil, digits)
	switch {
	case err != nil:
	case r.text != nil:
		r.hex = append(r.hex, raw...)
		return len(r.hex) <= maxTargetPath
	case r.file != nil && r.file.whole && !r.file.full:
		r.file.data = append(r.file.data, raw...)
		return len(r.file.data) <= skill.MaxFileBytes+1
	}
	return false
}

// word takes a line that begins with a word.
func (r *collectionsReply) word(l []byte) bool {
	word, rest, inline := strings.Cut(string(l), " ")
	if word == "full" {
		ok := !inline && r.file != nil && len(r.file.data) == 0 && !r.file.full
		if ok {
			r.file.full = true
		}
		return ok
	}
	if !r.settle() {
		return false
	}
	if take := r.taker(word); take != nil {
		if inline {
			return take(rest)
		}
		r.text = take
		return true
	}
	if r.listing.Home == "" {
		r.tool = rest
		return word == "tool" && rest != "" && !strings.Contains(rest, " ")
	}
	switch word {
	case "nodir":
		return r.noDir(discovery.Code(rest))
	case "in":
		return r.in(rest)
	case "done":
		r.done = true
		return !inline && (r.query.Dir == "" || r.listing.Dir != "") && r.close()
	}
	return r.c != nil && r.inCollection(word, rest, inline)
}

func oneOf(code discovery.Code, codes ...discovery.Code) bool { return slices.Contains(codes, code) }

// noDir says why there is no working directory.
func (r *collectionsReply) noDir(code discovery.Code) bool {
	if r.query.Dir == "" || r.listing.Home == "" || !r.beforeCollections() {
		return false
	}
	r.listing.Dir, r.listing.Problem = r.query.Dir, code
	if r.query.Dir == discovery.Home {
		r.listing.Dir = r.listing.Home
	}
	return oneOf(code, discovery.NoDirectory, discovery.Unreadable)
}

// beforeCollections reports whether nothing has been said of the working directory or collections.
func (r *collectionsReply) beforeCollections() bool { return r.c == nil && r.listing.Dir == "" }

// taker returns what takes the text after a word, nil for a word without one.
func (r *collectionsReply) taker(word string) func(string) bool {
	l := r.listing
	switch word {
	case "home":
		return func(p string) bool { return l.Home == "" && keepPath(&l.Home, p) }
	case "dir":
		return func(p string) bool {
			return l.Home != "" && r.query.Dir != "" && r.beforeCollections() && keepPath(&l.Dir, p)
		}
	case "repo":
		return func(p string) bool {
			return l.Dir != "" && l.Problem == "" && r.c == nil && l.Repository == "" && keepPath(&l.Repository, p) && depthBelow(l.Dir, p) >= 0
		}
	case "real":
		return func(p string) bool {
			return r.c != nil && r.c.Real == "" && r.c.Problem == "" && keepPath(&r.c.Real, p)
		}
	case "e":
		return r.entry
	case "link":
		return func(p string) bool {
			if r.e == nil || r.e.Link {
				return false
			}
			r.e.Link, r.e.Real = true, ""
			r.kept += len(p)
			return p == "" || keepPath(&r.e.Real, p)
		}
	}
	return nil
}

func keepPath(to *string, p string) bool {
	*to = p
	return path.IsAbs(p) && len(p) <= maxTargetPath && strings.IndexByte(p, 0) < 0
}

// depthBelow returns how many directories dir is below an ancestor or itself, -1 where it is not.
func depthBelow(dir, ancestor string) int {
	for depth := 0; ; depth++ {
		if dir == ancestor {
			return depth
		}
		if dir == "/" || dir == "." {
			return -1
		}
		dir = path.Dir(dir)
	}
}

// in begins a collection. They come in the order of the query.
func (r *collectionsReply) in(rest string) bool {
	if !r.close() {
		return false
	}
	first, second, _ := strings.Cut(rest, " ")
	n, depth := parseCount(first), parseCount(second)
	if n < int64(max(r.asked, 0)) || n >= int64(len(r.query.Roots)) || depth < 0 || depth > discovery.MaxAncestors ||
		n == int64(r.asked) && depth <= int64(r.depth) {
		return false
	}
	r.asked, r.depth = int(n), int(depth)
	p, ok := r.place(r.query.Roots[n], int(depth))
	r.c = &discovery.Collection{Root: r.query.Roots[n].ID, Path: p}
	r.names = make(map[string]bool)
	return ok
}

// place returns where a root's collection was looked for, from what was said of the directories.
func (r *collectionsReply) place(root discovery.Root, depth int) (string, bool) {
	l := r.listing
	kind := rootKind(root)
	if kind != kindWalk && depth != 0 {
		return "", false
	}
	switch kind {
	case kindAbsolute:
		return root.Path, true
	case kindHome:
		return path.Join(l.Home, strings.TrimPrefix(root.Path, "~")), true
	}
	top := 0
	if l.Repository != "" {
		top = depthBelow(l.Dir, l.Repository)
	}
	if l.Dir == "" || l.Problem != "" || depth > top {
		return "", false
	}
	dir := l.Dir
	for range depth {
		dir = path.Dir(dir)
	}
	return path.Join(dir, root.Path), true
}

// inCollection takes a word about the collection or its entry.
func (r *collectionsReply) inCollection(word, rest string, inline bool) bool {
	switch {
	case word == "shut":
		ok := r.e == nil && r.c.Problem == ""
		r.c.Problem = discovery.Code(rest)
		return ok && oneOf(r.c.Problem, discovery.Unreadable, discovery.NotDirectory)
	case word == "more":
		ok := !inline && r.c.Real != "" && r.c.Problem == "" && !r.c.More
		r.c.More = true
		return ok
	case word == "s" && r.next < len(r.waiting):
		size := parseCount(rest)
		if size < 0 && rest != "-" {
			return false
		}
		e := r.waiting[r.next]
		r.next++
		e.Size = max(size, 0)
		r.file = &headText{entry: e, size: size, full: size < 0 || size > skill.MaxFileBytes}
		switch {
		case size < 0:
			r.gone[e] = true
		case r.file.full:
			e.Problem = discovery.TooLarge
		}
		return true
	case word == "x" && !inline && r.next < len(r.waiting):
		r.file = &headText{entry: r.waiting[r.next], size: -1, whole: true}
		r.next++
		return true
	}
	return r.e != nil && r.inEntry(word, rest, inline)
}

// entry begins an entry.
func (r *collectionsReply) entry(name string) bool {
	if r.c == nil || r.e != nil && !r.entryEnds() || r.c.Real == "" || r.c.Problem != "" || r.c.More || r.names[name] || len(r.names) >= r.query.Roots[r.asked].Entries ||
		name == "" || name == "." || name == ".." || len(name) > maxTargetName || strings.ContainsAny(name, "/\x00") {
		return false
	}
	r.names[name] = true
	r.e = &discovery.Entry{Name: name}
	// What is past twice the bound need not be kept whole, for it will be taken off the listing.
	if r.kept += len(name) + len(r.c.Real); r.kept < 2*discovery.MaxListing {
		r.e.Real = strings.TrimSuffix(r.c.Real, "/") + "/" + name
	}
	r.entries = append(r.entries, r.e)
	return true
}

func (r *collectionsReply) inEntry(word, rest string, inline bool) bool {
	e := r.e
	switch {
	case r.entryEnds():
	case word == "file" && !inline && !e.FileLink:
		e.FileLink = true
		return true
	case word == "bad":
		code, size, sized := strings.Cut(rest, " ")
		e.Problem = discovery.Code(code)
		if sized && size != "-" {
			if e.Size = parseCount(size); e.Size < 0 {
				return false
			}
		}
		return oneOf(e.Problem, discovery.Unreadable, discovery.LinkDangles, discovery.LinkEscapes, discovery.NotRegular, discovery.Misnamed)
	case word == "f" && !inline:
		r.waiting = append(r.waiting, e)
		return true
	}
	return false
}
