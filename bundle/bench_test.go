package bundle

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// largeSkill writes a skill of 500 files and 31 MiB, half text and half noise, in 11 directories.
func largeSkill(b *testing.B) *Source {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "large")
	writeTree(b, dir, "")
	const files, size = 499, 31 << 20 / 499
	r := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, size)
	for i := range files {
		for j := range buf {
			buf[j] = byte(r.Uint32())
			if i%2 == 0 {
				buf[j] = "etaoin shrdlu\n"[int(buf[j])%14]
			}
		}
		p := filepath.Join(dir, fmt.Sprintf("d%02d", i%11), fmt.Sprint(i))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(p, buf, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return open(b, dir)
}

// A pin of 500 files and 31 MiB beside what plain tools take to copy, hash and sync the same.
func BenchmarkPin(b *testing.B) {
	src := largeSkill(b)
	b.Run("punnet", func(b *testing.B) {
		b.SetBytes(31 << 20)
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			s := newStore(b)
			b.StartTimer()
			pin(b, s, src)
		}
	})
	b.Run("cp,sha256sum,fsync", func(b *testing.B) {
		b.SetBytes(31 << 20)
		for b.Loop() {
			b.StopTimer()
			dst := filepath.Join(b.TempDir(), "copy")
			b.StartTimer()
			const script = `cp -r "$1" "$2" && find "$2" -type f -exec sha256sum {} + >"$2/manifest" &&
				find "$2" -type f -exec sync {} + && find "$2" -type d -exec sync {} + && sync "$2/.."`
			if out, err := exec.Command("sh", "-c", script, "sh", src.Path, dst).CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		}
	})
}

func BenchmarkScan(b *testing.B) {
	src := largeSkill(b)
	b.SetBytes(31 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := src.Scan(context.Background(), Rules{}); err != nil {
			b.Fatal(err)
		}
	}
}

// The median public skill: 3 files and 12 KB.
func BenchmarkScanMedian(b *testing.B) {
	src := newSkill(b, "")
	for name, n := range map[string]int{"SKILL.md": 6000, "references/a.md": 4000, "scripts/b.py": 2000} {
		p := filepath.Join(src.Path, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, bytes.Repeat([]byte("text "), n/5), 0o644)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := src.Scan(context.Background(), Rules{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	src := largeSkill(b)
	s := newStore(b)
	p := pin(b, s, src)
	for _, c := range []Compression{Gzip, Zstd} {
		b.Run(c.String(), func(b *testing.B) {
			b.SetBytes(31 << 20)
			b.ReportAllocs()
			var packed int64
			for b.Loop() {
				bundle, err := s.Open(p.Digest)
				if err != nil {
					b.Fatal(err)
				}
				n := &counter{}
				if err := Pack(context.Background(), n, c, bundle); err != nil {
					b.Fatal(err)
				}
				bundle.Close()
				packed = n.n
			}
			b.ReportMetric(float64(packed)/float64(31<<20), "packed/content")
		})
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

var _ io.Writer = (*counter)(nil)
