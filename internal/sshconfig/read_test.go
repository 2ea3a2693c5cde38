package sshconfig

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
)

// hostile is a reader whose files are those of a map.
func hostile(t testing.TB, q Query, files map[string]string) *reader {
	t.Helper()
	q.Log, q.Home = slog.New(slog.DiscardHandler), "/home/me"
	r, err := newReader(q)
	if err != nil {
		t.Fatal(err)
	}
	r.read = func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
	r.glob = func(pattern string) ([]string, error) {
		var names []string
		for name := range files {
			if ok, err := filepath.Match(pattern, name); err != nil {
				return nil, err
			} else if ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	}
	r.lookup = func(_ context.Context, host string) bool { return strings.HasSuffix(host, ".known.example") }
	return r
}

func TestCanonicalNamesAreLookedFor(t *testing.T) {
	for name, c := range map[string]struct{ host, lines, want string }{
		"the first domain that knows it": {"dev", "CanonicalDomains un.example known.example\nCanonicalizeHostname yes\n", "dev.known.example"},
		"with dots":                      {"a.b", "CanonicalDomains known.example\nCanonicalizeHostname yes\nCanonicalizeMaxDots 0\n", "a.b"},
		"with dots allowed":              {"a.b", "CanonicalDomains known.example\nCanonicalizeHostname yes\n", "a.b.known.example"},
		"not asked":                      {"dev", "CanonicalDomains known.example\n", "dev"},
		"unknown":                        {"dev", "CanonicalDomains un.example\nCanonicalizeHostname yes\n", "dev"},
		"behind a proxy":                 {"dev", "CanonicalDomains known.example\nCanonicalizeHostname yes\nProxyJump j\n", "dev"},
		"behind a proxy, always":         {"dev", "CanonicalDomains known.example\nCanonicalizeHostname always\nProxyJump j\n", "dev.known.example"},
	} {
		r := hostile(t, Query{Host: c.host, ConfigFile: "/c"}, map[string]string{"/c": c.lines + "Match canonical host *.known.example\n  Port 7\nHost *.known.example\n  User late\n"})
		a, err := r.answer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		again := strings.HasSuffix(c.want, ".known.example")
		if got := first(a.raw, "hostname"); got != c.want || (first(a.raw, "port") == "7") != again || (first(a.raw, "user") == "late") != again {
			t.Errorf("%s: %q", name, a.raw)
		}
	}
	r := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, map[string]string{"/c": "CanonicalizeHostname yes\nCanonicalDomains un.example\nCanonicalizeFallbackLocal no\n"})
	if _, err := r.answer(t.Context()); err == nil || !strings.Contains(err.Error(), "CanonicalDomains") {
		t.Errorf("no fallback: %v", err)
	}
}

func TestTheUsersAndTheSystemsFilesAreReadFromWhereTheyAre(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "paths as Unix has them")
	}
	r := hostile(t, Query{Host: "dev"}, map[string]string{
		"/home/me/.ssh/config": "Include conf.d/*\nInclude ~/x\nHost dev\n  Port 2\n", "/home/me/.ssh/conf.d/a": "User a\n", "/home/me/x": "Compression yes\n",
		"/etc/ssh/ssh_config": "Port 3\nUser b\nInclude ssh_config.d/*.conf\n", "/etc/ssh/ssh_config.d/a.conf": "BatchMode yes\n",
	})
	a, err := r.answer(t.Context())
	if err != nil || first(a.raw, "port") != "2" || first(a.raw, "user") != "a" || first(a.raw, "compression") != "yes" || first(a.raw, "batchmode") != "yes" {
		t.Errorf("%q, %v", a, err)
	}
	r = hostile(t, Query{Host: "dev"}, map[string]string{"/etc/ssh/ssh_config": "Include ~/x\n"})
	if _, err := r.answer(t.Context()); err == nil {
		t.Error("the system's configuration has a home")
	}
	if a, err := hostile(t, Query{Host: "dev"}, nil).answer(t.Context()); err != nil || first(a.raw, "port") != "22" {
		t.Errorf("no files at all: %v, %v", a, err)
	}
}

func TestWhatIsReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/large", strings.Repeat("#", maxFileBytes)+"\n")
	write(t, dir+"/fits", strings.Repeat("#", maxFileBytes-1)+"\n")
	q := quiet("dev")
	for name, fine := range map[string]bool{"fits": true, "large": false, ".": false} {
		q.ConfigFile = filepath.Join(dir, name)
		if _, err := readHere(t, q); (err == nil) != fine {
			t.Errorf("%s: %v", name, err)
		}
	}
	wide := map[string]string{"/c": "Include /inc/*\nInclude /inc/*\nInclude /inc/*\n"}
	for i := range maxFiles / 2 {
		wide["/inc/"+strings.Repeat("x", i+1)] = ""
	}
	if _, err := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, wide).answer(t.Context()); err == nil || !strings.Contains(err.Error(), "files") {
		t.Errorf("many files: %v", err)
	}
	large := map[string]string{"/c": "Include /inc/*\n"}
	for i := range maxBytes/maxFileBytes + 1 {
		large["/inc/"+strconv.Itoa(i)] = strings.Repeat("#", maxFileBytes-10)
	}
	if _, err := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, large).answer(t.Context()); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("large files: %v", err)
	}
	for n, fine := range map[int]bool{maxValues: true, maxValues + 1: false} {
		var lines strings.Builder
		for i := range n {
			lines.WriteString("IdentityFile /" + strconv.Itoa(i) + "\n")
		}
		if _, err := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, map[string]string{"/c": lines.String()}).answer(t.Context()); (err == nil) != fine {
			t.Errorf("%d identity files: %v", n, err)
		}
	}
	deep := func(n int) map[string]string {
		files := map[string]string{"/c": "Include /1\n"}
		for i := range n - 1 {
			files["/"+strconv.Itoa(i+1)] = "Include /" + strconv.Itoa(i+2) + "\n"
		}
		files["/"+strconv.Itoa(n-1)] = "Port 5\n"
		return files
	}
	if a, err := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, deep(maxDepth)).answer(t.Context()); err != nil || first(a.raw, "port") != "5" {
		t.Errorf("as deep as may be: %v, %v", a, err)
	}
	if _, err := hostile(t, Query{Host: "dev", ConfigFile: "/c"}, deep(maxDepth+1)).answer(t.Context()); err == nil {
		t.Error("deeper: no error")
	}
}
