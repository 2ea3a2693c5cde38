package remote

import (
	"context"
	"fmt"
	"io"

	"github.com/punnet/punnet/bundle"
)

const (
	// blindBytes is how much content is sent without knowing whether the target lacks it. It packs
	// to less, and waiting for the answer costs hardly more, so the bound need not be fine.
	blindBytes = 256 << 10
	// deltaBytes is how much content has to be there already for sending only the rest: below it
	// the list of what is there costs as much.
	deltaBytes = 512
)

// blind reports whether the bundles are sent before the target has said what it lacks: little, and
// nothing that may be there in part or whole.
func (s *stream) blind() (bool, error) {
	var total int64
	for _, it := range s.items {
		if believed := s.w.o.Believed; believed != nil && believed(it.digest()) || it.older != nil {
			return false, nil
		}
		for _, e := range it.Manifest.Entries() {
			if e.Kind == bundle.Dir {
				continue
			}
			n, err := it.Size(e)
			if err != nil {
				return false, err
			}
			if total += n; total > blindBytes {
				return false, nil
			}
		}
	}
	return true, nil
}

// plan is what is sent of one bundle.
type plan struct {
	skip   bool            // nothing is sent
	keep   map[string]bool // paths that are copied from what is there; nil sends everything
	weight int64           // for sharing out what was sent
}

// plan decides from the target's answer what to send.
func (s *stream) plan(r *reply) {
	for i, it := range s.items {
		a, p := r.asked[it.digest()], &s.plans[i]
		switch {
		case a.state == "ok":
			p.skip = true
		case it.whole:
		case a.state == "damaged":
			p.keep = worthKeeping(it.Bundle, a.intact)
		case a.state == "older":
			p.keep = worthKeeping(it.Bundle, unchanged(it.Manifest, it.older))
		}
		s.w.log.Debug("target answered", "digest", it.digest().Short(), "state", a.state, "keeps", len(p.keep))
	}
}

// unchanged returns the paths of m's files that are the same in an older manifest.
func unchanged(m, older *bundle.Manifest) map[string]bool {
	have := manifestLines(older)
	same := make(map[string]bool)
	for l, p := range manifestLines(m) {
		if _, ok := have[l]; ok {
			same[p] = true
		}
	}
	return same
}

// worthKeeping returns keep, or nil where naming what is kept would cost as much as sending it.
func worthKeeping(b *bundle.Bundle, keep map[string]bool) map[string]bool {
	var saved int64
	for _, e := range b.Manifest.Entries() {
		if keep[e.Path] {
			if n, err := b.Size(e); err == nil {
				saved += n
			}
		}
	}
	if saved < deltaBytes {
		return nil
	}
	return keep
}

// pack writes the stream: the bundles, beside each that is not sent whole a list of what is to be
// copied, and at the end a file that tells the target that there is no more.
func (s *stream) pack(ctx context.Context, w io.Writer) error {
	p, err := bundle.NewPacker(w, bundle.Gzip)
	if err != nil {
		return err
	}
	for i, it := range s.items {
		pl := &s.plans[i]
		if pl.skip {
			continue
		}
		pl.weight = 1
		err := p.Add(ctx, it.Bundle, func(e bundle.Entry) bool {
			if pl.keep[e.Path] {
				return false
			}
			pl.weight += 512
			if n, err := it.Size(e); err == nil {
				pl.weight += n
			}
			return true
		})
		if err == nil && pl.keep != nil {
			err = p.AddData(it.digest().String()+".keep", bundle.File, keepList(it.Manifest, pl.keep))
		}
		if err != nil {
			return err
		}
	}
	if err := p.AddData("end", bundle.File, nil); err != nil {
		return err
	}
	return p.Close()
}

// keepList returns a line for each path that is kept.
func keepList(m *bundle.Manifest, keep map[string]bool) []byte {
	var list []byte
	for _, e := range m.Entries() {
		if keep[e.Path] {
			list = fmt.Appendf(list, "./%s\n", e.Path)
		}
	}
	return list
}

// share adds the bytes that were sent to the results, by what each bundle put into the stream.
func (s *stream) share(n int64) {
	var total int64
	last := -1
	for i, p := range s.plans {
		if total += p.weight; p.weight > 0 {
			last = i
		}
	}
	left := n
	for i, p := range s.plans {
		if p.weight == 0 {
			continue
		}
		part := int64(float64(n) * float64(p.weight) / float64(total))
		if i == last {
			part = left
		}
		s.results[i].Sent += part
		left -= part
	}
}
