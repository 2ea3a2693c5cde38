package sftp

import (
	"fmt"
	"io/fs"
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
