package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/skill"
)

func TestEveryCodeIsInTheDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/codes.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, c := range skill.Codes() {
		severity := c.Default.String()
		if c.Fatal {
			severity += ", always"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |", c.Code, severity, c.Meaning); !strings.Contains(doc, row) {
			t.Errorf("docs/codes.md lacks the row %s", row)
		}
	}
	for _, c := range discovery.Codes() {
		severity := c.Default.String()
		if c.Fatal {
			severity += ", always"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |", c.Code, severity, c.Meaning); !strings.Contains(doc, row) {
			t.Errorf("docs/codes.md lacks the row %s", row)
		}
	}
	for _, c := range session.Codes() {
		if !strings.Contains(doc, fmt.Sprintf("| `%s` |", c)) {
			t.Errorf("docs/codes.md lacks %s", c)
		}
	}
	for _, r := range bundle.Reasons() {
		if !strings.Contains(doc, fmt.Sprintf("| `%s` |", r)) {
			t.Errorf("docs/codes.md lacks %s", r)
		}
	}
	for _, c := range targetCodes() {
		if !strings.Contains(doc, fmt.Sprintf("| `%s` |", c.code)) {
			t.Errorf("docs/codes.md lacks %s", c.code)
		}
	}
	for _, c := range writtenCodes(t) {
		if !strings.Contains(doc, fmt.Sprintf("| `%s` |", c)) {
			t.Errorf("docs/codes.md lacks %s", c)
		}
	}
}

// writtenCodes returns the codes that stand in this package's errors.
func writtenCodes(t *testing.T) []string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`cliError\{code: "([^"]+)"`)
	var codes []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(data), -1) {
			codes = append(codes, m[1])
		}
	}
	if len(codes) < 10 {
		t.Errorf("only these codes were found: %q", codes)
	}
	return codes
}
