package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestManifestIsTheFormatToTheLetter(t *testing.T) {
	src := newSkill(t, "SKILL.md = s\nb/run *= r\na = x")
	tree, _, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	want := "d ./release\n" +
		"d ./release/b\n" +
		"f " + sum("x") + "  ./release/a\n" + // 2d71... before 043a... would be wrong: lines sort by the hash
		"f " + sum("s") + "  ./release/SKILL.md\n" +
		"x " + sum("r") + "  ./release/b/run\n"
	lines := strings.SplitAfter(want, "\n")
	if lines[2] > lines[3] {
		lines[2], lines[3] = lines[3], lines[2]
	}
	want = strings.Join(lines, "")
	if got := string(tree.Manifest.Text()); got != want {
		t.Errorf("manifest\n%swant\n%s", got, want)
	}
	if got := tree.Manifest.Digest().String(); got != sum(want) {
		t.Errorf("digest %s, want the SHA-256 of the manifest", got)
	}
}

func TestManifestReaderTakesNothingElse(t *testing.T) {
	ok := "d ./r\nf " + zeros + "  ./r/a\n"
	if _, err := ParseManifest([]byte(ok)); err != nil {
		t.Fatalf("refused %q: %v", ok, err)
	}
	for name, text := range map[string]string{
		"empty":                   "",
		"no end of line":          "d ./r",
		"empty line":              "d ./r\n\n",
		"not sorted":              "f " + zeros + "  ./r/a\nd ./r\n",
		"twice":                   "d ./r\nd ./r\n",
		"one path, two kinds":     "d ./r\nf " + zeros + "  ./r/a\nx " + zeros + "  ./r/a\n",
		"no top directory":        "f " + zeros + "  ./a\n",
		"two top directories":     "d ./r\nd ./s\n",
		"parent missing":          "d ./r\nf " + zeros + "  ./r/d/a\n",
		"parent a file":           "d ./r\nf " + zeros + "  ./r/a\nf " + zeros + "  ./r/a/b\n",
		"escape":                  "d ./..\n",
		"dot element":             "d ./r\nd ./r/.\n",
		"empty element":           "d ./r\nd ./r//a\n",
		"trailing slash":          "d ./r/\n",
		"absolute":                "d /r\n",
		"absolute behind the dot": "d .//r\n",
		"no dot":                  "d r\n",
		"unknown kind":            "d ./r\nl " + zeros + "  ./r/a\n",
		"capital hash":            "d ./r\nf " + strings.Repeat("A", 64) + "  ./r/a\n",
		"short hash":              "d ./r\nf 00  ./r/a\n",
		"one space":               "d ./r\nf " + zeros + " ./r/a\n",
		"binary mark":             "d ./r\nf " + zeros + " *./r/a\n",
		"control character":       "d ./r\nd ./r/a\rb\n",
		"names that collide":      "d ./r\nd ./r/A\nd ./r/a\n",
		"not UTF-8":               "d ./r\nd ./r/\xff\n",
		"carriage returns":        "d ./r\r\n",
		"something after the end": ok + "x",
	} {
		if m, err := ParseManifest([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %q", name, m.Text())
		}
	}
}

func TestDigestTextIsExactlyOne(t *testing.T) {
	d := Digest{0xab, 31: 0x01}
	got, err := ParseDigest(d.String())
	if err != nil || got != d {
		t.Errorf("ParseDigest(String) = %v, %v", got, err)
	}
	for _, s := range []string{"", "ab", zeros + "0", zeros[1:] + "g", strings.ToUpper(d.String()), " " + zeros[1:], zeros[1:] + "\n"} {
		if _, err := ParseDigest(s); err == nil {
			t.Errorf("ParseDigest(%q) accepts it", s)
		}
	}
	var back Digest
	text, _ := d.MarshalText()
	if err := back.UnmarshalText(text); err != nil || back != d || d.IsZero() || !(Digest{}).IsZero() {
		t.Errorf("UnmarshalText(%s) = %v, %v", text, back, err)
	}
}

func FuzzParseManifest(f *testing.F) {
	for _, s := range []string{
		"d ./r\n", "d ./r\nf " + zeros + "  ./r/a\nx " + zeros + "  ./r/b\n", "d ./r\nd ./r/é\n", "d ./..\n", "d ./r\nd ./r/A\nd ./r/a\n", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(text)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Text(), text) {
			t.Fatalf("%q is read as %q", text, m.Text())
		}
		for i, e := range m.Entries() {
			if i > 0 && e.Path <= m.Entries()[i-1].Path {
				t.Fatalf("entries out of order: %q", e.Path)
			}
			for elem := range strings.SplitSeq(e.Path, "/") {
				if CheckName(elem) != nil {
					t.Fatalf("accepted the path %q", e.Path)
				}
			}
			if got, ok := m.lookup(e.Path); !ok || got != e {
				t.Fatalf("lookup(%q) = %v, %v", e.Path, got, ok)
			}
		}
	})
}
