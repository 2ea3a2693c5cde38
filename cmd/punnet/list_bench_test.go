package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

// BenchmarkListAgainstCat runs the built command on a collection of 400 skills, and cat on their files,
// in turns: the medians of both in milliseconds, and the median of the ratios. A turn is an operation:
//
//	go test ./cmd/punnet -run '^$' -bench ListAgainstCat -benchtime 21x
func BenchmarkListAgainstCat(b *testing.B) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		testenv.Missing(b, "cat")
	}
	exe := build(b)
	about := strings.TrimSpace(strings.Repeat("What it does and when to use it. ", 8))
	plain := "description: " + about + "\n"
	folded := "description: >-\n  " + about + "\nmetadata:\n  author: somebody\n  version: \"1.0\"\n"
	for _, c := range []struct {
		name, front string
		bytes       int
	}{
		{"plain/4500B", plain, 4500}, {"plain/8000B", plain, 8000}, {"folded/4500B", folded, 4500}, {"folded/8000B", folded, 8000},
	} {
		b.Run(c.name, func(b *testing.B) {
			home := b.TempDir()
			list, files := manySkills(b, home, c.front, c.bytes)
			all := exec.Command(exe, list...)
			all.Env = []string{"HOME=" + home}
			if out, err := all.CombinedOutput(); err != nil || !bytes.HasSuffix(out, []byte("\n400 skills\n")) {
				b.Fatalf("%v; the list ends %q", err, out[max(0, len(out)-200):])
			}
			var ours, theirs []time.Duration
			var ratios []float64
			for b.Loop() {
				l := timed(b, home, exe, list...)
				r := timed(b, home, cat, files...)
				ours, theirs = append(ours, l), append(theirs, r)
				ratios = append(ratios, l.Seconds()/r.Seconds())
			}
			b.ReportMetric(median(ours).Seconds()*1000, "list-ms")
			b.ReportMetric(median(theirs).Seconds()*1000, "cat-ms")
			b.ReportMetric(median(ratios), "list/cat")
		})
	}
}

// manySkills writes 400 skills below a home directory and a profile that lists them all. It returns the
// arguments for that, and the files.
func manySkills(b *testing.B, home, front string, size int) (list, files []string) {
	b.Helper()
	for i := range 400 {
		name := fmt.Sprintf("skill-%04d", i)
		text := "---\nname: " + name + "\n" + front + "---\n"
		text += strings.Repeat("Read this line.\n", (size-len(text))/16)
		file := filepath.Join(home, ".agents/skills", name, "SKILL.md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
		files = append(files, file)
	}
	berry, err := os.ReadFile("../../profile/berry.yaml")
	if err != nil {
		b.Fatal(err)
	}
	many := filepath.Join(home, "many.yaml")
	more := strings.NewReplacer("entries: 256", "entries: 512", "skills: 128", "skills: 512").Replace(string(berry))
	if err := os.WriteFile(many, []byte(more), 0o644); err != nil {
		b.Fatal(err)
	}
	return []string{"--profile", many, "list"}, files
}

// timed runs a program with a home directory and throws away what it prints. It must succeed.
func timed(b *testing.B, home, program string, args ...string) time.Duration {
	b.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{"HOME=" + home}
	start := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func median[T int64 | float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
