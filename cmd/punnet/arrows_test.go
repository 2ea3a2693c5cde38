package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/punnet/punnet/"

// arrows says which of our packages each one may import. An import that is not here is a change of
// the design, which ARCHITECTURE.md explains.
func arrows() map[string][]string {
	return map[string][]string{
		"internal/atomicfile":     nil,
		"internal/display":        nil,
		"internal/testenv":        nil,
		"internal/killpoint":      nil,
		"internal/proc":           {"internal/display"},
		"internal/sshconfig":      {"internal/display", "internal/proc"},
		"internal/fault":          {"internal/display"},
		"internal/watchdog":       nil,
		"internal/sftp":           {"internal/display", "internal/fault", "internal/proc", "internal/watchdog"},
		"internal/ask":            {"internal/display", "internal/proc"},
		"skill":                   {"internal/display"},
		"discovery":               {"skill", "internal/display"},
		"bundle":                  {"internal/atomicfile", "internal/display"},
		"profile":                 {"skill", "bundle", "discovery", "internal/atomicfile", "internal/display"},
		"transport":               {"internal/display", "internal/fault", "internal/proc", "internal/sftp", "internal/sshconfig", "internal/watchdog"},
		"transport/transporttest": nil,
		"remote":                  {"skill", "bundle", "discovery", "transport", "internal/atomicfile", "internal/display", "internal/proc"},
		"session":                 {"skill", "bundle", "discovery", "internal/atomicfile", "internal/display"},
		"environment":             {"session", "skill", "bundle", "discovery", "profile", "transport", "remote", "internal/display"},
		"cmd/punnet":              {"skill", "bundle", "discovery", "session", "environment", "profile", "transport", "transport/transporttest", "remote", "internal/ask", "internal/atomicfile", "internal/display", "internal/fault"},
	}
}

func TestImportsFollowTheArrows(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	allowed := arrows()
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, module)
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not among the arrows", name)
			continue
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s, against the arrows", name, ours)
			}
			if imp == module+"internal/testenv" || imp == "testing" && name != "internal/testenv" {
				t.Errorf("%s imports %s outside its tests", name, imp)
			}
		}
	}
}
