//go:build unix

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/transport/transporttest"
)

// publicSkills puts skills into a home directory whose SKILL.md is that of a public collection: the
// directory PUNNET_CORPUS names, or files of such sizes.
func publicSkills(b *testing.B, skills int) func(home string) {
	b.Helper()
	var texts []string
	if corpus := os.Getenv("PUNNET_CORPUS"); corpus != "" {
		files, err := filepath.Glob(filepath.Join(corpus, "*", "SKILL.md"))
		must(b, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			must(b, err)
			texts = append(texts, string(text))
		}
	}
	return func(home string) {
		for i := range skills {
			name := fmt.Sprintf("skill-number-%d", i)
			text := fmt.Sprintf("---\nname: %s\ndescription: %s\nlicense: Apache-2.0\n---\n%s", name, noisy(i, 300), noisy(i, 8000))
			if len(texts) > 0 {
				text = texts[i%len(texts)]
			}
			must(b, os.MkdirAll(filepath.Join(home, ".agents/skills", name), 0o755))
			must(b, os.WriteFile(filepath.Join(home, ".agents/skills", name, "SKILL.md"), []byte(text), 0o644))
		}
	}
}

// noisy is text of n bytes that packs to about a third.
func noisy(seed, n int) string {
	words := strings.Fields("the release checklist verify before each step run script and read reference for details when this fails report error")
	var s strings.Builder
	for x := uint32(seed*7919 + 1); s.Len() < n; {
		x = x*1664525 + 1013904223
		fmt.Fprintf(&s, "%s%d ", words[(x>>8)%uint32(len(words))], x>>28)
	}
	return s.String()[:n]
}

// What a target has, on a connection that is open.
func BenchmarkCollections(b *testing.B) {
	q := discovery.Query{Roots: []discovery.Root{{Path: "~/.agents/skills", Entries: 256}}}
	for _, way := range []string{"exec", "sftp"} {
		for _, skills := range []int{16, 128} {
			b.Run(fmt.Sprintf("%s-%d", way, skills), func(b *testing.B) {
				l := newLinks(b, transporttest.Account{NoExec: way == "sftp"}, publicSkills(b, skills))
				for b.Loop() {
					l.time(func(c *Cache) {
						got, err := c.Collections(b.Context(), q)
						must(b, err)
						if n := len(got.Collections[0].Entries); n != skills {
							b.Fatalf("%d skills, want %d", n, skills)
						}
					})
				}
				l.report(b)
			})
		}
	}
}

// The same as a program does it that asks for one file after another.
func BenchmarkCollectionsOneByOne(b *testing.B) {
	l := newLinks(b, transporttest.Account{}, publicSkills(b, 128))
	for b.Loop() {
		l.time(func(c *Cache) {
			files, err := c.conn.Files(b.Context())
			must(b, err)
			home, err := files.RealPath(".")
			must(b, err)
			dir := home + "/.agents/skills"
			entries, err := files.ReadDir(dir, 256)
			must(b, err)
			for _, e := range entries {
				name := dir + "/" + e.Name() + "/SKILL.md"
				_, err := files.Lstat(name)
				must(b, err)
				_, err = files.ReadFile(name, 65537)
				must(b, err)
			}
		})
	}
	l.report(b)
}
