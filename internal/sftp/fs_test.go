package sftp

import (
	"io/fs"
	"testing"
)

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
