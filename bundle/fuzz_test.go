package bundle

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// What passing over content in pieces tells must not depend on where the pieces end.
func FuzzTextIsFoundPieceByPiece(f *testing.F) {
	f.Add([]byte("plain"), uint8(1))
	f.Add([]byte("caf\u00e9 技能 \U0001f600"), uint8(1))
	f.Add([]byte("caf\u00e9 技能 \U0001f600"), uint8(3))
	f.Add([]byte("a\xff"), uint8(1))
	f.Add([]byte("cut \xe6\x8a"), uint8(2))
	f.Add([]byte("\xed\xa0\x80"), uint8(1))
	f.Add([]byte("#!/bin/sh\x00"), uint8(4))
	f.Fuzz(func(t *testing.T, content []byte, piece uint8) {
		got := facts{text: true}
		for rest := content; len(rest) > 0; {
			n := min(len(rest), int(piece)+1)
			got.take(rest[:n], headBytes)
			rest = rest[n:]
		}
		got.end()
		if want := utf8.Valid(content) && bytes.IndexByte(content, 0) < 0; got.text != want {
			t.Fatalf("%q in pieces of %d: text %v, want %v", content, int(piece)+1, got.text, want)
		}
		if want := content[:min(len(content), headBytes)]; !bytes.Equal(got.head, want) {
			t.Fatalf("head %q, want %q", got.head, want)
		}
	})
}

// Resolving a link step by step must agree with the kernel wherever the kernel stays inside.
func FuzzLinksResolveAsTheKernelDoes(f *testing.F) {
	f.Add("d/f", "l", "b/../l")
	f.Add("../a/f", "l/..", "../b/m")
	f.Add("d/../f", "a/l", ".")
	f.Add("../../x", "/etc/passwd", "m/f")
	f.Add("f/", "d/", "d/.")
	f.Fuzz(func(t *testing.T, l, m, n string) {
		dir := filepath.Join(t.TempDir(), "release")
		writeTree(t, dir, "f = 1\nd/f = 2\na/f = 3\nb/c/f = 4")
		for name, target := range map[string]string{"l": l, "a/m": m, "b/n": n} {
			if target == "" || os.Symlink(target, filepath.Join(dir, name)) != nil {
				return // no such link can exist
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, name := range []string{"l", "a/m", "b/n"} {
			real, info, err := resolveLink(local{root}, name, func(string, fs.FileInfo) {})
			kernel, kernelErr := os.Stat(filepath.Join(dir, name))
			if err != nil {
				continue // refusing more than the kernel does is what it is for
			}
			if kernelErr != nil || !os.SameFile(info, kernel) {
				t.Fatalf("%s -> %q: resolved to %s, and the kernel says %v", name, l, real, kernelErr)
			}
			if clean, err := filepath.EvalSymlinks(filepath.Join(dir, real)); err != nil || !strings.HasPrefix(clean+"/", mustReal(t, dir)+"/") {
				t.Fatalf("%s resolved to %s, outside the skill", name, real)
			}
		}
	})
}

func mustReal(t *testing.T, dir string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// Any directory is either refused with a reason, or its bundle holds what the directory shows when
// links are followed, survives packing, and is verified in the store.
func FuzzDirectory(f *testing.F) {
	f.Add("f = x\nd/g *= y\nl -> d")
	f.Add("a -> b\nb -> a\nc/d/e/ ")
	f.Add(".git/x = 1\nA = 1\na = 2")
	f.Fuzz(func(t *testing.T, spec string) {
		dir := filepath.Join(t.TempDir(), "release")
		if !makeTree(dir, spec) {
			return
		}
		src, err := OpenSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		ctx := context.Background()
		s := newStore(t)
		p, report, err := s.Pin(ctx, src, Rules{LeaveOut: []string{".git"}}, nil)
		if err != nil {
			if reason, _ := rejected(t, err); reason == "" || len(report.Rejected()) == 0 {
				t.Fatalf("refused without a reason: %v", err)
			}
			return
		}
		b, err := s.Open(p.Digest)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, e := range b.Manifest.Entries() {
			info, err := os.Stat(filepath.Join(filepath.Dir(dir), e.Path))
			if err != nil || info.IsDir() != (e.Kind == Dir) {
				t.Fatalf("the bundle holds %s, and the directory has %v, %v", e.Path, info, err)
			}
		}
		var packed bytes.Buffer
		if err := Pack(ctx, &packed, Gzip, b); err != nil {
			t.Fatal(err)
		}
		if again, err := newStore(t).Import(ctx, &packed); err != nil || again.Digest != p.Digest {
			t.Fatalf("packed and imported: %v, %v", again.Digest, err)
		}
	})
}

// makeTree makes a directory of a fuzzer's lines, in writeTree's form, as far as they make one
// inside dir.
func makeTree(dir, spec string) bool {
	if os.MkdirAll(dir, 0o755) != nil || os.WriteFile(filepath.Join(dir, SkillFile), nil, 0o644) != nil {
		return false
	}
	lines := 0
	for line := range strings.Lines(spec) {
		if lines++; lines > 30 || len(line) > 100 {
			return false
		}
		line = strings.TrimSuffix(line, "\n")
		name, text, isFile := strings.Cut(line, " = ")
		link, target, isLink := strings.Cut(line, " -> ")
		if isLink {
			name = link
		}
		name = strings.TrimSuffix(name, "/")
		if !filepath.IsLocal(name) || name == "." {
			continue
		}
		p := filepath.Join(dir, name)
		// A parent that is a link could lead out of the directory this test may write in.
		if real, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil && real != filepath.Dir(p) {
			continue
		}
		if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			continue
		}
		switch {
		case isLink:
			os.Symlink(target, p)
		case isFile:
			if _, err := os.Lstat(p); err != nil {
				os.WriteFile(p, []byte(text), 0o644)
			}
		default:
			os.Mkdir(p, 0o755)
		}
	}
	return true
}
