package sftp

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/display"
)

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
