package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// limitCase makes a skill directory that is n of something, and names what refuses one too many.
type limitCase struct {
	name   string
	limit  int
	make   func(t *testing.T, dir string, n int)
	reason Reason
	says   string // what the error tells the limit as
}

func limitCases() []limitCase {
	return []limitCase{
		{"entries", MaxEntries, func(t *testing.T, dir string, n int) {
			writeTree(t, dir, "") // SKILL.md is the first
			for i := range n - 1 {
				if i%100 == 0 { // directories count like files
					os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o755)
				} else {
					put(t, dir, fmt.Sprint(i), "")
				}
			}
		}, TooManyEntries, "512"},
		{"entries behind links", MaxEntries, func(t *testing.T, dir string, n int) {
			writeTree(t, dir, "d/")
			half := (n - 3) / 2 // SKILL.md, d and l; then d's files twice
			for i := range half {
				put(t, filepath.Join(dir, "d"), fmt.Sprint(i), "")
			}
			if (n-3)%2 == 1 {
				put(t, dir, "one more", "")
			}
			if err := os.Symlink("d", filepath.Join(dir, "l")); err != nil {
				t.Fatal(err)
			}
		}, TooManyEntries, "512"},
		{"levels", MaxLevels, func(t *testing.T, dir string, n int) {
			writeTree(t, dir, strings.Repeat("l/", n-1)+"f = x")
		}, TooManyLevels, "16"},
		{"bytes", MaxBytes, func(t *testing.T, dir string, n int) {
			writeTree(t, dir, "a = "+strings.Repeat("x", 1000))
			skill, err := os.Stat(filepath.Join(dir, SkillFile))
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, "b", "")
			if err := os.Truncate(filepath.Join(dir, "b"), int64(n)-1000-skill.Size()); err != nil {
				t.Fatal(err)
			}
		}, TooManyBytes, "32 MiB"},
	}
}

func TestLimitsAreExact(t *testing.T) {
	for _, c := range limitCases() {
		for _, n := range []int{c.limit - 1, c.limit, c.limit + 1} {
			t.Run(fmt.Sprintf("%s/%+d", c.name, n-c.limit), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "release")
				c.make(t, dir, n)
				src := open(t, dir)
				tree, _, err := src.Scan(context.Background(), Rules{})
				if n > c.limit {
					if reason, _ := rejected(t, err); reason != c.reason || !strings.Contains(err.Error(), c.says) {
						t.Errorf("error %v, want %s saying %s", err, c.reason, c.says)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				unpackWithin(t, src, tree, Limits{}, nil)
			})
		}
	}
}

// unpackWithin packs a scanned skill and unpacks it again, under limits.
func unpackWithin(t *testing.T, src *Source, tree *Tree, limits Limits, want error) {
	t.Helper()
	s := newStore(t)
	p := pin(t, s, src)
	b, err := s.Open(p.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var packed bytes.Buffer
	if err := Pack(context.Background(), &packed, Gzip, b); err != nil {
		t.Fatal(err)
	}
	into := newStore(t)
	into.limits = limits.withDefaults()
	got, err := into.Import(context.Background(), &packed)
	if !errors.Is(err, want) {
		t.Errorf("unpacking: error %v, want %v", err, want)
	}
	if want == nil && (err != nil || got.Digest != tree.Manifest.Digest()) {
		t.Errorf("unpacking gave %v, %v", got.Digest, err)
	}
	if want != nil && len(names(t, into)) != 0 {
		t.Errorf("a refused stream left %q", names(t, into))
	}
}

// Unpacking is held to each limit by itself: what packs a bundle may have other limits.
func TestUnpackLimitsAreExact(t *testing.T) {
	src := newSkill(t, "a/b/c = 12345\nd = 1")
	tree, _, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at, under Limits
		want      error
	}{
		{Limits{Entries: 5}, Limits{Entries: 4}, TooManyEntries}, // SKILL.md, a, b, c, d
		{Limits{Levels: 3}, Limits{Levels: 2}, TooManyLevels},
		{Limits{Bytes: tree.Bytes}, Limits{Bytes: tree.Bytes - 1}, TooManyBytes},
		{Limits{Files: 3}, Limits{Files: 2}, TooManyFiles},
		{Limits{FileBytes: tree.Size("release/SKILL.md")}, Limits{FileBytes: tree.Size("release/SKILL.md") - 1}, FileTooLarge},
	} {
		unpackWithin(t, src, tree, c.at, nil)
		unpackWithin(t, src, tree, c.under, c.want)
	}
}

func TestLongestNameIsKept(t *testing.T) {
	src := newSkill(t, strings.Repeat("n", MaxNameBytes)+" = x")
	tree, _, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	unpackWithin(t, src, tree, Limits{}, nil)
}

func TestHugeDirectoryIsNotReadWhole(t *testing.T) {
	src := newSkill(t, "")
	for i := range 5000 {
		put(t, src.Path, fmt.Sprint(i), "")
	}
	_, report, err := src.Scan(context.Background(), Rules{})
	if reason, _ := rejected(t, err); reason != TooManyEntries {
		t.Fatal(err)
	}
	if n := len(report.Findings); n > MaxEntries+10 {
		t.Errorf("%d paths were walked to find that there are more than %d", n, MaxEntries)
	}
}

func TestNamesAreHeldToTheFormat(t *testing.T) {
	for _, name := range []string{"a", "-rf", ".env", "a b", "技能", "é", strings.Repeat("n", 255), "a:b", "con", "\u200d"} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "a\x00", "a\x7f", "\u0085", "\u202e", "\u2066", "\U000e0041", "\xff", strings.Repeat("n", 256), strings.Repeat("é", 128)} {
		if CheckName(name) == nil {
			t.Errorf("CheckName(%q) accepts it", name)
		}
	}
}

func TestNamesThatFoldTogetherCollide(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{"README", "readme"}, {"é", "e\u0301"}, {"straße", "STRASSE"}, {"ﬁle", "file"}, {"Σ", "ς"}, {"K", "\u212a"}, {"İ", "i\u0307"},
	} {
		s := siblings{}
		if s.add(c.a) != "" || s.add(c.b) != c.a {
			t.Errorf("%q and %q do not collide", c.a, c.b)
		}
	}
	s := siblings{}
	for _, name := range []string{"a", "b", "é", "e", "ss", "ı", "i"} {
		if with := s.add(name); with != "" {
			t.Errorf("%q collides with %q", name, with)
		}
	}
}
