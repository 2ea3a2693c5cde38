//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/punnet/punnet/discovery"
)

// skillTree makes collections of every shape below a home directory, and returns what to ask about them.
type skillTree struct {
	t    testing.TB
	home string
}

func (w skillTree) put(name, text string) string {
	w.t.Helper()
	name = filepath.Join(w.home, name)
	must(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(w.t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

func (w skillTree) dir(name string) { must(w.t, os.MkdirAll(filepath.Join(w.home, name), 0o755)) }

func (w skillTree) link(to, name string) {
	w.t.Helper()
	name = filepath.Join(w.home, name)
	must(w.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(w.t, os.Symlink(to, name))
}

const plainFront = "---\nname: plain\ndescription: d\n---\n"

// texts are what a SKILL.md may hold.
func texts() map[string]string {
	all := map[string]string{
		"plain":         plainFront + "body\n",
		"empty":         "",
		"fence":         "---",
		"fence-end":     "---\n",
		"two":           "---\n---",
		"two-end":       "---\n---\n",
		"none":          "# Heading\n" + plainFront,
		"none-no-end":   "# Heading",
		"blank":         "\n" + plainFront,
		"unclosed":      "---\nname: x\nno end",
		"unclosed-end":  "---\nname: x\n",
		"crlf":          "---\r\nname: x\r\n---\r\nbody\r\n",
		"bom":           "\ufeff---\nname: x\n---\nbody",
		"two-boms":      "\ufeff\ufeff---\nname: x\n---\nbody",
		"late-bom":      "---\nname: x\n\ufeff---\nbody\n---\nmore",
		"spaces":        "--- \t\r\nname: x\n---\t \nbody",
		"form-feed":     "---\f\nname: x\n---\nbody",
		"indented":      "---\nname: x\n ---\n---\nbody",
		"dashes":        "---\nname: x\n----\n--- x\n---x\n---\nbody",
		"no-last-end":   "---\nname: x\n---",
		"carriage":      "---\rname: x\r---\r",
		"NUL":           "---\nname: \x00x\ndescription: \x00\n---\nbody",
		"NUL-fence":     "---\nname: x\n---\x00\n---\nbody",
		"NUL-first":     "\x00---\nname: x\n---\n",
		"NUL-body":      plainFront + "\x00\x00",
		"NUL-unclosed":  "---\n\x00",
		"latin":         "---\nname: caf\xe9 \xff\xfe\n---\nbody",
		"latin-open":    "---\nname: caf\xe9 \xff\xfe",
		"utf-8":         "---\nname: 技能 é\n---\nbody",
		"utf-8-open":    "---\nname: 技能 é\n",
		"utf-16":        "\xff\xfe-\x00-\x00-\x00\n\x00",
		"control":       "---\nname: \x01\x1b[31m\\n%s %d\\\n---\nbody",
		"like-answers":  "---\n|x\ns 12\ndone\ne evil\n 41 42\nx\nfull\nend:\n---\n",
		"many-lines":    "---\n" + strings.Repeat("a: b\n", 6000) + "---\nbody\n",
		"long-line":     "---\nname: " + strings.Repeat("x", 60_000) + "\n---\n",
		"long-open":     "---\nname: " + strings.Repeat("x", 60_000),
		"long-first":    strings.Repeat("x", 65_536),
		"exact-unclose": "---\n" + strings.Repeat("\n", 65_532),
	}
	for _, n := range []int{65_535, 65_536, 65_537} {
		all[fmt.Sprint("size-", n)] = plainFront + strings.Repeat("x", n-len(plainFront))
		all[fmt.Sprint("open-", n)] = "---\n" + strings.Repeat("x", n-4)
	}
	return all
}

// hostileSkills makes a tree of everything that collections may hold.
func hostileSkills(t testing.TB, home string) discovery.Query {
	t.Helper()
	w := skillTree{t, home}
	for name, text := range texts() {
		w.put(".agents/skills/text-"+name+"/SKILL.md", text)
	}
	for _, name := range []string{
		"with space", " leading", "trailing ", "-n", "--", "-", "~", "*", "?", "[a]", "$HOME", "`x`", "$(x)", "a=b", "a;b",
		`quote"quote`, "quote'quote", `back\slash`, `\n`, "%s", "!x", "#x", "|x", "tab\tx", "line\nend", "line end\n", "\n",
		"cr\r", "\x01", "\x7f", "é", "技能", "\xff", "\xc3", "\u202eevil", ".hidden", "..hidden", "...", "=x", "e x",
		"s 1", "done", strings.Repeat("n", 255),
	} {
		w.put(".agents/skills/"+name+"/SKILL.md", plainFront)
	}
	w.put(".agents/skills/hollow/README.md", "x")
	w.put(".agents/skills/misnamed/skill.md", plainFront)
	w.put(".agents/skills/both/skill.md", plainFront)
	w.put(".agents/skills/both/SKILL.md", plainFront)
	w.put(".agents/skills/Skill/Skill.md", plainFront)
	w.put(".agents/skills/file", "x")
	w.put(".agents/skills/SKILL.md", plainFront)
	w.put(".agents/skills/nested/inner/SKILL.md", plainFront)
	w.dir(".agents/skills/dir-file/SKILL.md")
	must(t, syscall.Mkfifo(filepath.Join(w.home, ".agents/skills/hollow/fifo"), 0o644))
	for _, name := range []string{".agents/skills/fifo-file/SKILL.md", ".agents/skills/fifo"} {
		w.dir(filepath.Dir(name))
		must(t, syscall.Mkfifo(filepath.Join(w.home, name), 0o644))
	}
	giant := w.put(".agents/skills/giant/SKILL.md", "---\n")
	must(t, os.Truncate(giant, 1<<40))
	w.dir(".agents/skills/hard")
	must(t, os.Link(filepath.Join(home, ".agents/skills/text-plain/SKILL.md"), filepath.Join(home, ".agents/skills/hard/SKILL.md")))

	w.put("elsewhere/linked/SKILL.md", plainFront)
	w.put("elsewhere/line\nend/SKILL.md", plainFront)
	w.put("elsewhere/text\n", "---\nname: x\n---")
	for name, to := range map[string]string{
		"link": "text-plain", "link-out": "../../elsewhere/linked", "link-abs": filepath.Join(home, "elsewhere/linked"),
		"link-line": "../../elsewhere/line\nend", "link-link": "link-out", "dangling": "nowhere", "loop": "loop", "loop-a": "loop-b",
		"loop-b": "loop-a", "link-file": "file", "link-hollow": "hollow", "link-up": "..", "link-self": ".", "link-misnamed": "misnamed",
		"through-file": "file/x", "link-dangling": "dangling", "-link": "text-plain", "link\nline": "text-plain", "link-fifo": "fifo",
	} {
		w.link(to, ".agents/skills/"+name)
	}
	for name, to := range map[string]string{
		"in": "docs/real.md", "in-dot": "./docs/../docs/real.md", "in-link": "hop", "in-abs": filepath.Join(home, ".agents/skills/f-in-abs/docs/real.md"),
		"out": "../text-plain/SKILL.md", "out-back": "../f-out-back/docs/real.md", "out-dir": "../text-plain", "out-giant": "../giant/SKILL.md",
		"dangling": "nowhere", "loop": "SKILL.md", "dir": "docs", "self": ".", "up": "..", "root": "/", "dev": "/dev/zero", "fifo": "fifo",
		"line": "docs/line\n", "out-line": "../../../elsewhere/text\n", "giant": "giant.md", "slash": "docs/", "dash": "-x",
		"link-dir": "linked/real.md", "link-dir-out": "out/SKILL.md", "prefix": "../f-prefix-more/docs/real.md", "through": "docs/real.md/x",
	} {
		at := ".agents/skills/f-" + name
		w.put(at+"/docs/real.md", plainFront)
		w.put(at+"/docs/line\n", plainFront)
		w.put(at+"/-x", plainFront)
		must(t, os.Truncate(w.put(at+"/giant.md", "---\n"), 1<<30))
		must(t, syscall.Mkfifo(filepath.Join(w.home, at, "fifo"), 0o644))
		w.link("docs/real.md", at+"/hop")
		w.link("docs", at+"/linked")
		w.link("../text-plain", at+"/out")
		w.link(to, at+"/SKILL.md")
	}
	w.put(".agents/skills/f-prefix-more/docs/real.md", plainFront)
	w.link("f-in", ".agents/skills/f-via-link")

	w.put("work/repo \n\xff/.git", "gitdir: x")
	w.put("work/.agents/skills/above/SKILL.md", plainFront)
	w.put("work/repo \n\xff/.agents/skills/root/SKILL.md", plainFront)
	w.put("work/repo \n\xff/a/.agents/skills/line\nend/SKILL.md", "---\nname: x\x00\n---\n")
	w.put("work/repo \n\xff/a/b 'c/.agents/skills/near/SKILL.md", plainFront)
	w.link("work/repo \n\xff/a/b 'c", "here")
	w.dir("empty")
	w.put("a file", "x")
	w.link("nowhere", "dangling")
	w.link("a file", "to file")
	w.link("circle", "circle")
	w.link("elsewhere", "to dir")
	for i := range 5 {
		for _, first := range []string{"", ".", "..", "-", "+", "0", "~", "\x7f", "\x01", ".-", ".z", " "} {
			w.put(fmt.Sprintf("many/%s%02d/SKILL.md", first, i), plainFront)
		}
	}
	w.put("many/a-file", "x")
	q := discovery.Query{Dir: filepath.Join(home, "here"), Roots: []discovery.Root{
		{ID: 3, Path: ".agents/skills", Walk: true, Entries: 100},
		{ID: 1, Path: "~/.agents/skills", Entries: 500},
		{ID: 2, Path: filepath.Join(home, "to dir"), Entries: 100},
		{ID: 2, Path: "../nowhere", Entries: 100},
	}}
	for _, p := range []string{"gone", "empty", "a file", "dangling", "to file", "circle", "a file/x", "dangling/x", "circle/x", "dev"} {
		q.Roots = append(q.Roots, discovery.Root{ID: len(q.Roots), Path: "~/" + p, Entries: 9})
	}
	for _, n := range []int{1, 6, 14, 24, 29, 33, 37, 41, 46, 52, 60, 61, 62} {
		q.Roots = append(q.Roots, discovery.Root{ID: len(q.Roots), Path: "~/many", Entries: n})
	}
	return q
}

// plainSkills makes a tree without links.
func plainSkills(t testing.TB, home string) discovery.Query {
	w := skillTree{t, home}
	for name, text := range texts() {
		w.put("repo/.agents/skills/text-"+name+"/SKILL.md", text)
	}
	w.dir("repo/.git")
	w.put("repo/sub/.agents/skills/near/SKILL.md", plainFront)
	return discovery.Query{Dir: filepath.Join(home, "repo/sub"), Roots: []discovery.Root{
		{ID: 3, Path: ".agents/skills", Walk: true, Entries: 100}, {ID: 1, Path: "~/repo/.agents/skills", Entries: 20},
	}}
}
