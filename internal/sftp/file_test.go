package sftp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

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

func TestAFileIsReadToItsEndWhateverItsSizeIsSaidToBe(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5000) // 80000 bytes
	for name, c := range map[string]struct {
		content string
		size    int64
		most    int
	}{
		"as it is":                         {long[:5000], 5000, 1 << 20},
		"too small":                        {long[:5000], 3000, 1 << 20},
		"too large":                        {long[:5000], 9000, 1 << 20},
		"none, as of files in proc":        {long[:5000], 0, 1 << 20},
		"a page, as of files in sys":       {long[:7], 4096, 1 << 20},
		"not said":                         {long[:5000], -1, 1 << 20},
		"empty":                            {"", 0, 1 << 20},
		"in pieces":                        {long, 80000, 1000},
		"in pieces, one chunk":             {long[:chunkBytes], chunkBytes, 10000},
		"as the first piece, but it grew":  {long, 20000, 20000},
		"as a later piece, but it grew":    {long, 60000, 20000},
		"a whole chunk":                    {long[:chunkBytes], chunkBytes, 1 << 20},
		"two whole chunks":                 {long[:2*chunkBytes], 2 * chunkBytes, 1 << 20},
		"a byte more than a flight of two": {long[:2*chunkBytes+1], 2*chunkBytes + 1, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := scripted(t, nil, holding(c.content, c.size, c.most)).ReadFile("/f", 1<<20)
			if err != nil || string(got) != c.content {
				t.Errorf("%d of %d bytes, %v", len(got), len(c.content), err)
			}
			n := int64(len(c.content))
			if _, err := scripted(t, nil, holding(c.content, c.size, c.most)).ReadFile("/f", n-1); n > 0 {
				wantIs(t, "a byte over the limit", err, ErrTooLarge)
			}
		})
	}
}
