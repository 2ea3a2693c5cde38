package sftp

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestAnEndlessListingEnds(t *testing.T) {
	list := func(n int, name func(i int) string) func(kind byte, id uint32, body *reply) []byte {
		return func(kind byte, id uint32, _ *reply) []byte {
			if kind != fxReaddir {
				return handleReply(id)
			}
			m := newMessage(fxName, id).u32(uint32(n))
			for i := range n {
				m = fileAttrs(m.str(name(i)).str("-rw-r--r-- long name"), 0o100600, 1)
			}
			return m.done()
		}
	}
	dots := func(int) string { return "." }
	_, err := scripted(t, nil, list(100, dots)).ReadDir("/d", 10)
	wantIs(t, "nothing but dots", err, ErrTooLarge)
	entries, err := scripted(t, nil, list(100, func(i int) string { return fmt.Sprint(i) })).ReadDir("/d", 1000)
	wantIs(t, "more and more names", err, ErrTooLarge)
	if len(entries) != 1000 {
		t.Errorf("%d entries", len(entries))
	}
	_, err = scripted(t, nil, list(0, nil)).ReadDir("/d", 10)
	wantIs(t, "empty batches", err, ErrProtocol)
	_, err = scripted(t, nil, list(1, func(int) string { return strings.Repeat("n", MaxName+1) })).ReadDir("/d", 10)
	wantIs(t, "a name longer than any", err, ErrProtocol)
}

func TestHostileNamesArriveAsTheyWereSent(t *testing.T) {
	names := []string{"../../etc/passwd", "/etc/passwd", "a/b", "", "new\nline", "\x1b[31m", "\xff\xfe", `back\slash`, "..."}
	sent := false
	fsys := scripted(t, nil, func(kind byte, id uint32, _ *reply) []byte {
		switch {
		case kind == fxReaddir && !sent:
			sent = true
			m := newMessage(fxName, id).u32(uint32(len(names) + 2))
			for _, n := range append([]string{".", ".."}, names...) {
				m = fileAttrs(m.str(n).str(""), 0o100600, 1)
			}
			return m.done()
		case kind == fxReaddir:
			return statusReply(id, statusEOF, "")
		}
		return handleReply(id)
	})
	list, err := fsys.ReadDir("/d", 100)
	if err != nil || len(list) != len(names) {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	for i, fi := range list {
		if fi.Name() != names[i] {
			t.Errorf("got %q, want %q", fi.Name(), names[i])
		}
	}
}

func TestANameWithoutAModeIsLookedAt(t *testing.T) {
	sent := false
	fsys := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		switch {
		case kind == fxReaddir && !sent:
			sent = true
			return newMessage(fxName, id).u32(2).str("link").str("").u32(0).str("../up").str("").u32(0).done()
		case kind == fxReaddir:
			return statusReply(id, statusEOF, "")
		case kind == fxLstat:
			if name := body.str(); name != "/d/link" {
				t.Errorf("asked about %q", name)
			}
			return fileAttrs(newMessage(fxAttrs, id), 0o120777, 4).done()
		}
		return handleReply(id)
	})
	list, err := fsys.ReadDir("/d", 100)
	if err != nil || len(list) != 2 || list[0].Mode().Type() != fs.ModeSymlink || list[1].Mode().IsRegular() {
		t.Errorf("%v, %v", list, err)
	}
}

// inBatches is a server with one directory.
func inBatches(batches ...[]string) answers {
	next := 0
	return func(kind byte, id uint32, _ *reply) []byte {
		switch {
		case kind == fxOpendir:
			next = 0
			return handleReply(id)
		case kind != fxReaddir:
			return statusReply(id, statusOK, "")
		case next == len(batches):
			return statusReply(id, statusEOF, "")
		}
		next++
		return names(id, batches[next-1]...)
	}
}

func numbered(n, batch int) (batches [][]string) {
	for i := range n {
		if i%batch == 0 {
			batches = append(batches, nil)
		}
		batches[i/batch] = append(batches[i/batch], fmt.Sprint(i))
	}
	return batches
}

func wantNumbered(t *testing.T, list []fs.FileInfo, err error, n int) {
	t.Helper()
	seen := make(map[string]bool)
	for _, fi := range list {
		seen[fi.Name()] = true
	}
	if err != nil || len(list) != n || len(seen) != n {
		t.Errorf("%d entries, %d different, want %d; %v", len(list), len(seen), n, err)
	}
}

func TestAListingIsWholeHoweverManyBatchesItHas(t *testing.T) {
	for n := range 40 {
		list, err := scripted(t, nil, inBatches(numbered(n, 1)...)).ReadDir("/d", 100)
		wantNumbered(t, list, err, n)
	}
}

// TestAListingIsWholeInAnyOrder has a server serve each flight last request first, so that the end is
// said to requests that came before those with the last names.
func TestAListingIsWholeInAnyOrder(t *testing.T) {
	for n := range 3 * firstNames {
		inOrder := inBatches(numbered(n, 1)...)
		var held []uint32
		flight := firstNames
		list, err := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
			if kind != fxReaddir {
				return inOrder(kind, id, body)
			}
			if held = append(held, id); len(held) < flight {
				return []byte{}
			}
			var out []byte
			for _, id := range slices.Backward(held) {
				out = append(out, inOrder(kind, id, body)...)
			}
			held, flight = nil, 2*flight
			return out
		}).ReadDir("/d", 100)
		wantNumbered(t, list, err, n)
	}
}

// TestWhatIsSaidPastTheEndOfAListingIsNoFailure has a server close a directory at its end by itself.
func TestWhatIsSaidPastTheEndOfAListingIsNoFailure(t *testing.T) {
	for _, code := range []uint32{statusFailure, statusBadMessage, 9} {
		inOrder := inBatches(numbered(3, 2)...)
		ended := false
		list, err := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
			out := inOrder(kind, id, body)
			if ended && kind == fxReaddir {
				return statusReply(id, code, "invalid handle")
			}
			ended = ended || out[4] == fxStatus
			return out
		}).ReadDir("/d", 100)
		wantNumbered(t, list, err, 3)
	}
}

// TestAServerThatReadsADirectoryForOneRequestAtATimeIsAskedSo has each request for names refused that
// comes while another is not answered, and checks that one handle is open at a time.
func TestAServerThatReadsADirectoryForOneRequestAtATimeIsAskedSo(t *testing.T) {
	inOrder := inBatches(numbered(6, 2)...)
	asked, open := 0, 0
	var first []byte
	fsys := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		out := inOrder(kind, id, body)
		switch kind {
		case fxOpendir:
			asked++
			if open++; open > 1 {
				return statusReply(id, statusFailure, "too many handles")
			}
		case fxClose:
			open--
		case fxReaddir:
			if asked > 1 {
				return out
			}
			if first == nil {
				first = out
				return []byte{} // answered when the second was refused
			}
			out = append(statusReply(id, statusFailure, "already running"), first...)
			first = []byte{}
			return out
		}
		return out
	})
	list, err := fsys.ReadDir("/d", 100)
	wantNumbered(t, list, err, 6)
	if asked != 2 {
		t.Errorf("listed %d times", asked)
	}
	broken := 0
	_, err = scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		switch kind {
		case fxOpendir:
			broken++
			return handleReply(id)
		case fxReaddir:
			return statusReply(id, statusFailure, "input/output error")
		}
		return statusReply(id, statusOK, "")
	}).ReadDir("/d", 100)
	if err == nil || broken != 2 {
		t.Errorf("a directory that cannot be read: %v after %d attempts", err, broken)
	}
}
