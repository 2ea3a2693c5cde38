package discovery

import (
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/punnet/punnet/skill"
)

func randomListings(r *rand.Rand) []*Listing {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var all []*Listing
	for range 1 + r.IntN(2) {
		l := &Listing{}
		for i := range r.IntN(4) {
			c := Collection{Root: r.IntN(3), Path: fmt.Sprintf("/c%d", i), Real: fmt.Sprintf("/c%d", i), More: r.IntN(4) == 0}
			if i > 0 && r.IntN(3) == 0 { // one that is there already, by a link
				c.Real, c.Entries = l.Collections[0].Real, slices.Clone(l.Collections[0].Entries)
				l.Collections = append(l.Collections, c)
				continue
			}
			for _, name := range []string{"a", "b", "c", "d", "e"}[:r.IntN(6)] {
				e := Entry{Name: name, Real: path.Join(c.Real, name), Head: []byte(front(pick("a", "b", "c", "B"), "d"))}
				switch r.IntN(6) {
				case 0:
					e = linked(e, path.Join(pick("/c0", "/c1", "/x"), pick("a", "b", "")))
				case 1:
					e.Head, e.Problem = nil, Code(pick(string(LinkDangles), string(Misnamed), string(TooLarge)))
				case 2:
					e.FileLink = true
				}
				c.Entries = append(c.Entries, e)
			}
			l.Collections = append(l.Collections, c)
		}
		all = append(all, l)
	}
	return all
}

func FuzzBuild(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed, seed%2 == 0, seed%3 == 0, uint8(seed%5))
	}
	f.Fuzz(func(t *testing.T, seed uint64, trusted, noLinks bool, limit uint8) {
		r := rand.New(rand.NewPCG(seed, 1))
		listings := randomListings(r)
		p := policy(trusted)
		p.NoLinks, p.Skills = noLinks, int(limit)
		// Told of everything, no entry may go without a word.
		p.Severities = Severities{DuplicateName: skill.Warning, LinkedTwice: skill.Warning}
		c := Build(p, listings...)
		checkCatalog(t, p, listings, c)
		for _, l := range listings {
			for _, coll := range l.Collections {
				r.Shuffle(len(coll.Entries), func(i, j int) { coll.Entries[i], coll.Entries[j] = coll.Entries[j], coll.Entries[i] })
			}
		}
		if again := Build(p, listings...); !reflect.DeepEqual(c, again) {
			t.Fatalf("in another order\n%q became\n%q", outcome(c), outcome(again))
		}
	})
}

func checkCatalog(t *testing.T, p Policy, listings []*Listing, c *Catalog) {
	t.Helper()
	visible := make(map[string]string)
	listed := make(map[string]int)
	overLimit := false
	for _, s := range c.Skills {
		if s.State == Visible {
			if _, twice := visible[s.Name]; twice {
				t.Fatalf("%s is visible twice: %q", s.Name, outcome(c))
			}
			visible[s.Name] = s.Path
		}
	}
	for _, d := range c.Diagnostics {
		listed[d.Path]++
		overLimit = overLimit || d.Code == string(TooManySkills)
	}
	for _, s := range c.Skills {
		listed[s.Path]++
		if s.State == Shadowed && visible[s.Name] != s.ShadowedBy || s.State != Shadowed && s.ShadowedBy != "" {
			t.Fatalf("%s is shadowed by %s: %q", s.Path, s.ShadowedBy, outcome(c))
		}
		if (s.State == Untrusted) != (s.Scope == "project" && !p.Trusted) {
			t.Fatalf("%s is %s: %q", s.Path, s.State, outcome(c))
		}
	}
	if p.Skills > 0 && len(visible) > p.Skills || overLimit && len(visible) != p.Skills {
		t.Fatalf("%d skills of %d: %q", len(visible), p.Skills, outcome(c))
	}
	for _, l := range listings {
		reals := make(map[string]bool) // what this machine lists, or tells of
		for _, coll := range l.Collections {
			for _, e := range coll.Entries {
				at := path.Join(coll.Path, e.Name)
				if listed[at]+listed[at+"/SKILL.md"]+listed[at+"/skill.md"] > 0 {
					reals[e.Real], reals[coll.Real] = true, true
				}
			}
		}
		for _, coll := range l.Collections {
			for _, e := range coll.Entries {
				if !overLimit && !reals[e.Real] && !reals[coll.Real] {
					t.Fatalf("nothing is said of %s in %s: %q", e.Name, coll.Path, outcome(c))
				}
			}
		}
	}
}
