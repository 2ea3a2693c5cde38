package discovery

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/skill"
)

// policy is berry's order: project, host, user.
func policy(trusted bool) Policy {
	return Policy{
		Roots: []RootPolicy{
			{Scope: "project", NeedsTrust: true, Entries: 256},
			{Scope: "host", OnHost: true, Entries: 256},
			{Scope: "user", Entries: 256},
		},
		Trusted: trusted, Skills: 128,
	}
}

// coll makes a collection of skills that are called as their directories are.
func coll(root int, dir string, names ...string) Collection {
	c := Collection{Root: root, Path: dir, Real: dir}
	for _, name := range names {
		c.Entries = append(c.Entries, entry(dir, name))
	}
	return c
}

func entry(dir, name string) Entry {
	return Entry{Name: name, Real: path.Join(dir, name), Head: []byte(front(name, "from "+dir))}
}

// outcome says what became of each skill, by the directory's path, and what was diagnosed.
func outcome(c *Catalog) []string {
	var out []string
	for _, s := range c.Skills {
		line := fmt.Sprintf("%s %s %s %s", s.Path, s.Name, s.Scope, s.State)
		if s.ShadowedBy != "" {
			line += " by " + s.ShadowedBy
		}
		out = append(out, line)
	}
	for _, d := range c.Diagnostics {
		out = append(out, fmt.Sprintf("%s %s %s", d.Path, d.Severity, d.Code))
	}
	return out
}

func wantOutcome(t *testing.T, c *Catalog, want ...string) {
	t.Helper()
	if got := outcome(c); !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestPrecedenceIsRootThenNearnessThenName(t *testing.T) {
	host := &Listing{Collections: []Collection{coll(1, "/h", "both", "hostonly", "shadowed")}}
	env := &Listing{Collections: []Collection{
		coll(2, "/u", "both", "near", "useronly"), // the order of collections is not that of roots
		coll(0, "/w/a/b", "near"), coll(0, "/w/a", "near"), coll(0, "/w", "shadowed", "rootskill"),
	}}
	trusted := []string{
		"/w/a/b/near near project visible", "/w/a/near near project shadowed by /w/a/b/near",
		"/w/rootskill rootskill project visible", "/w/shadowed shadowed project visible",
		"/h/both both host visible", "/h/hostonly hostonly host visible", "/h/shadowed shadowed host shadowed by /w/shadowed",
		"/u/both both user shadowed by /h/both", "/u/near near user shadowed by /w/a/b/near", "/u/useronly useronly user visible",
	}
	wantOutcome(t, Build(policy(true), host, env), trusted...)
	wantOutcome(t, Build(policy(true), env, nil, host), trusted...)
	wantOutcome(t, Build(policy(false), host, env),
		"/w/a/b/near near project untrusted", "/w/a/near near project untrusted",
		"/w/rootskill rootskill project untrusted", "/w/shadowed shadowed project untrusted",
		"/h/both both host visible", "/h/hostonly hostonly host visible", "/h/shadowed shadowed host visible",
		"/u/both both user shadowed by /h/both", "/u/near near user visible", "/u/useronly useronly user visible")
}

func linked(e Entry, real string) Entry {
	e.Link, e.Real = true, real
	return e
}

func TestDirectoryReachedTwiceIsOneSkillUnderItsOwnName(t *testing.T) {
	c := coll(2, "/u", "real")
	c.Entries = append(c.Entries, linked(entry("/u", "a-link"), "/u/real"), linked(entry("/u", "b"), "/else/x"), linked(entry("/u", "c"), "/else/x"))
	for i := range c.Entries {
		if c.Entries[i].Name != "real" {
			c.Entries[i].Head = []byte(front(path.Base(c.Entries[i].Real), "d"))
		}
	}
	p := policy(true)
	wantOutcome(t, Build(p, &Listing{Collections: []Collection{c}}), "/u/b x user visible", "/u/real real user visible", "/u/b/SKILL.md warning name-directory")
	p.Severities = Severities{LinkedTwice: skill.Warning}
	wantOutcome(t, Build(p, &Listing{Collections: []Collection{c}}), "/u/b x user visible", "/u/real real user visible",
		"/u/a-link warning linked-twice", "/u/c warning linked-twice", "/u/b/SKILL.md warning name-directory")
	// The same path on another machine is another directory.
	other := coll(1, "/h", "b")
	other.Entries[0] = linked(other.Entries[0], "/u/real")
	wantOutcome(t, Build(policy(true), &Listing{Collections: []Collection{other}}, &Listing{Collections: []Collection{coll(2, "/u", "real")}}),
		"/h/b b host visible", "/u/real real user visible")
}

func TestCollectionOfTheHomeDirectoryIsNoProjectOfItsOwn(t *testing.T) {
	l := &Listing{Collections: []Collection{coll(0, "/home/.agents/skills", "s"), coll(2, "/home/.agents/skills", "s")}}
	wantOutcome(t, Build(policy(false), l), "/home/.agents/skills/s s user visible")
	p := policy(true)
	p.Severities = Severities{LinkedTwice: skill.Warning} // which this is not
	wantOutcome(t, Build(p, l), "/home/.agents/skills/s s project visible")
	// Nor is a link in an untrusted collection to what all may see.
	project := coll(0, "/w", "s")
	project.Entries[0] = linked(project.Entries[0], "/u/s")
	wantOutcome(t, Build(policy(false), &Listing{Collections: []Collection{project, coll(2, "/u", "s")}}), "/u/s s user visible")
}

func TestRefusedLinksAreProblemsAndKeepNobodyOut(t *testing.T) {
	c := coll(2, "/u", "b", "c", "d")
	c.Entries[0] = linked(c.Entries[0], "/u/c")
	c.Entries[2].FileLink = true
	p := policy(true)
	p.NoLinks = true
	wantOutcome(t, Build(p, &Listing{Collections: []Collection{c}}), "/u/c c user visible", "/u/b error link-refused", "/u/d/SKILL.md error link-refused")
}

func TestDuplicatesAreProblemsWhereTheProfileSaysSo(t *testing.T) {
	p := policy(true)
	p.Severities = Severities{DuplicateName: skill.Error}
	c := Build(p, &Listing{Collections: []Collection{coll(1, "/h", "both"), coll(2, "/u", "both")}})
	wantOutcome(t, c, "/h/both both host visible", "/u/both both user shadowed by /h/both", "/u/both error duplicate-name")
	if d := c.Diagnostics[0]; c.Worst() != skill.Error || !strings.Contains(d.Message, "both") || !strings.Contains(d.Message, "/h/both") || d.Hint == "" {
		t.Errorf("got %+v", d)
	}
}

func TestLimitsAreToldWithTheirNumbers(t *testing.T) {
	var names []string
	for i := range 150 {
		names = append(names, fmt.Sprintf("s%03d", i))
	}
	user := coll(2, "/u", names...)
	user.More = true
	again := coll(2, "/v", "s000", "s149", "zzz")
	c := Build(policy(true), &Listing{Collections: []Collection{user, again}})
	visible := 0
	for _, s := range c.Skills {
		if s.State == Visible {
			visible++
		}
	}
	if last := c.Skills[len(c.Skills)-1]; visible != 128 || last.Path != "/v/s000" || last.ShadowedBy != "/u/s000" {
		t.Errorf("%d visible skills, the last of all is %+v", visible, last)
	}
	if got := outcome(c)[len(c.Skills):]; !slices.Equal(got, []string{"/u warning too-many-entries", "/u/s128 warning too-many-skills"}) {
		t.Errorf("got %q", got)
	}
	if !strings.Contains(c.Diagnostics[0].Message, "256") || !strings.Contains(c.Diagnostics[1].Message, "128") || !strings.Contains(c.Diagnostics[1].Message, "24 in all") {
		t.Errorf("got %+v", c.Diagnostics)
	}
}

func TestEveryProblemIsADiagnosticAndHidesNoOther(t *testing.T) {
	l := &Listing{Dir: "/gone", Problem: NoDirectory, Collections: []Collection{
		{Root: 0, Path: "/w", Real: "/w", Problem: Unreadable}, {Root: 1, Path: "/h", Real: "/h", Problem: NotDirectory}, coll(2, "/u", "good"),
	}}
	user := &l.Collections[2]
	want := []string{"/u/good good user visible", "/gone error no-directory", "/w error unreadable", "/h error not-a-directory"}
	for i, code := range []Code{LinkEscapes, LinkDangles, NotRegular, Unreadable, TooLarge, Misnamed, ListingFull, "unheard-of"} {
		e := Entry{Name: fmt.Sprintf("p%d", i), Real: fmt.Sprintf("/u/p%d", i), Problem: code}
		at, severity := "/SKILL.md", "error"
		switch code {
		case Misnamed:
			at, severity = "/skill.md", "warning"
		case ListingFull:
			e.Real, at = "", ""
		}
		user.Entries = append(user.Entries, e)
		want = append(want, fmt.Sprintf("/u/p%d%s %s %s", i, at, severity, code))
	}
	user.Entries = append(user.Entries, Entry{Name: "q", Link: true, Problem: LinkDangles})
	want = append(want, "/u/q error link-dangles")
	c := Build(policy(true), l)
	wantOutcome(t, c, want...)
	for _, d := range c.Diagnostics {
		if d.Message == "" {
			t.Errorf("no words: %+v", d)
		}
		if d.Code == string(Misnamed) && !strings.Contains(d.Hint, "rename") {
			t.Errorf("got %+v", d)
		}
	}
}

// TestWhatPublishedSkillsAreLike has the kinds of failure met in public collections that concern a
// catalog, and what becomes of each.
func TestWhatPublishedSkillsAreLike(t *testing.T) {
	long := strings.Repeat("long", 17)
	for _, c := range []struct {
		kind, dir, head string
		want            []string // the name as listed, or "", then codes
	}{
		{"plain", "a", front("a", "d"), []string{"a"}},
		{"CRLF", "a", strings.ReplaceAll(front("a", "d"), "\n", "\r\n"), []string{"a"}},
		{"byte order mark", "a", "\ufeff" + front("a", "d"), []string{"a"}},
		{"name other than the directory", "linux", front("other", "d"), []string{"other", "name-directory"}},
		{"slash in the name", "linux", front("meeting-sdk/linux", "d"), []string{"", "name-characters", "name-directory"}},
		{"path as the name", "a", front("../../etc", "d"), []string{"", "name-characters", "name-directory"}},
		{"spaces and capitals", "a", front("Title Case", "d"), []string{"", "name-characters", "name-directory"}},
		{"underscore", "a_b", front("a_b", "d"), []string{"", "name-characters"}},
		{"dot", "a.b", front("a.b", "d"), []string{"", "name-characters"}},
		{"colon", "a:b", front("a:b", "d"), []string{"", "name-characters"}},
		{"two hyphens", "a--b", front("a--b", "d"), []string{"", "name-hyphens"}},
		{"leading hyphen", "-a", front("-a", "d"), []string{"", "name-hyphens"}},
		{"long name", long, front(long, "d"), []string{"", "name-length"}},
		{"letters beyond a to z", "навык", front("навык", "d"), []string{"навык", "name-not-ascii"}},
		{"decomposed name", "cafe\u0301", front("café", "d"), []string{"café", "name-not-ascii"}},
		{"no description", "a", "---\nname: a\n---\n", []string{"", "description-missing"}},
		{"long description", "a", front("a", strings.Repeat("d", 1025)), []string{"", "description-length"}},
		{"bold description", "a", front("a", "**Bold** text"), []string{"a", "yaml-repaired"}},
		{"colon in the description", "a", front("a", "Use when: asked"), []string{"a", "yaml-repaired"}},
		{"dashes in the description", "a", front("a", "a --- b"), []string{"a"}},
		{"key twice", "a", "---\nname: a\ndescription: d\nversion: 1\nversion: 2\n---\n", []string{"a", "unknown-key", "duplicate-key"}},
		{"comment before the fence", "a", "<!-- licence -->\n", []string{"", "no-frontmatter"}},
		{"unclosed", "a", "---\nname: a\ndescription: d\n", []string{"", "unclosed-frontmatter"}},
		{"flood of keys", "a", "---\nname: a\n" + strings.Repeat("a:\n", 12000) + "---\n", []string{"", "yaml-limits"}},
		{"hidden characters", "a", front("a", `"x\e[31m"`), []string{"", "description-hidden"}},
		{"not UTF-8", "a", front("a", "caf\xe9"), []string{"", "not-utf-8"}},
		{"not UTF-8 as the directory", "\xff", front("a", "d"), []string{"a", "name-directory"}},
		{"newline in the directory", "a\nb", front("a", "d"), []string{"a", "name-directory"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			bad := Entry{Name: c.dir, Real: "/u/" + c.dir, Head: []byte(c.head)}
			l := &Listing{Collections: []Collection{{Root: 2, Path: "/u", Real: "/u", Entries: []Entry{bad, entry("/u", "zzz")}}}}
			got := Build(policy(true), l)
			name := ""
			for _, s := range got.Skills {
				if s.Name != "zzz" {
					name = s.Name
				}
			}
			said := []string{name}
			for _, d := range got.Diagnostics {
				said = append(said, d.Code)
				if strings.ContainsFunc(d.Message+d.Hint, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
					t.Errorf("the words %q %q cannot be shown", d.Message, d.Hint)
				}
				if want := "/u/" + c.dir + "/SKILL.md"; d.Path != want {
					t.Errorf("the path is %q, want %q", d.Path, want)
				}
			}
			if !slices.Equal(said, c.want) || got.Visible("zzz") == nil {
				t.Errorf("got %q, want %q", said, c.want)
			}
		})
	}
}

func TestNamesThatDifferInCaseAloneAreTwo(t *testing.T) {
	c := coll(2, "/u", "a")
	e := entry("/u", "A")
	e.Head = []byte(front("a", "another"))
	c.Entries = append(c.Entries, e)
	wantOutcome(t, Build(policy(true), &Listing{Collections: []Collection{c}}),
		"/u/A a user visible", "/u/a a user shadowed by /u/A", "/u/A/SKILL.md warning name-directory")
}

func TestSkillsThatSwallowOthersAreDiagnosed(t *testing.T) {
	c := coll(2, "/repo/skills", "one", "two")
	up := linked(entry("/repo/skills", "uipath"), "/repo")
	c.Entries = append(c.Entries, up)
	outer, inner := coll(0, "/w", "outer"), coll(0, "/w/outer/.agents/skills", "inner")
	wantOutcome(t, Build(policy(true), &Listing{Collections: []Collection{inner, outer, c}}),
		"/w/outer/.agents/skills/inner inner project visible", "/w/outer outer project visible",
		"/repo/skills/one one user visible", "/repo/skills/two two user visible", "/repo/skills/uipath uipath user visible",
		"/w/outer warning nested-skills", "/repo/skills/uipath warning nested-skills")
}

func TestADirectoryIsNotWithinOneWhoseNameItsOwnBeginsWith(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/a", "/", true}, {"/a", "", false}} {
		if got := within(c.path, c.dir); got != c.want {
			t.Errorf("within(%q, %q) is %v", c.path, c.dir, got)
		}
	}
}

func TestUnknownRootsAndHostileNamesAreNothing(t *testing.T) {
	c := coll(2, "/u", "good")
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00"} {
		c.Entries = append(c.Entries, Entry{Name: name, Real: "/x" + name, Head: []byte(front("a", "d"))})
	}
	wantOutcome(t, Build(policy(true), &Listing{Collections: []Collection{c, coll(3, "/x", "x"), coll(-1, "/y", "y")}}), "/u/good good user visible")
}

// randomListings makes listings of a few names, so that they collide in every way.
// checkCatalog holds what is true of every catalog.
func TestDiagnosticsSayWhichMachineTheyAreAboutWhereThereAreTwo(t *testing.T) {
	p := policy(true)
	p.Skills, p.NoLinks = 1, true
	p.Severities = Severities{DuplicateName: skill.Warning, LinkedTwice: skill.Warning}
	trouble := func(root int, dir string) Collection {
		c := coll(root, dir, "same", "same-again", "over", "broken", "shut", "link")
		c.More = true
		c.Entries[1] = Entry{Name: "same-again", Real: dir + "/same-again", Head: []byte(front("same", "d"))}
		c.Entries[3].Head = nil
		c.Entries[4] = Entry{Name: "shut", Real: dir + "/shut", Problem: Unreadable}
		c.Entries[5].Link = true
		c.Entries = append(c.Entries, Entry{Name: "twin", Real: dir + "/same", Head: []byte(front("same", "d"))}, entry(dir+"/same", "inner"))
		return c
	}
	host := &Listing{Home: "/h", Collections: []Collection{trouble(1, "/h/.config"), {Root: 1, Path: "/h/file", Problem: NotDirectory}}}
	there := &Listing{Home: "/h", Dir: "/t/gone", Problem: NoDirectory, Collections: []Collection{trouble(2, "/t/skills")}}
	both := Build(p, host, there)
	codes := make(map[string]map[string]bool)
	for _, d := range both.Diagnostics {
		want := InEnvironment
		if strings.HasPrefix(d.Path, "/h/") {
			want = OnHost
		}
		if d.Machine != want {
			t.Errorf("%+v is not said to be of the %s", d, want)
		}
		if codes[d.Machine] == nil {
			codes[d.Machine] = make(map[string]bool)
		}
		codes[d.Machine][d.Code] = true
	}
	for _, code := range []Code{NotDirectory, NoDirectory, Unreadable, LinkRefused, DuplicateName, LinkedTwice, TooManyEntries, TooManySkills, NestedSkills, Code(skill.NoFrontmatter)} {
		if !codes[OnHost][string(code)] && !codes[InEnvironment][string(code)] {
			t.Errorf("there was no %s to tell of", code)
		}
	}
	for _, c := range []*Catalog{Build(p, host), Build(p, nil, host), Build(p, there, nil)} {
		for _, d := range c.Diagnostics {
			if d.Machine != "" {
				t.Errorf("of one machine, %+v", d)
			}
		}
	}
}
