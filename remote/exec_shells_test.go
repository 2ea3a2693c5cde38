//go:build linux

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// loginShells are what an account may have; shells are what a machine may have as /bin/sh.
var (
	loginShells = []string{"bash", "dash", "zsh", "busybox", "mksh", "ksh", "fish", "tcsh"}
	shells      = []string{"dash", "bash", "busybox", "zsh", "mksh", "ksh"}
)

// programs are what the scripts need or use beside a shell, with one of the ways to a SHA-256.
var programs = []string{
	"find", "sort", "sed", "id", "head", "tr", "ls", "stat", "date", "cat", "touch", "chmod",
	"mkdir", "rmdir", "mv", "rm", "sleep", "tar", "gzip", "printf", "sha256sum",
	"awk", "od", "wc", "readlink",
}

// userland is a directory with programs, for a PATH.
type userland struct {
	t   testing.TB
	dir string
}

func newUserland(t testing.TB) userland { return userland{t, t.TempDir()} }

// link puts this machine's programs there, all but those left out.
func (u userland) link(without ...string) userland {
	left := " " + strings.Join(without, " ") + " "
	for _, name := range programs {
		if strings.Contains(left, " "+name+" ") {
			continue
		}
		p, err := exec.LookPath(name)
		must(u.t, err)
		u.put(name, p)
	}
	return u
}

func (u userland) put(name, program string) {
	at := filepath.Join(u.dir, name)
	_ = os.Remove(at)
	must(u.t, os.Symlink(program, at))
}

// wrap puts a shell script there.
func (u userland) wrap(name, script string) {
	at := filepath.Join(u.dir, name)
	_ = os.Remove(at)
	must(u.t, os.WriteFile(at, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// busyboxland has busybox's programs alone.
func busyboxland(t testing.TB) userland {
	p, err := exec.LookPath("busybox")
	if err != nil {
		testenv.Missing(t, "busybox")
	}
	u := newUserland(t)
	for _, name := range programs {
		u.put(name, p)
	}
	return u
}

// bsdland has programs without what only GNU's have: no sha256sum, a stat of BSD's kind, and a find
// that refuses GNU's extensions.
func bsdland(t testing.TB) userland {
	p, err := exec.LookPath("shasum")
	if err != nil {
		testenv.Missing(t, "shasum")
	}
	u := newUserland(t).link("sha256sum", "find", "stat", "sort", "sed", "touch", "date")
	u.put("shasum", p)
	u.wrap("find", `for a do
		case $a in -printf|-print0|-quit|-readable|/[0-7]*|-regex*) echo "find: $a: unknown primary" >&2; exit 1;; esac
	done
	POSIXLY_CORRECT=1 exec /usr/bin/find "$@"`)
	u.wrap("stat", `[ "$1 $2" = "-f %m" ] || { echo "stat: illegal option -- ${1#-}" >&2; exit 1; }
	exec /usr/bin/stat -c %Y "$3"`)
	u.wrap("sed", `exec /usr/bin/sed --posix "$@"`)
	u.wrap("sort", `POSIXLY_CORRECT=1 exec /usr/bin/sort "$@"`)
	u.wrap("touch", `case $1 in -c|-t|[!-]*) exec /usr/bin/touch "$@";; esac; exit 1`)
	u.wrap("date", `[ "$1" = +%s ] && exec /usr/bin/date +%s; exit 1`)
	if tar, err := exec.LookPath("bsdtar"); err == nil {
		u.put("tar", tar)
	}
	return u
}

// tour does everything once that a script can do.
func tour(t *testing.T, conn *shellConn, home string) {
	t.Helper()
	ctx := t.Context()
	old := plainSkill().pin(t, "release")
	next := plainSkill().with("SKILL.md", "new").with("big", strings.Repeat("x", 5000)).pin(t, "release")
	c, err := Open(conn, Options{Dir: "berry/skills", Older: func(m *bundle.Manifest) *bundle.Manifest {
		if m.Digest() == next.Manifest.Digest() {
			return old.Manifest
		}
		return nil
	}})
	must(t, err)
	w := &wayTest{t: t, c: c, home: home, root: filepath.Join(home, ".cache", "berry", "skills")}
	probeAll(t, w)
	w.result(old, Published)
	probeAll(t, w)
	w.result(next, Published)
	w.holds(next, old.Manifest.Digest().String())
	w.result(next, Present)
	w.holds(old, next.Manifest.Digest().String())

	oldDir, nextDir := filepath.Join(w.root, old.Manifest.Digest().String()), filepath.Join(w.root, next.Manifest.Digest().String())
	damages["line end in name"](t, nextDir, filepath.Join(nextDir, "release"))
	damages["locked directory"](t, oldDir, filepath.Join(oldDir, "release"))
	must(t, os.Mkdir(filepath.Join(w.root, "end\nof line"), 0o700))
	copies, err := c.Check(ctx, old.Manifest.Digest(), next.Manifest.Digest(), bundle.Digest{1})
	must(t, err)
	if copies[0].State != Damaged || copies[1].State != Damaged || copies[2].State != Absent {
		t.Errorf("check says %+v", copies)
	}
	results, err := c.Publish(ctx, old, next)
	must(t, err)
	for _, r := range results {
		if r.Outcome != Repaired || r.Err != nil {
			t.Errorf("repair: %+v", r)
		}
	}
	w.holds(old, next.Manifest.Digest().String(), "end\nof line")
	w.holds(next, old.Manifest.Digest().String(), "end\nof line")
	dir, copies, err := c.List(ctx)
	must(t, err)
	if dir != w.root || len(copies) != 3 {
		t.Errorf("list says %q %+v", dir, copies)
	}
	for _, k := range copies {
		if k.State == Foreign && k.Name == "end\nof line" {
			continue
		}
		if k.State != Whole || k.Name != "release" || k.Files < 13 || k.Bytes == 0 || k.Used.IsZero() {
			t.Errorf("list says %+v", k)
		}
	}
	removed, err := c.Prune(ctx, PruneOptions{Keep: map[bundle.Digest]bool{old.Manifest.Digest(): true}})
	must(t, err)
	if len(removed) != 1 || removed[0].Err != nil {
		t.Errorf("prune says %+v", removed)
	}
	w.holds(old, "end\nof line")
	if c.Class() != "exec" {
		t.Errorf("class %q", c.Class())
	}
}

// visit publishes, asks, repairs and lists once.
func visit(t *testing.T, conn *shellConn, home string) {
	t.Helper()
	b := plainSkill().pin(t, "release")
	c, err := Open(conn, Options{Dir: "berry/skills"})
	must(t, err)
	w := &wayTest{t: t, c: c, home: home, root: filepath.Join(home, ".cache", "berry", "skills")}
	w.result(b, Published)
	w.holds(b)
	must(t, os.WriteFile(filepath.Join(w.root, b.Manifest.Digest().String(), "release", "extra"), nil, 0o600))
	w.result(b, Repaired)
	w.holds(b)
	copies, err := c.Check(t.Context(), b.Manifest.Digest())
	must(t, err)
	if copies[0].State != Whole || copies[0].Name != "release" {
		t.Errorf("check says %+v", copies)
	}
	if dir, copies, err := c.List(t.Context()); err != nil || dir != w.root || len(copies) != 1 || copies[0].State != Whole {
		t.Errorf("list says %q %+v %v", dir, copies, err)
	}
	if c.Class() != "exec" {
		t.Errorf("class %q", c.Class())
	}
}

func TestEveryLoginShellPassesTheScriptOn(t *testing.T) {
	for _, name := range loginShells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, home := newShellConn(t)
			conn.login = []string{shellNamed(t, name, false)}
			if name == "busybox" {
				conn.login = []string{shellNamed(t, name, true)}
			}
			tour(t, conn, home)
		})
	}
}

// TestEveryShellRunsTheScriptWithEveryUserland does not try every pair: what a shell may get wrong
// and what a program may get wrong have little to do with each other.
func TestEveryShellRunsTheScriptWithEveryUserland(t *testing.T) {
	lands := map[string]func(testing.TB) userland{
		"gnu":     func(t testing.TB) userland { return newUserland(t).link() },
		"busybox": busyboxland,
		"bsd":     bsdland,
	}
	pairs := [][2]string{{"busybox", "busybox"}, {"dash", "busybox"}, {"dash", "bsd"}, {"zsh", "bsd"}}
	for _, sh := range shells {
		pairs = append(pairs, [2]string{sh, "gnu"})
	}
	for _, pair := range pairs {
		t.Run(pair[0]+"-"+pair[1], func(t *testing.T) {
			t.Parallel()
			conn, home := newShellConn(t)
			conn.sh, conn.only = shellNamed(t, pair[0], true), true
			conn.env["PATH"] = lands[pair[1]](t).dir
			tour(t, conn, home)
		})
	}
}

func TestBusyboxAloneKeepsThePromisesOfBothWays(t *testing.T) {
	testWay(t, func(t *testing.T) (transport.Conn, string) {
		conn, home := newShellConn(t)
		conn.sh, conn.only = shellNamed(t, "busybox", true), true
		conn.env["PATH"] = busyboxland(t).dir
		return conn, home
	}, Options{})
}

func TestAnyProgramForSHA256Will(t *testing.T) {
	for name, put := range map[string]func(userland){
		"shasum": func(u userland) { p, _ := exec.LookPath("shasum"); u.put("shasum", p) },
		"sha256": func(u userland) {
			u.wrap("sha256", `[ "$1" = -r ] || exit 1; shift
			[ $# = 0 ] && { x=$(/usr/bin/sha256sum); echo "${x%% *}"; exit; }
			/usr/bin/sha256sum "$@" | /usr/bin/sed "s/  / /"`)
		},
		"openssl": func(u userland) {
			p, err := exec.LookPath("openssl")
			if err != nil {
				testenv.Missing(u.t, "openssl")
			}
			u.put("openssl", p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUserland(t).link("sha256sum")
			put(u)
			conn, home := newShellConn(t)
			conn.only = true
			conn.env["PATH"] = u.dir
			tour(t, conn, home)
		})
	}
}

func TestTheAccountsEnvironmentChangesNothing(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"CDPATH":        {"CDPATH": "/:/tmp:/usr"},
		"TMOUT":         {"TMOUT": "1"},
		"IFS":           {"IFS": "/0123456789abcdef"},
		"functions":     {"BASH_FUNC_find%%": "() { echo evil; }", "BASH_FUNC_cd%%": "() { builtin cd /; }", "BASH_FUNC_printf%%": "() { echo evil; }"},
		"shell options": {"SHELLOPTS": "noglob:errexit:nounset:noclobber"},
		"locale":        {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"},
		"tar and gzip":  {"TAR_OPTIONS": "--exclude=*.md -v", "GZIP": "-v", "TAPE": "/dev/null"},
		"posix":         {"POSIXLY_CORRECT": "1", "POSIX_ME_HARDER": "1"},
		"start files":   {"ENV": "/nonexistent", "BASH_ENV": "/nonexistent"},
		"no PATH":       {"PATH": ""},
		"time zone":     {"TZ": "Asia/Kathmandu"},
		"relative XDG":  {"XDG_CACHE_HOME": "relative/ignored"},
		"empty XDG":     {"XDG_CACHE_HOME": ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			conn, home := newShellConn(t)
			// The shell that takes most from its environment, and as login shell one that hands all
			// of it on.
			conn.sh, conn.login = shellNamed(t, "bash", true), []string{shellNamed(t, "bash", false)}
			for k, v := range env {
				conn.env[k] = v
			}
			visit(t, conn, home)
		})
	}
}

// TestAnEmptyPATHDoesNotRunWhatLiesAround has a program in the cache that a PATH without elements
// would find first.
func TestAnEmptyPATHDoesNotRunWhatLiesAround(t *testing.T) {
	conn, home := newShellConn(t)
	root := filepath.Join(home, ".cache/berry/skills")
	must(t, os.MkdirAll(root, 0o700))
	conn.env["PATH"] = ""
	for _, name := range []string{"sort", "find", "tar"} {
		userland{t, root}.wrap(name, "touch "+quoted(filepath.Join(home, "ran")))
	}
	publishOne(t, openCache(t, conn, Options{}), plainSkill().pin(t, "release"))
	if _, err := os.Stat(filepath.Join(home, "ran")); err == nil {
		t.Error("a program in the cache was run")
	}
}

func TestWhatAStartFilePrintsIsNotTheAnswer(t *testing.T) {
	noise := map[string]string{
		"lines":       "echo hello; echo begin:; echo end:",
		"no line end": "printf 'Last login: '",
		"much":        "i=0; while [ $i -lt 600 ]; do echo ................................................................................; i=$((i+1)); done",
		"long line":   "i=0; while [ $i -lt 600 ]; do printf ................................................................................; i=$((i+1)); done",
		"NUL":         `printf "\0\0\n"`,
		"errors":      "echo oops >&2",
		"the line":    `printf "%s\n" "$2"`,
		"afterwards":  `trap "echo bye; printf more" 0; eval "$2"; exit; :`,
	}
	for name, text := range noise {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			conn, home := newShellConn(t)
			conn.login = []string{"/bin/bash", "-c", text + `; eval "$2"`, "bash"}
			if name == "afterwards" {
				conn.fix = func(cmd *transport.Cmd) { cmd.Line = strings.Replace(cmd.Line, "exec /bin/sh", "/bin/sh", 1) }
			}
			visit(t, conn, home)
		})
	}
}

// TestTheScriptsKeepTheirRules holds each joined script to what every login shell passes on
// unchanged between single quotes, and its command to what every server takes.
