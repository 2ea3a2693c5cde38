//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

func TestEveryUmaskGivesTheSameModes(t *testing.T) {
	for _, umask := range []string{"000", "022", "777"} {
		t.Run(umask, func(t *testing.T) {
			conn, home := newPlainConn(t)
			conn.login = append(conn.login, "-c", "umask "+umask+`; eval "$2"`, "sh")
			b := plainSkill().pin(t, "release")
			w := &wayTest{t: t, c: openCache(t, conn, Options{}), home: home, root: filepath.Join(home, ".cache", "berry", "skills")}
			w.result(b, Published)
			w.holds(b)
			must(t, os.Remove(filepath.Join(w.root, b.Manifest.Digest().String(), "release", "SKILL.md")))
			w.result(b, Repaired)
			w.holds(b)
		})
	}
}

// TestACacheThatOthersCouldChangeIsRefused holds every verb to refusing, to changing nothing, and
// to naming the directory that is to blame and a command that mends it.
func TestACacheThatOthersCouldChangeIsRefused(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct {
		spoil func(home string) string // returns the path to blame
		env   map[string]string
	}{
		"ancestor of another user": {spoil: func(home string) string { return owned(t, filepath.Join(home, ".cache")) }},
		"home of another user":     {spoil: func(home string) string { return owned(t, home) }},
		"cache of another user": {spoil: func(home string) string {
			return owned(t, filepath.Join(home, ".cache/berry/skills"))
		}},
		"ancestor for all": {spoil: func(home string) string { return open(t, filepath.Join(home, ".cache"), 0o777) }},
		"cache for all":    {spoil: func(home string) string { return open(t, filepath.Join(home, ".cache/berry/skills"), 0o777) }},
		"ancestor for a group": {spoil: func(home string) string {
			p := open(t, filepath.Join(home, ".cache/berry"), 0o775)
			must(t, os.Chown(p, 0, 1))
			return p
		}},
		"link of another user": {spoil: func(home string) string {
			must(t, os.Mkdir(filepath.Join(home, "real"), 0o700))
			link := filepath.Join(home, ".cache")
			must(t, os.Symlink("real", link))
			must(t, os.Lchown(link, 1, 1))
			return link
		}},
		"link to a place for all": {spoil: func(home string) string {
			p := open(t, filepath.Join(home, "open"), 0o777)
			must(t, os.Mkdir(filepath.Join(p, "real"), 0o700))
			must(t, os.Symlink(filepath.Join(p, "real"), filepath.Join(home, ".cache")))
			return p
		}},
		"cache is a link of another user": {spoil: func(home string) string {
			must(t, os.MkdirAll(filepath.Join(home, ".cache/berry"), 0o700))
			must(t, os.Mkdir(filepath.Join(home, "real"), 0o700))
			link := filepath.Join(home, ".cache/berry/skills")
			must(t, os.Symlink(filepath.Join(home, "real"), link))
			must(t, os.Lchown(link, 1, 1))
			return link
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			conn, home := newShellConn(t)
			must(t, os.WriteFile(filepath.Join(home, "file"), nil, 0o600))
			blame := c.spoil(home)
			before := snapshot(t, home)
			cache := openCache(t, conn, Options{})
			b := plainSkill().pin(t, "release")
			_, publish := cache.Publish(t.Context(), b)
			_, check := cache.Check(t.Context(), b.Manifest.Digest())
			_, _, list := cache.List(t.Context())
			_, prune := cache.Prune(t.Context(), PruneOptions{})
			for _, err := range []error{publish, check, list, prune} {
				e, ok := errors.AsType[*Error](err)
				if !ok || !errors.Is(err, ErrUnsafe) || e.Path != blame || !strings.Contains(transport.Hint(err), blame) {
					t.Errorf("got %v (hint %q), want it unsafe for %s", err, transport.Hint(err), blame)
				}
			}
			if after := snapshot(t, home); after != before {
				t.Errorf("the home was changed from\n%sto\n%s", before, after)
			}
			if hint, ok := strings.CutPrefix(transport.Hint(publish), "on the target, run: "); ok {
				if out, err := exec.Command("/bin/sh", "-c", hint).CombinedOutput(); err != nil {
					t.Fatalf("%s: %s", hint, out)
				}
				publishOne(t, cache, b)
			}
			if cache.Class() != "exec" {
				t.Errorf("class %q", cache.Class())
			}
		})
	}
}

// owned makes a directory that is another user's.
func owned(t testing.TB, dir string) string {
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.Chown(dir, 1, 1))
	return dir
}

// open makes a directory with a mode.
func open(t testing.TB, dir string, mode fs.FileMode) string {
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.Chmod(dir, mode))
	return dir
}

func TestACacheOwnedByRootIsNoOrdinaryAccounts(t *testing.T) {
	needRoot(t)
	conn, home := newPlainConn(t)
	must(t, os.MkdirAll(filepath.Join(home, ".cache/berry/skills"), 0o755))
	_, err := openCache(t, conn, Options{}).Publish(t.Context(), plainSkill().pin(t, "release"))
	if !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want it unsafe", err)
	}
}

// TestAGroupOfManyIsNotPrivate has an account whose group bears another's name.
func TestAGroupOfManyIsNotPrivate(t *testing.T) {
	needRoot(t)
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		testenv.Missing(t, "setpriv")
	}
	conn, home := newShellConn(t)
	conn.login = append([]string{setpriv, "--reuid=1", "--regid=2", "--clear-groups"}, conn.login...)
	must(t, os.Chown(home, 1, 2))
	must(t, os.Chown(open(t, filepath.Join(home, ".cache"), 0o775), 1, 2))
	must(t, os.Chmod(filepath.Join(home, ".cache"), 0o775))
	_, err = openCache(t, conn, Options{}).Publish(t.Context(), plainSkill().pin(t, "release"))
	if !errors.Is(err, ErrUnsafe) {
		t.Errorf("got %v, want it unsafe", err)
	}
}

func TestPlacesThatAreSafeAreAccepted(t *testing.T) {
	for name, prepare := range map[string]func(conn *shellConn, home string) (cache string){
		"cache directory is a link": func(_ *shellConn, home string) string {
			must(t, os.Mkdir(filepath.Join(home, "real"), 0o700))
			must(t, os.Symlink("real", filepath.Join(home, ".cache")))
			return filepath.Join(home, ".cache")
		},
		"home is a link": func(conn *shellConn, home string) string {
			link := filepath.Join(home, "link")
			must(t, os.Symlink(home, link))
			conn.env["HOME"] = link
			return filepath.Join(link, ".cache")
		},
		"XDG with odd characters": func(conn *shellConn, home string) string {
			dir := filepath.Join(home, `a b'c"d$(e)\f*`, "cache")
			conn.env["XDG_CACHE_HOME"] = dir + "/"
			return dir
		},
		"XDG is not UTF-8": func(conn *shellConn, home string) string {
			conn.env["XDG_CACHE_HOME"] = home + "/\xff\xfe"
			return home + "/\xff\xfe"
		},
		"XDG through its parent": func(conn *shellConn, home string) string {
			must(t, os.Mkdir(filepath.Join(home, "x"), 0o700))
			conn.env["XDG_CACHE_HOME"] = home + "/x/../y"
			return home + "/x/../y"
		},
		"sticky ancestor": func(conn *shellConn, home string) string {
			dir := open(t, filepath.Join(home, "shared"), 0o777|fs.ModeSticky)
			conn.env["XDG_CACHE_HOME"] = dir
			return dir
		},
		"private group": func(_ *shellConn, home string) string {
			return open(t, filepath.Join(home, ".cache"), 0o775)
		},
		"no home but XDG": func(conn *shellConn, home string) string {
			delete(conn.env, "HOME")
			conn.env["XDG_CACHE_HOME"] = filepath.Join(home, "x")
			return filepath.Join(home, "x")
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			conn, home := newShellConn(t)
			cache := prepare(conn, home)
			b := plainSkill().pin(t, "release")
			c := openCache(t, conn, Options{})
			for _, want := range []Outcome{Published, Present} {
				r := publishOne(t, c, b)
				if path := cache + "/berry/skills/" + b.Manifest.Digest().String() + "/release"; filepath.Clean(r.Path) != filepath.Clean(path) || r.Outcome != want {
					t.Errorf("%s at %q, want %s at %q", r.Outcome, r.Path, want, path)
				}
				if got := recomputed(t, filepath.Dir(r.Path)); got != b.Manifest.Digest().String() {
					t.Error("the copy is not whole")
				}
			}
		})
	}
}

func TestAHomeThatCannotBeSpokenOfIsRefused(t *testing.T) {
	b := plainSkill().pin(t, "release")
	for name, home := range map[string]func(dir string) string{
		"no home":          func(string) string { return "" },
		"relative home":    func(string) string { return "home" },
		"line end in home": func(dir string) string { return dir + "/a\nb" },
		"escape in home":   func(dir string) string { return dir + "/a\x1b[2Jb" },
		"line end in a place": func(dir string) string {
			must(t, os.Mkdir(dir+"/c\nd", 0o700))
			must(t, os.Symlink("c\nd", dir+"/link"))
			return dir + "/link"
		},
	} {
		conn, dir := newShellConn(t)
		conn.env["HOME"] = home(dir)
		before := snapshot(t, dir)
		_, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Kind != nil || !strings.Contains(transport.Hint(err), "HOME") || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: got %v, want a refusal on one line", name, err)
		}
		if after := snapshot(t, dir); after != before {
			t.Errorf("%s: something was made:\n%s", name, after)
		}
	}
}

func TestWhatAnotherUserOwnsInACopyIsDamage(t *testing.T) {
	needRoot(t)
	conn, home := newShellConn(t)
	c := openCache(t, conn, Options{Believed: always})
	b := plainSkill().with("run", "#!/bin/sh\n"+randomText(4000)).pin(t, "release")
	publishOne(t, c, b)
	d := filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String())
	for _, p := range []string{".", "release", "release/SKILL.md", "release/run"} {
		must(t, os.Chown(filepath.Join(d, p), 1, 1))
		n := conn.commands.Load()
		if r := publishOne(t, c, b); r.Outcome != Repaired || conn.commands.Load() != n+1 {
			t.Errorf("%s is another user's: %s in %d commands", p, r.Outcome, conn.commands.Load()-n)
		}
	}
}

func TestADefaultACLOpensNothing(t *testing.T) {
	conn, home := newPlainConn(t)
	must(t, os.Mkdir(filepath.Join(home, ".cache"), 0o700))
	setfacl, err := exec.LookPath("setfacl")
	if err != nil {
		testenv.Missing(t, "setfacl")
	}
	if out, err := exec.Command(setfacl, "-d", "-m", "g::rwx,o::rwx", filepath.Join(home, ".cache")).CombinedOutput(); err != nil {
		testenv.Missing(t, "a file system with ACLs: "+string(out))
	}
	give(t, home)
	w := &wayTest{t: t, c: openCache(t, conn, Options{}), home: home, root: filepath.Join(home, ".cache", "berry", "skills")}
	b := plainSkill().pin(t, "release")
	w.result(b, Published)
	w.holds(b)
}
