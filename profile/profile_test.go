package profile

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/skill"
)

func TestBuiltinProfilesAreWhatTheHarnessesPromise(t *testing.T) {
	berry, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if berry.Name != "berry" || berry.Cache != "berry/skills" {
		t.Errorf("the default profile is %+v", berry)
	}
	leaveOut := []string{".git", ".jj", ".hg", ".svn", ".DS_Store", "__pycache__"}
	if want := (bundle.Rules{Limits: bundle.Limits{Entries: 512, Levels: 16, Bytes: 32 << 20}, LeaveOut: leaveOut}); !reflect.DeepEqual(berry.Rules, want) {
		t.Errorf("berry's rules are %+v, want %+v", berry.Rules, want)
	}
	headless, err := Load("headlesscode")
	if err != nil {
		t.Fatal(err)
	}
	want := bundle.Rules{
		Limits:   bundle.Limits{Entries: 10000, Levels: 16, Bytes: 512 << 10, Files: 200, FileBytes: 64 << 10},
		LeaveOut: leaveOut, NoLinks: true, TextOnly: true, LeaveOutExcess: true,
	}
	if !reflect.DeepEqual(headless.Rules, want) {
		t.Errorf("headlesscode's rules are %+v, want %+v", headless.Rules, want)
	}
	if berry.Severities.Of(skill.NameDirectory) != skill.Warning || headless.Severities.Of(skill.NameDirectory) != skill.Error {
		t.Error("a directory of another name is not a warning for berry and an error for headlesscode")
	}
	for _, name := range Builtin() {
		if p, err := Load(name); err != nil || p.Name != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestStoreIsWhereTheHarnessKeepsIt(t *testing.T) {
	abs := t.TempDir() // absolute on every system
	join := func(rest string) string { return filepath.Join(abs, filepath.FromSlash(rest)) }
	berry, err := Load("berry")
	if err != nil {
		t.Fatal(err)
	}
	headless, err := Load("headlesscode")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    *Profile
		env  map[string]string
		want string
	}{
		{berry, map[string]string{"HOME": abs}, join(".local/share/berry/skills/bundles")},
		{berry, map[string]string{"HOME": abs, "XDG_DATA_HOME": join("x")}, join("x/berry/skills/bundles")},
		{berry, map[string]string{"HOME": abs, "XDG_DATA_HOME": ""}, join(".local/share/berry/skills/bundles")},
		{berry, map[string]string{"HOME": abs, "XDG_DATA_HOME": "relative"}, join(".local/share/berry/skills/bundles")},
		{headless, map[string]string{"HOME": abs, "XDG_DATA_HOME": join("x")}, join(".local/share/headlesscode/bundles")},
		{headless, map[string]string{"HOME": abs, "HEADLESSCODE_DATA_DIR": join("d")}, join("d/bundles")},
		{berry, nil, ""},
	} {
		got, err := Locate(c.p.Store, func(name string) string { return c.env[name] })
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !errors.Is(err, ErrNoPlace) {
			t.Errorf("%s with %v: %q, %v; want %q", c.p.Name, c.env, got, err, c.want)
		}
	}
}

const good = "version: 1\nname: mine\nstore: [$HOME/x]\ncache: mine/skills\n"

// mistake is a file with something wrong, and what Parse says of it.
type mistake struct{ text, says string }

const envRoot = "roots: [{scope: p, on: environment, places: [.agents/skills], walk: repository, trust: true, entries: 5}]\n"

// mistakes has each kind that Parse refuses. What a schema cannot see is in others.
func mistakes() (seen, others map[string]mistake) {
	return map[string]mistake{
			"unknown key":           {good + "colour: red\n", "line 5: unknown key colour"},
			"unknown inner key":     {good + "bundle:\n  entires: 5\n", "line 6: unknown key entires"},
			"other version":         {strings.Replace(good, "1", "2", 1), "version is 2"},
			"no version":            {strings.TrimPrefix(good, "version: 1\n"), "version is 0"},
			"no name":               {strings.Replace(good, "name: mine\n", "", 1), "name is missing"},
			"no store":              {strings.Replace(good, "store: [$HOME/x]\n", "", 1), "store is missing"},
			"relative store":        {strings.Replace(good, "$HOME/x", "x/y", 1), "neither is absolute"},
			"variable inside":       {strings.Replace(good, "$HOME/x", "$HOME/$USER", 1), "one variable"},
			"no cache":              {strings.Replace(good, "cache: mine/skills\n", "", 1), "cache"},
			"cache escapes":         {strings.Replace(good, "mine/skills", "../etc", 1), "cache"},
			"absolute cache":        {strings.Replace(good, "mine/skills", "/etc", 1), "cache"},
			"cache with a quote":    {strings.Replace(good, "mine/skills", `"a'b"`, 1), "cache"},
			"negative limit":        {good + "bundle: {bytes: -1}\n", "negative"},
			"limit too large":       {good + "bundle: {entries: 9223372036854775807}\n", "over what can be"},
			"skill left out":        {good + "bundle: {leaveOut: [SKILL.md]}\n", "makes a skill"},
			"bad name left out":     {good + "bundle: {leaveOut: [a/b]}\n", "leaveOut"},
			"unknown code":          {good + "severities: {nosuch: error}\n", "nosuch"},
			"unknown severity":      {good + "severities: {name-directory: fatal}\n", "fatal"},
			"softened fatal":        {good + "severities: {name-missing: warning}\n", "always an error"},
			"root nowhere":          {good + "roots: [{scope: host, on: host, entries: 5}]\n", "places"},
			"root relative":         {good + "roots: [{scope: host, on: host, places: [x], entries: 5}]\n", "neither is absolute"},
			"not a mapping":         {"- a\n", "line 1"},
			"wrong type":            {good + "bundle: {bytes: many}\n", "line 5"},
			"terminal characters":   {good + "\"\\e[2J\": 1\n", `\u{1b}`},
			"no roots, a number":    {good + "roots: 5\n", "line 5"},
			"root of no scope":      {good + "roots: [{on: host, places: [$HOME/x], entries: 5}]\n", "scope is missing"},
			"root on no machine":    {good + "roots: [{scope: s, places: [$HOME/x], entries: 5}]\n", "host or environment"},
			"root on Mars":          {good + "roots: [{scope: s, on: mars, places: [$HOME/x], entries: 5}]\n", "host or environment"},
			"root without entries":  {good + "roots: [{scope: s, on: host, places: [$HOME/x]}]\n", "entries is 0"},
			"root of all entries":   {good + "roots: [{scope: s, on: host, places: [$HOME/x], entries: 10001}]\n", "entries is 10001"},
			"root of two kinds":     {good + "roots: [{scope: s, on: host, places: [$HOME/x], enabledBy: [$HOME/y], entries: 5}]\n", "either places or enabledBy"},
			"root with a walk":      {good + "roots: [{scope: s, on: host, places: [$HOME/x], walk: repository, entries: 5}]\n", "below the working directory"},
			"root with trust":       {good + "roots: [{scope: s, on: host, places: [$HOME/x], trust: true, entries: 5}]\n", "below the working directory"},
			"root with an odd walk": {good + strings.Replace(envRoot, "repository", "home", 1), "walk is"},
			"root key":              {good + strings.Replace(envRoot, "trust", "trusted", 1), "line 5: unknown key trusted"},
			"import by a file":      {good + "roots: [{scope: s, on: host, enabledBy: [$HOME/x], import: true, entries: 5}]\n", "import needs places"},
			"import elsewhere":      {good + strings.Replace(envRoot, "trust", "import", 1), "neither enabledBy nor import"},
			"two places":            {good + strings.Replace(envRoot, "places: [", "places: [x, ", 1), "one place"},
			"absolute place":        {good + strings.Replace(envRoot, ".agents", "/agents", 1), "neither below ~"},
			"place above":           {good + strings.Replace(envRoot, ".agents", "..", 1), "neither below ~"},
			"variable elsewhere":    {good + strings.Replace(envRoot, ".agents", "$HOME", 1), "neither below ~"},
			"walk from home":        {good + strings.Replace(envRoot, ".agents", "~/x", 1), "below the working directory"},
			"two for imports":       {good + "roots: [{scope: a, on: host, places: [$HOME/x], import: true, entries: 5}, {scope: b, on: host, places: [$HOME/y], import: true, entries: 5}]\n", "at most one"},
			"two enabled":           {good + "roots: [{scope: a, on: host, enabledBy: [$HOME/x], entries: 5}, {scope: b, on: host, enabledBy: [$HOME/y], entries: 5}]\n", "at most one"},
			"too many roots":        {good + "roots: [" + strings.Repeat("{scope: a, on: host, places: [$HOME/x], entries: 5}, ", 33) + "]\n", "at most 32"},
			"negative skills":       {good + "limits: {skills: -1}\n", "negative"},
			"too many skills":       {good + "limits: {skills: 1000001}\n", "over what can be"},
			"tool with a space":     {good + "tools: {load: load skill}\n", "tools"},
			"softened by name":      {good + "severities: {link-escapes: warning}\n", "always an error"},
		}, map[string]mistake{
			"nothing":             {" \n", "it is empty"},
			"a second document":   {good + "---\n" + good, "line 5: a second document"},
			"what ends it oddly":  {good + "---\n{\n", "line 6"},
			"a broken number":     {good + "bundle: {entries: 1.5}\n", "line 5: 1.5 is no whole number"},
			"an endless number":   {good + "bundle: {entries: 99999999999999999999}\n", "line 5: 99999999999999999999 is no whole number"},
			"place with a NUL":    {good + strings.Replace(envRoot, ".agents/skills", `"a\0b"`, 1), `line 5: a\u{0}b holds a control character`},
			"a name in red":       {strings.Replace(good, "mine", `"\e[31m"`, 1), "control character"},
			"list for text":       {strings.Replace(good, "mine\n", "[mine]\n", 1), "there is a list where text should be"},
			"text for a list":     {strings.Replace(good, "[$HOME/x]", "$HOME/x", 1), "there is text `$HOME/x` where a list should be"},
			"text for keys":       {good + "limits: none\n", "line 5: there is text `none` where keys with values should be"},
			"two tools of a name": {good + "tools: {load: a, unload: a}\n", "there twice"},
			"key twice":           {good + "name: other\n", "line 5"},
			"alias":               {good + "bundle: &a {bytes: 1}\n", "anchors"},
			"not YAML":            {"{", "line 1"},
			"too large":           {good + strings.Repeat("#\n", MaxFileBytes), "64 KiB"},
		}
}

func TestOwnProfileSaysWhatIsWrongWithIt(t *testing.T) {
	for _, text := range []string{good, good + envRoot} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Parse([]byte(good + "limits:\n  skills: 5\nroots:\n  - scope: a\n    on: host\n    places: [$HOME/x]\n    entries: 5\n  - scope: b\n    on: host\n    places:\n      - x\n    entries: 5\n"))
	if err == nil || !strings.Contains(err.Error(), "line 15: roots: number 2 (b)") {
		t.Errorf("error %v", err)
	}
	seen, others := mistakes()
	maps.Copy(others, seen)
	for name, m := range others {
		_, err := Parse([]byte(m.text))
		if err == nil || !strings.Contains(err.Error(), m.says) || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("%s: error %v, want it to say %q", name, err, m.says)
			continue
		}
		// What is not there has no line.
		missing := strings.Contains(err.Error(), " is missing") || slices.Contains([]string{"no version", "no cache", "nothing", "too large"}, name)
		if !missing && !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: error %v, want it to say where", name, err)
		}
		if strings.Contains(err.Error(), "!!") || strings.Contains(err.Error(), "profile.") {
			t.Errorf("%s: error %v speaks of types", name, err)
		}
	}
}

func TestSchemaRefusesWhatIsRefused(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{good, good + envRoot} {
		if err := validate(t, s, text); err != nil {
			t.Fatal(err)
		}
	}
	seen, _ := mistakes()
	for name, m := range seen {
		if err := validate(t, s, m.text); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestFloodOfKeysIsRefusedAtOnce(t *testing.T) {
	done := make(chan error, 1)
	go func() {
		_, err := Parse([]byte(strings.Repeat("a:\n", MaxFileBytes/3)))
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("error %v", err)
		}
	case <-time.After(10 * time.Second): // decoded, it takes most of a minute and 4 GB
		t.Fatal("still decoding")
	}
}

func TestProfileIsAFileOrABuiltinName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := Load(file); err != nil || p.Name != "mine" {
		t.Errorf("%v, %v", p, err)
	}
	for name, says := range map[string]string{
		"nosuch":                       "berry, headlesscode",
		filepath.Dir(file):             "not a file",
		filepath.Join(file, "no.yaml"): "profile",
		"./nosuch.yaml":                "nosuch.yaml",
		"berry\x1b[2J":                 `\u{1b}`,
	} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Load(%q): %v, want it to say %q", name, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	for _, name := range Builtin() {
		data, err := builtin.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse(data)
		if err != nil {
			for _, r := range err.Error() {
				if r < 0x20 {
					t.Fatalf("the error %q shows what it should quote", err)
				}
			}
			return
		}
		if p.Name == "" || len(p.Store) == 0 || p.Cache == "" || p.Severities.Check() != nil || filepath.IsAbs(p.Cache) {
			t.Fatalf("accepted as %+v", p)
		}
	})
}
