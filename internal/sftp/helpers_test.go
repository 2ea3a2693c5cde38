package sftp

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"
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
