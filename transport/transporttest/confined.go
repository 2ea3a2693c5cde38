package transporttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strings"
)

// confined stands between a client and an SFTP server that sees the whole file system, and has the
// client see a root directory of its own: it puts the root before every path of a request, and takes
// it off the answers that hold one.
type confined struct {
	io.ReadWriteCloser
	root string

	in  bytes.Buffer // what is left of the request being handed to the server
	out bytes.Buffer // what the server wrote of an answer so far
}

// The SFTP packets that hold paths, and how many.
var pathsOf = map[byte]int{
	3: 1, 7: 1, 9: 1, 11: 1, 13: 1, 14: 1, 15: 1, 16: 1, 17: 1, 18: 2, 19: 1, 20: 2,
}

const (
	packetName     = 104
	packetExtended = 200
	maxPacket      = 1 << 20
)

func (c *confined) Read(b []byte) (int, error) {
	if c.in.Len() == 0 {
		p, err := readPacket(c.ReadWriteCloser)
		if err != nil {
			return 0, err
		}
		writePacket(&c.in, c.request(p))
	}
	return c.in.Read(b)
}

// Write takes what the server writes, in whatever pieces, and passes on whole answers.
func (c *confined) Write(b []byte) (int, error) {
	c.out.Write(b)
	for {
		size := c.out.Bytes()
		if len(size) < 4 || c.out.Len() < 4+int(binary.BigEndian.Uint32(size)) {
			return len(b), nil
		}
		p, err := readPacket(&c.out)
		if err != nil {
			return 0, err
		}
		var w bytes.Buffer
		writePacket(&w, c.answer(p))
		if _, err := c.ReadWriteCloser.Write(w.Bytes()); err != nil {
			return 0, err
		}
	}
}

// request puts the root before a request's paths.
func (c *confined) request(p []byte) []byte {
	if len(p) < 5 {
		return p
	}
	done, rest, n := p[:5:5], p[5:], pathsOf[p[0]]
	if p[0] == packetExtended {
		name, after, ok := cutString(rest)
		if !ok {
			return p
		}
		done, rest = appendString(done, name), after
		switch name {
		case "posix-rename@openssh.com", "hardlink@openssh.com":
			n = 2
		case "statvfs@openssh.com":
			n = 1
		}
	}
	for range n {
		name, after, ok := cutString(rest)
		if !ok {
			return p
		}
		if path.IsAbs(name) {
			name = path.Join(c.root, path.Clean(name))
		}
		done, rest = appendString(done, name), after
	}
	return append(done, rest...)
}

// answer takes the root off the one name of an answer to REALPATH.
func (c *confined) answer(p []byte) []byte {
	if len(p) < 9 || p[0] != packetName || binary.BigEndian.Uint32(p[5:]) != 1 {
		return p
	}
	name, rest, ok := cutString(p[9:])
	inside, below := strings.CutPrefix(name, c.root)
	if !ok || !below {
		return p
	}
	return append(appendString(p[:9:9], path.Join("/", inside)), rest...)
}

// cutString reads a string with its length before it.
func cutString(p []byte) (s string, rest []byte, ok bool) {
	if len(p) < 4 {
		return "", nil, false
	}
	n := binary.BigEndian.Uint32(p)
	if uint64(n) > uint64(len(p)-4) {
		return "", nil, false
	}
	return string(p[4 : 4+n]), p[4+n:], true
}

func appendString(p []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(p, uint32(len(s))), s...)
}

func readPacket(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxPacket {
		return nil, errors.New("an SFTP packet is too long")
	}
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	return p, err
}

func writePacket(w *bytes.Buffer, p []byte) {
	w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
	w.Write(p)
}
