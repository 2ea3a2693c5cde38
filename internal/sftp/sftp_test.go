package sftp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/display"
)

// scripted is an SFTP server that answers each request with what answer returns: whole packets, or
// any bytes.
func scripted(t *testing.T, exts []string, answer func(kind byte, id uint32, body *reply) []byte) *FS {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	go func() {
		defer far.Close()
		for {
			var head [4]byte
			if _, err := io.ReadFull(far, head[:]); err != nil {
				return
			}
			data := make([]byte, binary.BigEndian.Uint32(head[:]))
			if _, err := io.ReadFull(far, data); err != nil {
				return
			}
			var out []byte
			if data[0] == fxInit {
				m := message{0, 0, 0, 0, fxVersion}.u32(3)
				for _, e := range exts {
					m = m.str(e).str("1")
				}
				out = m.done()
			} else {
				out = answer(data[0], binary.BigEndian.Uint32(data[1:]), &reply{data: data[5:]})
			}
			if out == nil {
				return
			}
			if _, err := far.Write(out); err != nil {
				return
			}
		}
	}()
	c, err := Start(near, near, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); c.Wait() })
	return c.Files(t.Context())
}

// wantIs checks an error's meaning and that it names the path as file errors do.
func wantIs(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v; want %v", what, err, want)
	}
	_, one := errors.AsType[*fs.PathError](err)
	_, two := errors.AsType[*os.LinkError](err)
	if err != nil && !one && !two {
		t.Errorf("%s: %T is neither a PathError nor a LinkError", what, err)
	}
}

func statusReply(id, code uint32, text string) []byte {
	return newMessage(fxStatus, id).u32(code).str(text).str("").done()
}

func handleReply(id uint32) []byte { return newMessage(fxHandle, id).str("h").done() }

func fileAttrs(m message, mode uint32, size uint64) message {
	return m.u32(attrSize | attrPerm).u64(size).u32(mode)
}

func TestAServerCannotMakeUsHoldMoreThanWasAskedFor(t *testing.T) {
	huge := func(kind byte, id uint32, size uint32) []byte {
		m := newMessage(kind, id)
		binary.BigEndian.PutUint32(m, size)
		return append(m, make([]byte, 1000)...) // the rest never comes, and is not waited for
	}
	for name, answer := range map[string]func(kind byte, id uint32, body *reply) []byte{
		"a reply of 4 GiB":            func(_ byte, id uint32, _ *reply) []byte { return huge(fxAttrs, id, 1<<32-1) },
		"a reply of 1 MiB":            func(_ byte, id uint32, _ *reply) []byte { return huge(fxAttrs, id, 1<<20) },
		"a reply above its own limit": func(_ byte, id uint32, _ *reply) []byte { return huge(fxAttrs, id, statusBytes+1) },
		"a reply too short to be one": func(_ byte, id uint32, _ *reply) []byte { return huge(fxAttrs, id, 4) },
		"a reply nobody asked for":    func(_ byte, id uint32, _ *reply) []byte { return statusReply(id+7, statusOK, "") },
		"a reply of another kind":     func(_ byte, id uint32, _ *reply) []byte { return newMessage(fxData, id).str("x").done() },
		"success without a result":    func(_ byte, id uint32, _ *reply) []byte { return statusReply(id, statusOK, "") },
		"attributes cut short":        func(_ byte, id uint32, _ *reply) []byte { return newMessage(fxAttrs, id).u32(attrSize).done() },
		"extended attributes without end": func(_ byte, id uint32, _ *reply) []byte {
			return newMessage(fxAttrs, id).u32(attrExt).u32(1<<32 - 1).done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := scripted(t, nil, answer)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := fsys.Lstat("/x")
			runtime.ReadMemStats(&after)
			wantIs(t, "lstat", err, ErrProtocol)
			if grew := after.TotalAlloc - before.TotalAlloc; grew > 1<<20 {
				t.Errorf("%d bytes were allocated", grew)
			}
		})
	}
}

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

// TestReport21SFTP658: a server that sends less than it was asked for had part of a file dropped, and
// the copy passed for complete. A connection that ends within a file must not either.
func TestReport21SFTP658(t *testing.T) {
	content := []byte(strings.Repeat("0123456789", 20000))
	fsys := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		if kind != fxRead {
			return handleReply(id)
		}
		body.str()
		off, n := body.u64(), uint64(body.u32())
		if off >= uint64(len(content)) {
			return statusReply(id, statusEOF, "")
		}
		end := min(off+n, off+1+n/3, uint64(len(content))) // a third of what was asked for
		return newMessage(fxData, id).bytes(content[off:end]).done()
	})
	got, err := fsys.ReadFile("/f", 1<<20)
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes, %v", len(got), len(content), err)
	}
	empty := scripted(t, nil, func(kind byte, id uint32, _ *reply) []byte {
		if kind == fxRead {
			return newMessage(fxData, id).bytes(nil).done()
		}
		return handleReply(id)
	})
	_, err = empty.ReadFile("/f", 1<<20)
	wantIs(t, "data without data", err, ErrProtocol)
	cut := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		switch body.str(); {
		case kind != fxRead:
			return handleReply(id)
		case body.u64() == 0:
			return newMessage(fxData, id).bytes(content[:100]).done()
		}
		return nil // ends the connection
	})
	got, err = cut.ReadFile("/f", 1<<20)
	wantIs(t, "a connection that ended", err, ErrLost)
	if len(got) > 0 || errors.Is(err, io.EOF) {
		t.Errorf("a connection that ended: %d bytes, %v", len(got), err)
	}
}

func TestAFullFileSystemIsRecognised(t *testing.T) {
	for name, c := range map[string]struct {
		text          string
		bytes, inodes uint64
		want          bool
	}{
		"OpenSSH, no blocks": {"Failure", 0, 100, true},
		"OpenSSH, no inodes": {"Failure", 100, 0, true},
		"OpenSSH, room left": {"Failure", 100, 100, false},
		"in words":           {"write /x: no space left on device", 100, 100, true},
		"quota":              {"disk quota exceeded", 100, 100, true},
	} {
		fsys := scripted(t, []string{extStatvfs}, func(kind byte, id uint32, _ *reply) []byte {
			switch kind {
			case fxExtended:
				m := newMessage(fxExtReply, id)
				for _, v := range []uint64{4096, 4096, 1000, 0, c.bytes, 1000, 0, c.inodes, 0, 0, 255} {
					m = m.u64(v)
				}
				return m.done()
			case fxOpen:
				return handleReply(id)
			case fxLstat:
				return statusReply(id, statusNoFile, "No such file")
			case fxWrite, fxMkdir:
				return statusReply(id, statusFailure, c.text)
			}
			return statusReply(id, statusOK, "")
		})
		w, err := fsys.Create("/f", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("data"))
		for what, err := range map[string]error{"write": w.Close(), "mkdir": fsys.Mkdir("/d", 0o700)} {
			if err == nil || errors.Is(err, ErrNoSpace) != c.want || errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
	}
}

func TestTheFirstFailureOfAFileIsTheOneReported(t *testing.T) {
	fsys := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		switch kind {
		case fxOpen:
			return handleReply(id)
		case fxWrite:
			return statusReply(id, statusPermission, "the first")
		}
		return statusReply(id, statusFailure, "a later one")
	})
	w, err := fsys.Create("/f", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("data"))
	w.SetModTime(time.Now())
	if err := w.Close(); err == nil {
		t.Error("every step failed and Close was content")
	}
	lost := scripted(t, nil, func(kind byte, id uint32, body *reply) []byte {
		switch kind {
		case fxOpen:
			return handleReply(id)
		case fxClose:
			return statusReply(id, statusFailure, "the last block could not be written")
		}
		return statusReply(id, statusOK, "")
	})
	if w, err = lost.Create("/f", 0o600); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("data"))
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "last block") {
		t.Errorf("a failed close: %v", err)
	}
}

func TestARenameToItselfIsNotSent(t *testing.T) {
	for _, exts := range [][]string{nil, {extPosixRename}} {
		fsys := scripted(t, exts, func(kind byte, id uint32, _ *reply) []byte {
			if kind != fxLstat {
				t.Errorf("request of type %d", kind)
			}
			return fileAttrs(newMessage(fxAttrs, id), 0o100600, 4).done()
		})
		if err := fsys.Rename("/a/f", "/a/./f"); err != nil {
			t.Error(err)
		}
	}
}

func TestAPlainRenameIsNotPutToTheTest(t *testing.T) {
	fsys := scripted(t, nil, func(kind byte, id uint32, _ *reply) []byte {
		if kind == fxRename {
			t.Error("a rename onto an existing name was sent to a server that may replace it")
			return statusReply(id, statusOK, "")
		}
		return fileAttrs(newMessage(fxAttrs, id), 0o040700, 4).done()
	})
	wantIs(t, "rename", fsys.Rename("/a", "/b"), fs.ErrExist)
}

func TestAServersWordsAreQuotedAndBounded(t *testing.T) {
	text := "\x1b[2Jyou\u202e are fine\n" + strings.Repeat("!", 4000)
	fsys := scripted(t, nil, func(_ byte, id uint32, _ *reply) []byte { return statusReply(id, statusFailure, text) })
	_, err := fsys.Lstat("/x\x1b[31m")
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\n\u202e") || len(err.Error()) > 2*display.SaidBytes {
		t.Errorf("got %q", err)
	}
	if !strings.Contains(err.Error(), "are fine") {
		t.Errorf("the server's words are gone: %v", err)
	}
}

func TestAServerThatEndsIsSaidAtOnce(t *testing.T) {
	fsys := scripted(t, nil, func(byte, uint32, *reply) []byte { return nil })
	_, err := fsys.Lstat("/x")
	wantIs(t, "lstat", err, ErrLost)
	_, err = fsys.Lstat("/x")
	wantIs(t, "again", err, ErrLost)
}

func FuzzSkipToVersion(f *testing.F) {
	version := string(message{0, 0, 0, 0, fxVersion}.u32(3).str("posix-rename@openssh.com").str("1").done())
	f.Add("", version)
	f.Add("Welcome\n", version)
	f.Add("\x00\x00\x00", version)
	f.Add(version[:8], version[4:])
	f.Add(string(hello()), version)
	f.Add(strings.Repeat("\x00", 100), version)
	f.Fuzz(func(t *testing.T, noise, rest string) {
		r := bufio.NewReaderSize(strings.NewReader(noise+rest), 64<<10)
		kept, err := skipToVersion(r)
		if len(kept) > display.SaidBytes {
			t.Fatalf("%d bytes kept", len(kept))
		}
		at := findVersion(noise + rest)
		if echo := strings.Index(noise+rest, string(hello())); echo >= 0 && echo < at {
			at = -1
		}
		if (err == nil) != (at >= 0 && at <= MaxNoise) {
			t.Fatalf("version at %d, error %v", at, err)
		}
		if err != nil {
			return
		}
		left, err := io.ReadAll(r)
		if err != nil || string(left) != (noise + rest)[at:] {
			t.Fatalf("left at %d bytes before the end, want %d", len(left), len(noise+rest)-at)
		}
	})
}

// findVersion is what skipToVersion promises, in other words.
func findVersion(s string) int {
	for i := 0; i+9 <= len(s); i++ {
		if s[i:i+2] == "\x00\x00" && s[i+4:i+9] == "\x02\x00\x00\x00\x03" {
			return i
		}
	}
	return -1
}

func FuzzReply(f *testing.F) {
	f.Add(byte(fxAttrs), []byte{0, 0, 0, 0x0f})
	f.Add(byte(fxName), []byte(newMessage(0, 0).u32(1).str("n").str("").u32(0))[9:])
	f.Add(byte(fxStatus), []byte{0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(byte(fxExtReply), make([]byte, 88))
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		for _, want := range []byte{fxStatus, fxAttrs, fxName, fxData, fxHandle, fxExtReply} {
			r := &reply{kind: kind, data: data}
			if err := r.check(want); err != nil {
				_ = err.Error()
				continue
			}
			a := (&reply{data: r.data}).attrs()
			fi := fileInfo{"x", a}
			if fi.Size() < 0 {
				t.Fatalf("size %d", fi.Size())
			}
			_, _, _ = fi.Mode(), fi.ModTime(), fi.IsDir()
			if name, err := (&reply{data: r.data}).onePath(); err == nil && len(name) > MaxName {
				t.Fatalf("a name of %d bytes", len(name))
			}
			n := &reply{data: r.data}
			if n.str(); !n.bad && len(n.data) > len(data) {
				t.Fatal("a reply that grows")
			}
		}
	})
}
