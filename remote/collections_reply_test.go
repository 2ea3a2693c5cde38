//go:build linux

package remote

import (
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/skill"
)

func replyQuery() discovery.Query {
	return discovery.Query{Dir: "/r/a", Roots: []discovery.Root{
		{ID: 5, Path: ".s", Walk: true, Entries: 3}, {ID: 6, Path: "~/s", Entries: 2}, {ID: 7, Path: "/abs", Entries: 1},
	}}
}

// wholeReply is an answer to replyQuery in which everything occurs.
const wholeReply = "home /h\ndir /r/a\nrepo /r\n" +
	"in 0 0\nreal /r/a/.s\ne one\nf\ne two\nlink /x\nfile\nbad link-escapes 7\ne\n 41\n 0a 42\nf\nmore\ns 10\n|---\n|---\nx\n 2d 2d 2d 0a 00\n" +
	"in 0 1\nshut unreadable\nin 1 0\nreal /h/s\ne big\nf\ns 70000\nin 2 0\nreal /abs\ne gone\nf\ns -\ndone\n"

func readReply(q discovery.Query, body string) (*collectionsReply, error) {
	r := newCollectionsReply(q)
	return r, r.read([]byte(body))
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func TestAnAnswerAboutCollectionsIsReadPackedOrNot(t *testing.T) {
	want := &discovery.Listing{Home: "/h", Dir: "/r/a", Repository: "/r", Collections: []discovery.Collection{
		{Root: 5, Path: "/r/a/.s", Real: "/r/a/.s", More: true, Entries: []discovery.Entry{
			{Name: "A\nB", Real: "/r/a/.s/A\nB", Size: 5, Head: []byte("---\n\x00")},
			{Name: "one", Real: "/r/a/.s/one", Size: 10, Head: []byte("---\n---\n")},
			{Name: "two", Real: "/x", Link: true, FileLink: true, Size: 7, Problem: discovery.LinkEscapes},
		}},
		{Root: 5, Path: "/r/.s", Real: "/r/.s", Problem: discovery.Unreadable},
		{Root: 6, Path: "/h/s", Real: "/h/s", Entries: []discovery.Entry{{Name: "big", Real: "/h/s/big", Size: 70000, Problem: discovery.TooLarge}}},
		{Root: 7, Path: "/abs", Real: "/abs"},
	}}
	for _, body := range []string{wholeReply, zipped(wholeReply)} {
		r, err := readReply(replyQuery(), body)
		must(t, err)
		if r.torn {
			t.Error("it is said not to add up")
		}
		sameListing(t, r.listing, want)
	}
}

func TestAnAnswerThatWasNotAskedForIsRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"done\n", ""}, {"done\n", "done"}, {"done\n", "done\ndone\n"}, {"done\n", "done\nmore\n"}, {"done\n", "done x\n"},
		{"home /h", "home h"}, {"home /h\n", ""}, {"home /h\n", "home /h\nhome /h\n"}, {"home /h", "home"}, {"home /h", "home\n 2f 0"},
		{"home /h", "home\n zz"}, {"home /h", "home\n 2f00"}, {"dir /r/a\n", ""}, {"dir /r/a", "dir /r/a\ndir /r/a"},
		{"dir /r/a", "dir /" + strings.Repeat("x", 5000)}, {"dir /r/a", "nodir x"}, {"dir /r/a", "nodir unreadable"}, {"repo /r", "repo /q"},
		{"repo /r", "repo /r\nrepo /r"}, {"repo /r\n", ""}, {"in 0 1", "in 0 2"}, {"in 0 1", "in 0 0"}, {"in 0 1", "in 1 1"}, {"in 2 0", "in 3 0"},
		{"in 2 0", "in 0 0"}, {"in 2 0", "in -1 0"}, {"in 2 0", "in 2"}, {"in 2 0", "in 2 x"}, {"real /abs", "real abs"}, {"real /abs\n", ""},
		{"shut unreadable", "shut x"}, {"shut unreadable", "shut unreadable\nmore"}, {"shut unreadable", "shut unreadable\nreal /x"},
		{"e two", "e one"}, {"e two", "e .."}, {"e two", "e ."}, {"e two", "e "}, {"e two", "e a/b"}, {"e two", "e"}, {"e two", "e a\x00"}, {"e two", "e " + strings.Repeat("n", 256)},
		{"more\n", "more\ne x\n"}, {"more\n", "more\nmore\n"}, {"e big", "e x\nbad unreadable\ne y\nbad unreadable\ne big"},
		{"e one\nf", "e one"}, {"e one\nf", "e one\nf\nf"}, {"e one\nf", "e one\nbad x"}, {"e one\nf", "e one\nbad unreadable -1"},
		{"link /x", "link x"}, {"link /x", "link /x\nlink /x"}, {"file\n", "file\nfile\n"}, {"s 10", "s 10 1"}, {"s 10", "s -1"}, {"s 10", "s"},
		{"s 10\n", ""}, {"s 10", "s 10\n|\ns 1\ns 1\ns 1"}, {"s 10", "s 10\n 41"}, {"s 10", "s 10\nfull"}, {"s 70000", "s 70000\n|x"},
		{"x\n 2d", "x\n|\n 2d"}, {"\nx\n", "\nfull\n"}, {"s -", "s -\n|x"}, {"s 10", "s 10\n|" + strings.Repeat("x", maxUnpackedLine)},
		{"x\n 2d", "x\n " + strings.Repeat(strings.Repeat("41 ", 20_000)+"\n ", 4) + "2d"}, {"home", "tool a b"}, {"home", "what"}, {"more", "\nmore"},
		{"more", "x y"}, {"more", "what"},
	} {
		body := strings.Replace(wholeReply, c[0], c[1], 1)
		if body == wholeReply {
			t.Fatalf("%q changes nothing", c)
		}
		if r, err := readReply(replyQuery(), body); err == nil {
			t.Errorf("%.200q instead of %q is taken: %+v", c[1], c[0], r.listing)
		}
	}
}

func TestAHeadThatDoesNotAddUpIsNotTaken(t *testing.T) {
	for lines, torn := range map[string]bool{
		"s 8\n|---\n|---\n": false, "s 7\n|---\n|---\n": false, "s 6\n|---\n|---\n": true, "s 99\n|---\n|---\n": false,
		"s 10\n|---\n|name\n": true, "s 9\n|---\n|name\n": false, "s 8\n|---\n|name\n": false, "s 7\n|---\n|name\n": true,
		"s 10\n|---\n|---\n|body\n": true, "s 0\n": false, "s 1\n": true, "s 3\n|no\n": false, "s 2\n|no\n": false, "s 9\n|no\n": false, "s 1\n|no\n": true,
	} {
		r, err := readReply(discovery.Query{Roots: replyQuery().Roots[2:]}, "home /h\nin 0 0\nreal /abs\ne a\nf\n"+lines+"done\n")
		must(t, err)
		if r.torn != torn {
			t.Errorf("%q: it is torn: %v, want %v", lines, r.torn, torn)
		}
	}
}

func TestAnAnswerThatUnpacksWithoutEndIsCut(t *testing.T) {
	start := "home /h\nin 0 0\nreal /abs\ne a\nf\nx\n"
	bomb := zipped(start + strings.Repeat(" \n", maxUnpacked))
	if len(bomb) > discovery.MaxListing {
		t.Fatalf("%d bytes", len(bomb))
	}
	for _, body := range []string{bomb, bomb[:len(bomb)/2], "\x1f\x8b", "\x1f\x8bxxxxxxxxxxxxxxxxxxxxxx", zipped("home /h\n"), zipped(wholeReply) + "x"} {
		if _, err := readReply(replyQuery(), body); err == nil {
			t.Errorf("an answer of %d bytes was taken", len(body))
		}
	}
}

func TestAnAnswerThatIsNotLinesIsFoundInAnyPieces(t *testing.T) {
	nonce := strings.Repeat("0", nonceLen)
	for _, body := range []string{"", "x", "\n", "\nend:\n", "\nend:" + nonce[1:], "\n\n\x00\x1f", "begin:" + nonce + "\n"} {
		text := "noise\nbegin:" + nonce + "\n" + body + "\nend:" + nonce + "\nafter\n"
		for n := 1; n <= len(text); n++ {
			f := newFrame(nonce, 100, nil)
			for piece := range slices.Chunk([]byte(text), n) {
				_, err := f.Write(piece)
				must(t, err)
			}
			if string(f.body) != body || f.state != afterAnswer {
				t.Fatalf("in pieces of %d: %q in state %d, want %q", n, f.body, f.state, body)
			}
		}
	}
	f := newFrame(nonce, 100, nil)
	_, _ = f.Write([]byte("begin:" + nonce + "\n"))
	if _, err := f.Write(make([]byte, 200)); err == nil {
		t.Error("an answer over its limit was taken")
	}
}

func FuzzCollectionsReply(f *testing.F) {
	f.Add([]byte(wholeReply))
	f.Add([]byte(zipped(wholeReply)))
	f.Add([]byte("tool od\n"))
	f.Add([]byte("home /h\nnodir unreadable\ndone\n"))
	f.Add([]byte("home /h\ndir /r/a\nin 0 0\nreal /r/a/.s\ne a\nf\ns 3\n|abc\ndone\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		q := replyQuery()
		r := newCollectionsReply(q)
		if r.read(body) != nil || r.tool != "" {
			return
		}
		total := 0
		for _, c := range r.listing.Collections {
			i := slices.IndexFunc(q.Roots, func(root discovery.Root) bool { return root.ID == c.Root })
			if i < 0 || len(c.Entries) > q.Roots[i].Entries || !path.IsAbs(c.Path) || !path.IsAbs(c.Real) {
				t.Fatalf("the collection %+v", c)
			}
			for j, e := range c.Entries {
				total += len(e.Name) + len(e.Real) + len(e.Head)
				switch {
				case e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00"):
					t.Fatalf("the name %q", e.Name)
				case j > 0 && c.Entries[j-1].Name >= e.Name:
					t.Fatalf("%q before %q", c.Entries[j-1].Name, e.Name)
				case len(e.Head) > skill.MaxFileBytes || skill.Head(e.Head) != len(e.Head) || e.Problem != "" && e.Head != nil:
					t.Fatalf("the head %q with problem %q", e.Head, e.Problem)
				case !r.torn && int64(len(e.Head)) > e.Size:
					t.Fatalf("a head of %d in %d bytes", len(e.Head), e.Size)
				}
			}
		}
		if total > discovery.MaxListing {
			t.Fatalf("%d bytes", total)
		}
	})
}

func FuzzPathWord(f *testing.F) {
	f.Add("/home/a b'c")
	f.Fuzz(func(t *testing.T, p string) {
		w := pathWord(p)
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-.") != "" {
			t.Fatalf("%q is the word %q", p, w)
		}
	})
}
