package sftp

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/display"
)

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
