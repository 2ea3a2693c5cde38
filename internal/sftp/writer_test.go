package sftp

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

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
