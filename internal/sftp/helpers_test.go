package sftp

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// answers is what a server says to a request: whole packets, or any bytes. Nil ends the connection.
type answers func(kind byte, id uint32, body *reply) []byte

// scripted is an SFTP server with such answers.
func scripted(t *testing.T, exts []string, answer answers) *FS {
	t.Helper()
	return distant(t, 0, exts, answer)
}

// distant is scripted, over a line on which a round trip takes this long.
func distant(t *testing.T, away time.Duration, exts []string, answer answers) *FS {
	t.Helper()
	near, far := net.Pipe()
	var wg sync.WaitGroup
	t.Cleanup(func() { near.Close(); far.Close(); wg.Wait() })
	type delayed struct {
		due   time.Time
		bytes []byte
	}
	line := make(chan delayed, 1000)
	wg.Go(func() {
		defer far.Close()
		for d := range line {
			time.Sleep(time.Until(d.due))
			_, _ = far.Write(d.bytes) // a client that is gone has closed the pipe
		}
	})
	wg.Go(func() {
		defer close(line)
		for {
			kind, id, body := readRequest(far)
			var out []byte
			if kind == fxInit {
				m := message{0, 0, 0, 0, fxVersion}.u32(3)
				for _, e := range exts {
					m = m.str(e).str("1")
				}
				out = m.done()
			} else if kind != 0 {
				out = answer(kind, id, body)
			}
			if out == nil {
				return
			}
			line <- delayed{time.Now().Add(away), out}
		}
	})
	c, err := Start(near, near, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); c.Wait() })
	return c.Files(t.Context())
}

// readRequest returns a kind of 0 at the end of r.
func readRequest(r io.Reader) (kind byte, id uint32, body *reply) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, nil
	}
	data := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, 0, nil
	}
	return data[0], binary.BigEndian.Uint32(data[1:]), &reply{data: data[5:]}
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

// names is a batch of a listing.
func names(id uint32, list ...string) []byte {
	m := newMessage(fxName, id).u32(uint32(len(list)))
	for _, n := range list {
		m = fileAttrs(m.str(n).str("-rw-r--r-- long name"), 0o100600, 1)
	}
	return m.done()
}

// holding is a server with one file, which sends at most most bytes at a time and says that the file
// has size bytes; below 0 it does not say.
func holding(content string, size int64, most int) answers {
	return func(kind byte, id uint32, body *reply) []byte {
		switch kind {
		case fxOpen:
			return handleReply(id)
		case fxFstat:
			if size < 0 {
				return statusReply(id, statusUnsupported, "")
			}
			return fileAttrs(newMessage(fxAttrs, id), 0o100600, uint64(size)).done()
		case fxRead:
			body.str()
			off, n := body.u64(), body.u32()
			if off >= uint64(len(content)) {
				return statusReply(id, statusEOF, "")
			}
			rest := content[off:]
			return newMessage(fxData, id).str(rest[:min(len(rest), most, int(n))]).done()
		}
		return statusReply(id, statusOK, "")
	}
}

func fileAttrs(m message, mode uint32, size uint64) message {
	return m.u32(attrSize | attrPerm).u64(size).u32(mode)
}
