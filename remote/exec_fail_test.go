//go:build linux

package remote

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// mounted mounts a tmpfs on a new directory of the home.
func mounted(t *testing.T, home, options string) string {
	t.Helper()
	needRoot(t)
	dir := filepath.Join(home, "mnt")
	must(t, os.Mkdir(dir, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		testenv.Missing(t, "a mountable tmpfs: "+string(out))
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	return dir
}

func TestAFullDiskEndsInATypedErrorAndNothingHalfMade(t *testing.T) {
	for name, size := range map[string]string{"content": "size=256k,mode=755", "names": "size=1m,nr_inodes=9,mode=755"} {
		for _, land := range []string{"gnu", "busybox"} {
			t.Run(name+"-"+land, func(t *testing.T) {
				conn, home := newShellConn(t)
				if land == "busybox" {
					conn.only, conn.env["PATH"] = true, busyboxland(t).dir
				}
				dir := mounted(t, home, size)
				conn.env["XDG_CACHE_HOME"] = dir
				c := openCache(t, conn, Options{})
				small := testSkill{"SKILL.md": "small"}.pin(t, "small")
				publishOne(t, c, small)
				big := plainSkill().with("big", randomText(600<<10)).pin(t, "big")
				results, err := c.Publish(t.Context(), big)
				if !errors.Is(err, ErrNoSpace) || len(results) != 1 || results[0].Outcome != Failed || !errors.Is(results[0].Err, ErrNoSpace) {
					t.Errorf("got %+v, %v, want no space", results, err)
				}
				if transport.Hint(err) == "" {
					t.Error("no hint")
				}
				if got := names(t, filepath.Join(dir, "berry/skills")); len(got) != 1 || got[0] != small.Manifest.Digest().String() {
					t.Errorf("the cache holds %q", got)
				}
			})
		}
	}
}

func TestAPlaceThatCannotBeWrittenToIsATypedError(t *testing.T) {
	b := plainSkill().pin(t, "release")
	t.Run("file system", func(t *testing.T) {
		conn, home := newShellConn(t)
		dir := mounted(t, home, "mode=755")
		conn.env["XDG_CACHE_HOME"] = dir
		c := openCache(t, conn, Options{})
		publishOne(t, c, b)
		must(t, exec.Command("mount", "-o", "remount,ro", dir).Run())
		if r := publishOne(t, c, b); r.Outcome != Present {
			t.Errorf("a whole copy there: %+v", r)
		}
		for name, call := range map[string]func() error{
			"publish": func() error {
				_, err := c.Publish(t.Context(), testSkill{"SKILL.md": "other"}.pin(t, "other"))
				return err
			},
			"prune": func() error { _, err := c.Prune(t.Context(), PruneOptions{}); return err },
		} {
			if err := call(); !errors.Is(err, ErrReadOnly) || transport.Hint(err) == "" {
				t.Errorf("%s: got %v, want it read-only", name, err)
			}
		}
	})
	t.Run("home", func(t *testing.T) {
		conn, home := newPlainConn(t)
		must(t, os.Chmod(home, 0o555))
		before := snapshot(t, home)
		_, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
		if !errors.Is(err, ErrReadOnly) || transport.Hint(err) == "" {
			t.Errorf("got %v, want it read-only", err)
		}
		if after := snapshot(t, home); after != before {
			t.Errorf("the home was changed to\n%s", after)
		}
	})
	t.Run("cache is a file", func(t *testing.T) {
		conn, home := newShellConn(t)
		must(t, os.MkdirAll(filepath.Join(home, ".cache/berry"), 0o700))
		must(t, os.WriteFile(filepath.Join(home, ".cache/berry/skills"), []byte("mine"), 0o600))
		before := snapshot(t, home)
		_, err := openCache(t, conn, Options{}).Publish(t.Context(), b)
		if e, ok := errors.AsType[*Error](err); !ok || e.Path != filepath.Join(home, ".cache/berry/skills") {
			t.Errorf("got %v, want the path", err)
		}
		if after := snapshot(t, home); after != before {
			t.Errorf("the home was changed to\n%s", after)
		}
	})
}

func TestAnAccountForSFTPAloneIsAskedOnce(t *testing.T) {
	conn, home := newShellConn(t)
	t.Setenv("HOME", home)
	conn.login = []string{"/bin/sh", "-c", "echo This service allows sftp connections only.; exit 1", "sh"}
	c := openCache(t, conn, Options{})
	b := plainSkill().pin(t, "release")
	for _, want := range []Outcome{Published, Present} {
		if r := publishOne(t, c, b); r.Outcome != want || c.Class() != "sftp" {
			t.Errorf("%s by %s, want %s", r.Outcome, c.Class(), want)
		}
	}
	if n := conn.commands.Load(); n != 1 {
		t.Errorf("%d commands", n)
	}
}

// TestProgramsRunInACleanEnvironment has programs that refuse to work in any other.
func TestProgramsRunInACleanEnvironment(t *testing.T) {
	u := newUserland(t).link("tar", "gzip", "sort")
	const strict = `[ "$LC_ALL$COPYFILE_DISABLE$TZ" = C1UTC0 ] || exit 1
	[ "${TAR_OPTIONS-}${TAR_WRITER_OPTIONS-}${GZIP-}${POSIXLY_CORRECT-}" ] && exit 1
	umask | /usr/bin/grep -q 77 || exit 1
	exec `
	for _, name := range []string{"tar", "gzip", "sort"} {
		p, err := exec.LookPath(name)
		must(t, err)
		u.wrap(name, strict+p+` "$@"`)
	}
	// What they say without failing hinders nothing.
	u.wrap("gzip", "echo a warning >&2\n"+strict+"/usr/bin/gzip \"$@\"")
	conn, home := newShellConn(t)
	conn.only = true
	for k, v := range map[string]string{"LC_ALL": "de_DE.UTF-8", "TAR_OPTIONS": "-v", "TAR_WRITER_OPTIONS": "x", "GZIP": "-v", "POSIXLY_CORRECT": "1", "TZ": "Asia/Kathmandu", "PATH": u.dir} {
		conn.env[k] = v
	}
	tour(t, conn, home)
}

// TestAProgramThatIsMissingLeavesSFTP removes one program at a time.
func TestAProgramThatIsMissingLeavesSFTP(t *testing.T) {
	for _, program := range []string{"tar", "gzip", "find", "sed", "sort", "id", "sha256sum"} {
		conn, home := newShellConn(t)
		t.Setenv("HOME", home) // where this machine's files start
		conn.only, conn.env["PATH"] = true, newUserland(t).link(program).dir
		c := openCache(t, conn, Options{})
		b := plainSkill().pin(t, "release")
		if r := publishOne(t, c, b); r.Outcome != Published || c.Class() != "sftp" {
			t.Errorf("without %s: %s by %s", program, r.Outcome, c.Class())
		}
		if got := recomputed(t, filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String())); got != b.Manifest.Digest().String() {
			t.Errorf("without %s: the copy is not whole", program)
		}
		n := conn.commands.Load()
		publishOne(t, c, b)
		if conn.commands.Load() != n {
			t.Errorf("without %s: a command was tried again", program)
		}

		conn.noFiles = true
		_, err := openCache(t, conn, Options{}).Publish(t.Context(), plainSkill().pin(t, "other"))
		if !errors.Is(err, ErrTools) || !errors.Is(err, ErrNoAccess) || !strings.Contains(err.Error(), program) {
			t.Errorf("without %s and SFTP: %v", program, err)
		}
	}
}

// randomText returns n bytes that do not compress to less than half.
func randomText(n int) string {
	var b strings.Builder
	for i := uint64(1); b.Len() < n; i++ {
		b.WriteString(bundle.Digest{byte(i), byte(i >> 8), byte(i * i >> 3), byte(i * 77 >> 5)}.String()[:8])
	}
	return b.String()[:n]
}

// TestWhereNoProgramTellsAnAgeNothingIsOld has no stat, and a date that tells the time alone.
func TestWhereNoProgramTellsAnAgeNothingIsOld(t *testing.T) {
	u := newUserland(t).link("stat", "date")
	u.wrap("date", `[ "$1" = +%s ] && exec /usr/bin/date +%s; exit 1`)
	conn, home := newShellConn(t)
	conn.only, conn.env["PATH"] = true, u.dir
	c := openCache(t, conn, Options{})
	b := plainSkill().pin(t, "release")
	publishOne(t, c, b)
	long := time.Now().Add(-1000 * time.Hour)
	must(t, os.Chtimes(filepath.Join(home, ".cache/berry/skills", b.Manifest.Digest().String()), long, long))
	_, copies, err := c.List(t.Context())
	must(t, err)
	if len(copies) != 1 || copies[0].State != Whole || !copies[0].Used.IsZero() {
		t.Errorf("list says %+v", copies)
	}
	if removed, err := c.Prune(t.Context(), PruneOptions{OlderThan: time.Hour}); err != nil || len(removed) != 0 {
		t.Errorf("prune by age: %+v, %v", removed, err)
	}
	if removed, err := c.Prune(t.Context(), PruneOptions{}); err != nil || len(removed) != 1 {
		t.Errorf("prune of all: %+v, %v", removed, err)
	}
}
