package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/transport"
)

// writeFiles writes a skill directory of lines "path = text", "path *= text" for an executable, "path
// -> target" for a link and "path/" for a directory.
func writeFiles(t *testing.T, dir string, lines ...string) {
	t.Helper()
	for _, line := range append([]string{"SKILL.md = ---\nname: x\ndescription: y\n---\n"}, lines...) {
		name, text, file := strings.Cut(line, " = ")
		mode := fs.FileMode(0o644)
		if !file {
			if name, text, file = strings.Cut(line, " *= "); file {
				mode = 0o755
			}
		}
		link, target, isLink := strings.Cut(line, " -> ")
		if isLink {
			name = link
		}
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case isLink:
			os.Remove(at)
			err = errors.Join(err, os.Symlink(target, at))
		case file:
			err = errors.Join(err, os.WriteFile(at, []byte(text), mode))
		default:
			err = errors.Join(err, os.MkdirAll(at, 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func many(n int, pattern string) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(pattern, i))
	}
	return lines
}

// The same walk reads a skill here and on a target, so that its digest there, what is left out and why
// it is refused are those that it would have here.
func TestASkillOnATargetIsWhatItWouldBeHere(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "links and modes")
	}
	deep := strings.Repeat("d/", 16)
	for name, lines := range map[string][]string{
		"plain":               {"scripts/run.sh *= #!/bin/sh\n", "references/deep/a.md = a", "empty/", "nothing = "},
		"links":               {"a/b = b", "l -> a", "m -> l/b", "a/up -> ../x", "x = x"},
		"cycle":               {"a/up -> .."},
		"to itself":           {"l -> l"},
		"escape":              {"a/l -> ../../other"},
		"absolute":            {"l -> /etc/passwd"},
		"dangling":            {"l -> nowhere", "m -> SKILL.md/x"},
		"many hops":           append(many(9, "l%d -> l"), "l = x"),
		"long chain":          {"l0 -> l1", "l1 -> l2", "l2 -> l3", "l3 -> l4", "l4 -> l5", "l5 -> l6", "l6 -> l7", "l7 -> l8", "l8 -> l9", "l9 -> x", "x = x"},
		"linked SKILL.md":     {"real.md = ---\nname: x\ndescription: y\n---\n", "SKILL.md -> real.md"},
		"leaking SKILL.md":    {"SKILL.md -> ../elsewhere"},
		"left out":            {".git/config = x", ".git/a/b/c = x", "a/__pycache__/x = x", "l -> .git/config"},
		"at the level":        {deep[:30] + "f = x"},
		"too deep":            {deep + "f = x"},
		"at the entries":      many(511, "f%d = "),
		"too many entries":    many(512, "f%d = "),
		"far too many":        many(3000, "f%d = "),
		"many directories":    many(200, "a%[1]d/b%[1]d/c = "),
		"names":               {"a b = x", "café = x", "bad\x01name = x", "back\\slash = x", "bad\x80 = x"},
		"colliding names":     {"readme = a", "README = b"},
		"binary":              {"data = a\x00b"},
		"large file":          {"large = " + strings.Repeat("x", 70_000)},
		"secrets and scripts": {".env = x", "run = #!/bin/sh\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "release")
			writeFiles(t, dir, lines...)
			compareScans(t, dir)
		})
	}
	t.Run("fifo", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "release")
		writeFiles(t, dir)
		if err := mkfifo(filepath.Join(dir, "pipe")); err != nil {
			t.Fatal(err)
		}
		compareScans(t, dir)
	})
	t.Run("a link to the directory", func(t *testing.T) {
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "real"), "a = a")
		if err := os.Symlink("real", filepath.Join(dir, "release")); err != nil {
			t.Fatal(err)
		}
		compareScans(t, filepath.Join(dir, "release"))
	})
}

func compareScans(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	files, err := transport.Local().Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range profile.Builtin() {
		p, err := profile.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		here, err := bundle.OpenSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		there, d, err := environment.OpenSkill(files, dir, p.Rules)
		if err != nil {
			t.Fatal(err)
		}
		want, wantReport, wantErr := here.Scan(ctx, p.Rules)
		got, report, err := there.Scan(ctx, p.Rules)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: error %v, here %v", name, err, wantErr)
		}
		if !reflect.DeepEqual(report, wantReport) {
			t.Errorf("%s: report\n%+v, here\n%+v", name, report, wantReport)
		}
		if err == nil && wantErr == nil && (got.Manifest.Digest() != want.Manifest.Digest() || got.Bytes != want.Bytes || string(got.SkillFile) != string(want.SkillFile)) {
			t.Errorf("%s: other content than here", name)
		}
		if err := d.Alive(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// meddling is a machine whose files change, or that is gone, once they are read.
type meddling struct {
	transport.Reader
	read func(name string) error
}

func (m meddling) ReadFile(name string, max int64) ([]byte, error) {
	if err := m.read(name); err != nil {
		return nil, err
	}
	return m.Reader.ReadFile(name, max)
}

func (m meddling) Lstat(name string) (fs.FileInfo, error) {
	if m.read("") != nil {
		return nil, m.read("")
	}
	return m.Reader.Lstat(name)
}

func TestAFileThatChangesOnTheTargetIsNoBundle(t *testing.T) {
	ctx := context.Background()
	files, err := transport.Local().Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"longer": "longer than it was", "shorter": "s", "as long": "same!"} {
		dir := filepath.Join(t.TempDir(), "release")
		writeFiles(t, dir, "f = other")
		src, d, err := environment.OpenSkill(meddling{files, func(name string) error {
			if filepath.Base(name) != "f" {
				return nil
			}
			return errors.Join(os.WriteFile(name, []byte(text), 0o644), os.Chtimes(name, time.Time{}, time.Unix(1, 0)))
		}}, dir, bundle.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := src.Scan(ctx, bundle.Rules{}); !errors.Is(err, bundle.Changing) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Alive(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALostTargetIsNoFaultOfTheSkills(t *testing.T) {
	ctx := context.Background()
	files, err := transport.Local().Files(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "release")
	writeFiles(t, dir, "f = x")
	gone := false
	src, d, err := environment.OpenSkill(meddling{files, func(string) error {
		if gone {
			return transport.ErrLost
		}
		return nil
	}}, dir, bundle.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	gone = true
	if _, _, err := src.Scan(ctx, bundle.Rules{}); err == nil {
		t.Error("it was read all the same")
	}
	if err := d.Alive(); !errors.Is(err, transport.ErrLost) {
		t.Errorf("the target is said to be %v", err)
	}
}
