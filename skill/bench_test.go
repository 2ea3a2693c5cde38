package skill

import (
	"strings"
	"testing"
)

// medianFile is of the size and shape of the median published SKILL.md: 4.5 KB, most of it body.
func medianFile() []byte {
	head := `---
name: release-notes
description: >-
  Writes release notes from the commits since the last tag, grouped by what changed for the person
  who upgrades. Use when a release is being prepared, when somebody asks what is new, or when a
  CHANGELOG entry is missing.
license: Apache-2.0
compatibility: Needs git 2.30 or newer and a repository with tags
allowed-tools: Bash(git:*) Read Write
metadata:
  author: example-org
  version: 1.0
---
# Release notes

`
	const paragraph = "Read the commits first, then the pull requests they came from. Leave out what nobody outside the project can notice.\n\n"
	body := strings.Repeat(paragraph, (4608-len(head))/len(paragraph))
	return []byte(head + body)
}

func BenchmarkParseMedian(b *testing.B) {
	data := medianFile()
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if s, problems := Parse(data, "release-notes"); s == nil || len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkParseRepaired is the same file with a value that needs the retry.
func BenchmarkParseRepaired(b *testing.B) {
	data := []byte(strings.Replace(string(medianFile()), "license: ", "license: see: ", 1))
	b.ReportAllocs()
	for b.Loop() {
		if s, problems := Parse(data, "release-notes"); s == nil || len(problems) != 1 {
			b.Fatal(problems)
		}
	}
}

// BenchmarkParseFlood parses 24 KB of repeated keys, which take a map decoder half a minute.
func BenchmarkParseFlood(b *testing.B) { benchmarkHostile(b, strings.Repeat("a:\n", 8<<10)) }

// BenchmarkParseComments parses lists opened on one line and closed below thousands of comments, the
// slowest shape for yaml.v3, as far as the limits let it grow.
func BenchmarkParseComments(b *testing.B) {
	benchmarkHostile(b, strings.Repeat("- ", maxYAMLNodes)+"a\n"+strings.Repeat(" #\n#\n", (maxYAMLLines-1)/2))
}

// BenchmarkParseBrackets parses the deepest brackets the limits allow, in a line that fails and is
// tried again.
func BenchmarkParseBrackets(b *testing.B) {
	deep := strings.Repeat("[a,", maxYAMLNodes-1) + strings.Repeat("]", maxYAMLNodes-1)
	benchmarkHostile(b, "x: ["+deep+strings.Repeat(",a", (60<<10-len(deep))/2)+",,]\n")
}

func benchmarkHostile(b *testing.B, front string) {
	data := []byte("---\n" + front + "---\n")
	b.ReportAllocs()
	for b.Loop() {
		if s, _ := Parse(data, ""); s != nil {
			b.Fatal("it loaded")
		}
	}
}
