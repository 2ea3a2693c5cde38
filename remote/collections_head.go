package remote

import (
	"bytes"
	"slices"
	"strings"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

// settle ends what came in several lines, now that a word follows.
func (r *collectionsReply) settle() bool {
	if take := r.text; take != nil {
		text := string(r.hex)
		r.text, r.hex = nil, nil
		if text == "" || !take(text) {
			return false
		}
	}
	if f := r.file; f != nil {
		r.file = nil
		r.head(f)
	}
	return true
}

// head holds what was sent of a file to what a head is.
func (r *collectionsReply) head(f *headText) {
	e := f.entry
	if e.Problem != "" || r.gone[e] {
		return
	}
	if f.full || r.kept > 2*discovery.MaxListing {
		e.Problem = discovery.ListingFull
		return
	}
	if f.whole {
		if e.Size = int64(len(f.data)); e.Size > skill.MaxFileBytes {
			e.Problem = discovery.TooLarge
			return
		}
	} else if int64(len(f.data)) == f.size+1 {
		// The last line has no end.
		f.data = f.data[:f.size]
	}
	n := skill.Head(f.data)
	// Where the frontmatter does not end, neither may what was sent before the file does.
	cut := n == len(f.data) && !endsHead(f.data)
	if n != len(f.data) && !f.whole || int64(n) > e.Size || cut && int64(n) != e.Size {
		r.torn = true
		return
	}
	e.Head = bytes.Clone(f.data[:n])
	r.kept += n
}

// endsHead reports whether data, which is a head, is that of any file that begins with it.
func endsHead(data []byte) bool {
	const more = "x\n"
	return bytes.HasSuffix(data, []byte("\n")) && skill.Head(append(bytes.Clone(data), more...)) == len(data)
}

// close ends the collection.
func (r *collectionsReply) close() bool {
	if r.c == nil {
		return r.listing.Home != ""
	}
	if r.next != len(r.waiting) || r.c.Real == "" && r.c.Problem == "" || r.e != nil && !r.entryEnds() {
		return false
	}
	if r.c.Real == "" {
		r.c.Real = r.c.Path
	}
	slices.SortFunc(r.entries, func(x, y *discovery.Entry) int { return strings.Compare(x.Name, y.Name) })
	for _, e := range r.entries {
		if !r.gone[e] {
			r.c.Entries = append(r.c.Entries, *e)
		}
	}
	r.listing.Collections = append(r.listing.Collections, *r.c)
	r.c, r.e, r.entries, r.names, r.waiting, r.next = nil, nil, nil, nil, nil, 0
	return true
}

// entryEnds reports whether all there is to say of the entry was said.
func (r *collectionsReply) entryEnds() bool {
	return r.e.Problem != "" || len(r.waiting) > 0 && r.waiting[len(r.waiting)-1] == r.e
}
