package environment

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/session"
)

func TestAnUnusableFileOfEnabledRootsIsTheHosts(t *testing.T) {
	l := newLab(t, "headlesscode")
	file := filepath.Join(l.home, ".local/share/headlesscode/skills-enabled.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for target, machine := range map[string]string{"": "", "dev": discovery.OnHost} {
		e, err := l.o.Reach(context.Background(), session.Target{Host: target})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		col, err := e.Collections(context.Background(), l.home)
		if err != nil || len(col.Diagnostics) != 1 || col.Diagnostics[0].Path != file || col.Diagnostics[0].Machine != machine {
			t.Errorf("%q: %+v, %v", target, col, err)
		}
	}
}
