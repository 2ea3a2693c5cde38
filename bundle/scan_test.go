package bundle

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const plainTree = `
	scripts/run.sh *= #!/bin/sh
	references/deep/a.md = deep
	references/link.md -> deep/a.md
	references/dir -> deep
	references/odd name $(x)'q.txt = odd
	-rf = not a flag
	empty/
`

func TestDigestIsTheOnePlainToolsCompute(t *testing.T) {
	src := newSkill(t, plainTree)
	tree, _, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	want := digestByTools(t, src.Path)
	if got := tree.Manifest.Digest().String(); got != want {
		t.Errorf("digest %s, plain tools say %s\n%s", got, want, tree.Manifest.Text())
	}
	s := newStore(t)
	p := pin(t, s, src)
	if got := digestByTools(t, p.Path); got != want {
		t.Errorf("the stored copy has digest %s, want %s", got, want)
	}
}

func TestDigestDependsOnContentNamesAndExecBitsAlone(t *testing.T) {
	base := `f = text
		d/g = more
		s *= run`
	digest := func(tree string, change func(dir string)) string {
		src := newSkill(t, tree)
		if change != nil {
			change(src.Path)
		}
		got, _, err := src.Scan(context.Background(), Rules{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Manifest.Digest().String()
	}
	want := digest(base, nil)
	chmod := func(name string, mode os.FileMode) func(string) {
		return func(dir string) { os.Chmod(filepath.Join(dir, name), mode) }
	}
	for _, c := range []struct {
		name, tree string
		change     func(string)
		same       bool
	}{
		{"other order of creation", "s *= run\nd/g = more\nf = text", nil, true},
		{"private modes", base, chmod("f", 0o600), true},
		{"setuid", base, chmod("s", 0o755|os.ModeSetuid), true},
		{"any x bit is enough", base, chmod("s", 0o601), true},
		{"through a link inside", "real = text\nd/g = more\ns *= run\nf -> real", func(dir string) {}, false},
		{"one bit of content", "f = texu\nd/g = more\ns *= run", nil, false},
		{"an x bit", base, chmod("f", 0o744), false},
		{"a lost x bit", base, chmod("s", 0o644), false},
		{"a name", "F = text\nd/g = more\ns *= run", nil, false},
		{"an empty directory", base + "\ne/", nil, false},
	} {
		if got := digest(c.tree, c.change); (got == want) != c.same {
			t.Errorf("%s: same digest %v, want %v", c.name, got == want, c.same)
		}
	}
}

func TestEveryWalkedPathEndsOnceWithAReason(t *testing.T) {
	src := newSkill(t, plainTree+`
		.git/config = x
		references/.DS_Store = x`)
	rules := Rules{LeaveOut: []string{".git", ".DS_Store"}}
	tree, report, err := src.Scan(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]Outcome{}
	for _, f := range report.Findings {
		if _, twice := seen[f.Path]; twice {
			t.Errorf("%s is accounted for twice", f.Path)
		}
		seen[f.Path] = f.Outcome
		if f.Outcome != Kept && (f.Reason == "" || f.Detail == "") {
			t.Errorf("%s was %s without a reason", f.Path, f.Outcome)
		}
	}
	for _, p := range []string{".git", "references/.DS_Store"} {
		if seen[p] != LeftOut {
			t.Errorf("%s was %s, want left out", p, seen[p])
		}
	}
	kept := 0
	for _, o := range seen {
		if o == Kept {
			kept++
		}
	}
	if kept != len(tree.Manifest.Entries()) {
		t.Errorf("%d paths are told as kept, and the manifest has %d", kept, len(tree.Manifest.Entries()))
	}
	bad := newSkill(t, "ok = x\nbad -> /etc/passwd\nworse -> nowhere")
	_, report, err = bad.Scan(context.Background(), Rules{})
	if err == nil || len(report.Rejected()) != 2 {
		t.Errorf("error %v and %d rejections, want both told", err, len(report.Rejected()))
	}
	if !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("the error %q does not name the first path and the number of others", err)
	}
}

func TestSkillFileIsTheOneTheDigestCovers(t *testing.T) {
	src := newSkill(t, "real.md = instructions\nSKILL.md -> real.md")
	tree, _, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if string(tree.SkillFile) != "instructions" {
		t.Errorf("SkillFile = %q", tree.SkillFile)
	}
	data, err := src.ReadSkillFile(context.Background(), Rules{})
	if err != nil || string(data) != "instructions" {
		t.Errorf("ReadSkillFile = %q, %v", data, err)
	}
	big := newSkill(t, "SKILL.md = "+strings.Repeat("a", MaxSkillFileBytes+5))
	tree, _, err = big.Scan(context.Background(), Rules{})
	if err != nil || len(tree.SkillFile) != MaxSkillFileBytes+1 {
		t.Errorf("of an oversized SKILL.md %d bytes were kept, want one past the limit (%v)", len(tree.SkillFile), err)
	}
}

func TestWarnsOfSecretsAndTakesThem(t *testing.T) {
	src := newSkill(t, `
		.env = TOKEN=1
		.env.example = TOKEN=
		keys/id_ed25519 = x
		keys/id_ed25519.pub = x
		cert.pem = -----BEGIN CERTIFICATE-----
		notes.txt = -----BEGIN OPENSSH PRIVATE KEY-----
		docs.md = a key starts with -----BEGIN PRIVATE KEY-----
		run = #!/bin/sh`)
	tree, report, err := src.Scan(context.Background(), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range report.Warnings {
		got = append(got, w.Path+" "+w.Code)
	}
	slices.Sort(got)
	want := []string{".env secret-name", "keys/id_ed25519 secret-name", "notes.txt secret-content", "run script-not-executable"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
	if n := tree.Manifest.Files(); n != 9 {
		t.Errorf("%d files kept, want all 9: a warning refuses nothing", n)
	}
}

func TestCapturedTextKeepsWhatFits(t *testing.T) {
	rules := Rules{
		Limits:  Limits{Entries: 1000, Files: 3, FileBytes: 10, Bytes: 60},
		NoLinks: true, TextOnly: true, LeaveOutExcess: true,
	}
	src := newSkill(t, `
		SKILL.md = 0123456789
		a = 12345
		b -> a
		c = 12345678901
		d = 1
		e = 2`)
	os.WriteFile(filepath.Join(src.Path, "bin"), []byte{0xff, 0}, 0o644)
	os.WriteFile(filepath.Join(src.Path, "nul"), []byte("a\x00b"), 0o644)
	tree, report, err := src.Scan(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range tree.Manifest.Entries() {
		kept = append(kept, e.Path)
	}
	if want := []string{"release", "release/SKILL.md", "release/a", "release/d"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	why := map[string]Reason{}
	for _, f := range report.LeftOut() {
		why[f.Path] = f.Reason
	}
	for p, want := range map[string]Reason{"b": LinkRefused, "c": FileTooLarge, "e": TooManyFiles, "bin": NotText, "nul": NotText} {
		if why[p] != want {
			t.Errorf("%s was left out for %q, want %q", p, why[p], want)
		}
	}
	// SKILL.md is kept though 3 files come before it in the order of names.
	first := newSkill(t, "A = 1\nB = 1\nC = 1\nSKILL.md = 1")
	tree, _, err = first.Scan(context.Background(), rules)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tree.Manifest.lookup("release/SKILL.md"); !ok {
		t.Error("SKILL.md was left out")
	}
	rules.Limits.Bytes = 12
	tree, report, err = src.Scan(context.Background(), rules)
	if err != nil || tree.Bytes != 12 || len(report.LeftOut()) < 4 {
		t.Errorf("%d bytes kept (%v), want the 12 that fit: a is too large, d and e are not", tree.Bytes, err)
	}
}

func TestLinkedSkillIsRefusedWhereLinksAre(t *testing.T) {
	dir := t.TempDir()
	writeTree(t, filepath.Join(dir, "real"), "f = x")
	if err := os.Symlink("real", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	_, _, err := open(t, filepath.Join(dir, "alias")).Scan(context.Background(), Rules{NoLinks: true})
	if reason, _ := rejected(t, err); reason != LinkRefused {
		t.Errorf("a linked skill directory: %v", reason)
	}
	writeTree(t, filepath.Join(dir, "linked"), "real.md = x\nSKILL.md -> real.md")
	src := open(t, filepath.Join(dir, "linked"))
	_, _, err = src.Scan(context.Background(), Rules{NoLinks: true})
	if reason, _ := rejected(t, err); reason != LinkRefused {
		t.Errorf("a linked SKILL.md: %v", reason)
	}
	if _, err := src.ReadSkillFile(context.Background(), Rules{NoLinks: true}); err == nil {
		t.Error("ReadSkillFile followed a link under NoLinks")
	}
}

func TestCancelledScanEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := newSkill(t, plainTree).Scan(ctx, Rules{}); err != context.Canceled {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestLinkBringsNothingBackThatIsLeftOut(t *testing.T) {
	src := newSkill(t, ".git/config = x\ng -> .git\nc -> .git/config")
	tree, report, err := src.Scan(context.Background(), Rules{LeaveOut: []string{".git"}})
	if err != nil || tree.Manifest.Files() != 1 || len(report.LeftOut()) != 3 {
		t.Errorf("%v; left out %v; manifest\n%s", err, report.LeftOut(), tree.Manifest.Text())
	}
}

func TestNoSkillFileIsKeptNoBundle(t *testing.T) {
	_, _, err := newSkill(t, "f = x").Scan(context.Background(), Rules{LeaveOut: []string{SkillFile}})
	if reason, _ := rejected(t, err); reason != Changing {
		t.Errorf("a scan without its SKILL.md: %v", err)
	}
}
