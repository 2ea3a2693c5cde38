package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/punnet/punnet/internal/testenv"
)

// packed returns the packed stream of a skill, the bundle, and the store it is in.
func packed(t testing.TB, c Compression, tree string) ([]byte, *Bundle, *Store) {
	t.Helper()
	s := newStore(t)
	p := pin(t, s, newSkill(t, tree))
	b, err := s.Open(p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	var buf bytes.Buffer
	if err := Pack(context.Background(), &buf, c, b); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), b, s
}

func TestPackedBundleUnpacksToTheSameDigest(t *testing.T) {
	for _, c := range []Compression{Gzip, Zstd} {
		stream, b, s := packed(t, c, plainTree+strings.Repeat("d/", 10)+strings.Repeat("long", 60)+" = x")
		into := newStore(t)
		p, err := into.Import(context.Background(), bytes.NewReader(stream))
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if p.Digest != b.Manifest.Digest() || !p.New {
			t.Errorf("%v: imported as %+v", c, p)
		}
		if a, b := treeOf(t, s.Dir()), treeOf(t, into.Dir()); a != b {
			t.Errorf("%v: the stores differ:\n%s\n%s", c, a, b)
		}
		if p, err = into.Import(context.Background(), bytes.NewReader(stream)); err != nil || p.New {
			t.Errorf("%v: importing again: %+v, %v", c, p, err)
		}
	}
}

func TestPackingIsRepeatableAndTellsNothingOfItsHost(t *testing.T) {
	first, b, _ := packed(t, Gzip, plainTree)
	time.Sleep(10 * time.Millisecond)
	second, _, _ := packed(t, Gzip, plainTree)
	if !bytes.Equal(first, second) {
		t.Error("two packings of one content differ")
	}
	z, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "" || z.Comment != "" || !z.ModTime.IsZero() {
		t.Errorf("the gzip header says %+v", z.Header)
	}
	last := ""
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(PackedTime()) || h.Format != tar.FormatGNU && h.Format != tar.FormatUSTAR|tar.FormatGNU {
			t.Errorf("%s: owner %d:%d %q, time %v, format %v", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime, h.Format)
		}
		if h.Name <= last || !strings.HasPrefix(h.Name, b.Manifest.Digest().String()+"/") {
			t.Errorf("%s comes after %s", h.Name, last)
		}
		last = h.Name
	}
}

// Any tar on a target must give the same tree as our own reader.
func TestSystemTarUnpacksTheSameTree(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		testenv.Missing(t, "tar")
	}
	stream, b, _ := packed(t, Gzip, plainTree)
	dir := t.TempDir()
	cmd := exec.Command("tar", "-xzf", "-", "-C", dir)
	cmd.Stdin = bytes.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	d := b.Manifest.Digest().String()
	if got := digestByTools(t, filepath.Join(dir, d, "release")); got != d {
		t.Errorf("tar unpacked a tree of digest %s, want %s", got, d)
	}
	info, err := os.Stat(filepath.Join(dir, d, "release", SkillFile))
	if err != nil || !info.ModTime().Equal(PackedTime()) {
		t.Errorf("the file's time is %v (%v), want %v", info.ModTime(), err, PackedTime())
	}
}

func TestPackerSendsOnlyWhatIsWanted(t *testing.T) {
	_, b, _ := packed(t, Gzip, plainTree)
	var buf bytes.Buffer
	p, err := NewPacker(&buf, Gzip)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Add(context.Background(), b, func(e Entry) bool { return e.Path == "release/SKILL.md" }); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.AddData("keep", File, []byte("list\n")), p.Flush(), p.Close()); err != nil {
		t.Fatal(err)
	}
	z, _ := gzip.NewReader(&buf)
	var files, dirs []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			dirs = append(dirs, h.Name)
		} else {
			files = append(files, strings.TrimPrefix(h.Name, b.Manifest.Digest().String()+"/"))
		}
	}
	if want := []string{"release/SKILL.md", "keep"}; !slices.Equal(files, want) || len(dirs) != 7 {
		t.Errorf("the stream has files %q and %d directories, want %q and 7", files, len(dirs), want)
	}
}

func TestPackingDamagedContentEndsWithoutAnEnd(t *testing.T) {
	for name, damage := range map[string]func(p string) error{
		"other content":  func(p string) error { return os.WriteFile(p, []byte("deeq"), 0o600) },
		"longer content": func(p string) error { return os.WriteFile(p, []byte("deep and more"), 0o600) },
		"gone":           os.Remove,
		"a link":         func(p string) error { os.Remove(p); return os.Symlink("/etc/passwd", p) },
	} {
		_, b, s := packed(t, Gzip, plainTree)
		if err := damage(filepath.Join(s.Path(b.Manifest.Digest(), "release"), "references/deep/a.md")); err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		err := Pack(context.Background(), &buf, Gzip, b)
		if damaged, ok := errors.AsType[*DamagedError](err); !ok || damaged.Damage[0].Path != "release/references/deep/a.md" {
			t.Errorf("%s: error %v, want the path named", name, err)
		}
		if _, err := newStore(t).Import(context.Background(), &buf); err == nil {
			t.Errorf("%s: what was packed can be imported", name)
		}
	}
}

// entry is a tar entry of a stream that somebody made.
type entry struct {
	name string
	kind byte
	text string
	mode int64
}

func tarGz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.text)), Mode: e.mode, Format: tar.FormatGNU}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Size, h.Linkname = 0, e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := io.WriteString(w, e.text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestHostileStreamsAreRefusedAndWriteNothingOutside(t *testing.T) {
	d := zeros + "/"
	top := []entry{{d, tar.TypeDir, "", 0o700}, {d + "r/", tar.TypeDir, "", 0o700}, {d + "r/SKILL.md", tar.TypeReg, "s", 0o600}}
	with := func(e ...entry) []byte { return tarGz(t, slices.Concat(top, e)...) }
	for name, c := range map[string]struct {
		stream []byte
		reason Reason // "" where the error is not a rejection
	}{
		"link":               {with(entry{d + "r/l", tar.TypeSymlink, "/etc/passwd", 0o777}), SpecialFile},
		"hard link":          {with(entry{d + "r/l", tar.TypeLink, d + "r/SKILL.md", 0o600}), SpecialFile},
		"device":             {with(entry{d + "r/c", tar.TypeChar, "", 0o600}), SpecialFile},
		"FIFO":               {with(entry{d + "r/p", tar.TypeFifo, "", 0o600}), SpecialFile},
		"escape":             {with(entry{d + "r/../../../x", tar.TypeReg, "x", 0o600}), BadName},
		"escape by the top":  {tarGz(t, entry{d + "../", tar.TypeDir, "", 0o700}), BadName},
		"absolute":           {with(entry{"/tmp/x", tar.TypeReg, "x", 0o600}), BadName},
		"empty element":      {tarGz(t, entry{d + "/r/", tar.TypeDir, "", 0o700}), BadName},
		"not below a digest": {tarGz(t, entry{"r/", tar.TypeDir, "", 0o700}), BadName},
		"two digests":        {with(entry{strings.Repeat("1", 64) + "/r/", tar.TypeDir, "", 0o700}), BadName},
		"two top names":      {with(entry{d + "s/", tar.TypeDir, "", 0o700}), BadName},
		"file at the top":    {tarGz(t, entry{d + "r", tar.TypeReg, "x", 0o600}), BadName},
		"orphan":             {with(entry{d + "r/d/f", tar.TypeReg, "x", 0o600}), BadName},
		"twice":              {with(entry{d + "r/SKILL.md", tar.TypeReg, "t", 0o600}), NamesCollide},
		"case":               {with(entry{d + "r/skill.MD", tar.TypeReg, "t", 0o600}), NamesCollide},
		"control character":  {with(entry{d + "r/a\x1bb", tar.TypeReg, "t", 0o600}), BadName},
		"not what it says":   {with(), WrongDigest},
		"no SKILL.md":        {tarGz(t, entry{d + "r/", tar.TypeDir, "", 0o700}), NoSkillFile},
		"nothing":            {tarGz(t), NoSkillFile},
		"empty":              {nil, ""},
		"not compressed":     {[]byte("hello, world"), ""},
		"cut":                {with()[:60], ""},
		"a bomb":             {bomb(t, top), TooManyBytes},
	} {
		outside := t.TempDir()
		s, err := OpenStore(filepath.Join(outside, "store"), Limits{Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Import(context.Background(), bytes.NewReader(c.stream))
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if c.reason != "" && !errors.Is(err, c.reason) {
			t.Errorf("%s: error %v, want %s", name, err, c.reason)
		}
		if left := treeOf(t, outside); left != ". drwxr-xr-x\nstore drwx------\n" {
			t.Errorf("%s: left behind:\n%s", name, left)
		}
	}
}

// bomb is a small stream that unpacks to gigabytes of padding after the archive's end.
func bomb(t testing.TB, top []entry) []byte {
	t.Helper()
	head := tarGz(t, top...)
	var buf bytes.Buffer
	buf.Write(head)
	z := gzip.NewWriter(&buf) // a second member: gzip's own way to go on
	chunk := make([]byte, 1<<20)
	for range 64 {
		z.Write(chunk)
	}
	z.Close()
	return buf.Bytes()
}

func TestDecoderMemoryIsBounded(t *testing.T) {
	// A frame of nine bytes that asks for a window of 512 MiB.
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 19 << 3, 0x01, 0x00, 0x00}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newStore(t).Import(context.Background(), bytes.NewReader(frame))
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Error("accepted")
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d MiB were allocated for a frame of nine bytes", grown>>20)
	}
	// A frame within bounds that unpacks without end.
	var buf bytes.Buffer
	w, _ := zstd.NewWriter(&buf)
	zero := make([]byte, 1<<20)
	for range 200 {
		w.Write(zero)
	}
	w.Close()
	small, err := OpenStore(t.TempDir(), Limits{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Import(context.Background(), &buf); err == nil {
		t.Error("200 MiB of nothing accepted")
	}
}

func TestCutStreamIsNeverImported(t *testing.T) {
	for _, c := range []Compression{Gzip, Zstd} {
		stream, _, _ := packed(t, c, plainTree)
		for n := range len(stream) {
			s := newStore(t)
			if _, err := s.Import(context.Background(), bytes.NewReader(stream[:n])); err == nil {
				t.Fatalf("%v: a stream cut at %d of %d bytes was imported", c, n, len(stream))
			}
			if left := names(t, s); len(left) > 0 {
				t.Fatalf("%v: a stream cut at %d bytes left %q", c, n, left)
			}
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, c := range []Compression{Gzip, Zstd} {
		stream, _, _ := packed(f, c, plainTree)
		f.Add(stream)
	}
	d := zeros + "/"
	f.Add(tarGz(f, entry{d + "r/", tar.TypeDir, "", 0o700}, entry{d + "r/SKILL.md", tar.TypeReg, "s", 0o600}))
	f.Add(tarGz(f, entry{d + "r/", tar.TypeDir, "", 0o700}, entry{d + "r/../x", tar.TypeSymlink, "/", 0o600}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		outside := t.TempDir()
		dir := filepath.Join(outside, "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		m, err := Unpack(context.Background(), bytes.NewReader(stream), root, Limits{Entries: 40, Bytes: 1 << 16})
		entries, _ := os.ReadDir(outside)
		if len(entries) != 1 {
			t.Fatalf("wrote outside: %v", entries)
		}
		filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
				t.Fatalf("%s is %v", p, info.Mode())
			}
			return nil
		})
		if err != nil {
			return
		}
		src, err := OpenSource(filepath.Join(dir, m.Name()))
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		tree, _, err := src.Scan(context.Background(), Rules{})
		if err != nil || tree.Manifest.Digest() != m.Digest() {
			t.Fatalf("unpacked as %s, and is %v (%v)", m.Digest(), tree, err)
		}
	})
}
