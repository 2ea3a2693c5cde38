package sftp

import (
	"encoding/binary"
	"io/fs"
	"time"
)

// SFTP version 3, as draft-ietf-secsh-filexfer-02 and OpenSSH's PROTOCOL file define it.
const (
	fxInit     = 1
	fxVersion  = 2
	fxOpen     = 3
	fxClose    = 4
	fxRead     = 5
	fxWrite    = 6
	fxLstat    = 7
	fxFstat    = 8
	fxSetstat  = 9
	fxFsetstat = 10
	fxOpendir  = 11
	fxReaddir  = 12
	fxRemove   = 13
	fxMkdir    = 14
	fxRmdir    = 15
	fxRealpath = 16
	fxRename   = 18
	fxReadlink = 19
	fxStatus   = 101
	fxHandle   = 102
	fxData     = 103
	fxName     = 104
	fxAttrs    = 105
	fxExtended = 200
	fxExtReply = 201

	openRead  = 0x01
	openWrite = 0x02
	openCreat = 0x08
	openExcl  = 0x20

	attrSize  = 0x01
	attrOwner = 0x02
	attrPerm  = 0x04
	attrTimes = 0x08
	attrExt   = 0x80000000

	statusOK          = 0
	statusEOF         = 1
	statusNoFile      = 2
	statusPermission  = 3
	statusFailure     = 4
	statusBadMessage  = 5
	statusUnsupported = 8

	extPosixRename = "posix-rename@openssh.com"
	extStatvfs     = "statvfs@openssh.com"
	// extFstatvfs is offered by OpenSSH's own server, which carries out requests strictly in the
	// order they arrive.
	extFstatvfs = "fstatvfs@openssh.com"
)

// message builds one request: a length to be filled in, the type, the id, then what is appended.
type message []byte

func newMessage(kind byte, id uint32) message {
	m := make(message, 4, 64)
	m = append(m, kind)
	return m.u32(id)
}

func (m message) u32(v uint32) message { return binary.BigEndian.AppendUint32(m, v) }
func (m message) u64(v uint64) message { return binary.BigEndian.AppendUint64(m, v) }
func (m message) str(s string) message { return append(m.u32(uint32(len(s))), s...) }
func (m message) bytes(b []byte) message {
	return append(m.u32(uint32(len(b))), b...)
}

// perm appends attributes that hold permission bits alone.
func (m message) perm(p fs.FileMode) message { return m.u32(attrPerm).u32(uint32(p.Perm())) }

// times appends attributes that hold one time as both access and modification time.
func (m message) times(t time.Time) message {
	s := uint32(t.Unix())
	return m.u32(attrTimes).u32(s).u32(s)
}

// done fills in the length.
func (m message) done() []byte {
	binary.BigEndian.PutUint32(m, uint32(len(m)-4))
	return m
}

// reply reads one reply's payload. Reading past the end sets bad and returns zeros, so that one
// check at the end is enough.
type reply struct {
	kind byte
	data []byte
	bad  bool
}

func (r *reply) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.data)) {
		r.bad = true
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *reply) u32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

func (r *reply) u64() uint64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func (r *reply) str() string { return string(r.take(r.u32())) }

// name reads a file name, which is refused when it is longer than any system's.
func (r *reply) name() string {
	n := r.u32()
	if n > MaxName {
		r.bad = true
	}
	return string(r.take(n))
}

// attrs is what a server says of a file.
type attrs struct {
	size     uint64
	uid, gid uint32
	mode     uint32
	mtime    uint32
	hasPerm  bool
	hasOwner bool
}

func (r *reply) attrs() *attrs {
	var a attrs
	flags := r.u32()
	if flags&attrSize != 0 {
		a.size = r.u64()
	}
	if flags&attrOwner != 0 {
		a.uid, a.gid, a.hasOwner = r.u32(), r.u32(), true
	}
	if flags&attrPerm != 0 {
		a.mode, a.hasPerm = r.u32(), true
	}
	if flags&attrTimes != 0 {
		r.u32()
		a.mtime = r.u32()
	}
	if flags&attrExt != 0 {
		// Each pair takes at least eight bytes, so a hostile count runs out of data, not of time.
		for n := r.u32(); n > 0 && !r.bad; n-- {
			r.take(r.u32())
			r.take(r.u32())
		}
	}
	return &a
}

// Owner returns the numeric user and group that own what fi describes, and whether fi is a
// server's answer that names them.
func Owner(fi fs.FileInfo) (uid, gid uint32, ok bool) {
	a, is := fi.Sys().(*attrs)
	if !is || !a.hasOwner {
		return 0, 0, false
	}
	return a.uid, a.gid, true
}

// fileInfo is attrs under a name, as fs.FileInfo. Its Sys is the *attrs.
type fileInfo struct {
	name string
	*attrs
}

func (f fileInfo) Name() string       { return f.name }
func (f fileInfo) Size() int64        { return int64(min(f.size, 1<<63-1)) }
func (f fileInfo) Mode() fs.FileMode  { return fileMode(f.mode) }
func (f fileInfo) ModTime() time.Time { return time.Unix(int64(f.mtime), 0) }
func (f fileInfo) IsDir() bool        { return f.Mode().IsDir() }
func (f fileInfo) Sys() any           { return f.attrs }

// fileMode turns a POSIX mode, which is what SFTP sends, into Go's.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & 0o170000 {
	case 0o100000:
	case 0o040000:
		m |= fs.ModeDir
	case 0o120000:
		m |= fs.ModeSymlink
	case 0o060000:
		m |= fs.ModeDevice
	case 0o020000:
		m |= fs.ModeDevice | fs.ModeCharDevice
	case 0o010000:
		m |= fs.ModeNamedPipe
	case 0o140000:
		m |= fs.ModeSocket
	default:
		m |= fs.ModeIrregular
	}
	for bit, to := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= to
		}
	}
	return m
}
