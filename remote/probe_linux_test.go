package remote

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/punnet/punnet/transport"
)

// probeAll probes a target on which everything is as it should be.
func probeAll(t *testing.T, w *wayTest) {
	t.Helper()
	p, err := w.c.Probe(t.Context())
	must(t, err)
	if p.Class != "exec" || p.Exec != nil || p.Unusable != nil || p.ReadOnly != "" || len(p.Missing) > 0 {
		t.Errorf("probe says %q, commands %v, cache %v, read-only %q, missing %q", p.Class, p.Exec, p.Unusable, p.ReadOnly, p.Missing)
	}
	if p.Cache != w.root || p.Home != w.home || p.SHA256 == "" || p.Latency <= 0 || !p.Skewed || p.Skew.Abs() > time.Minute {
		t.Errorf("probe says %+v", p)
	}
}

func TestASkewedClockIsSeen(t *testing.T) {
	conn, _ := newShellConn(t)
	u := newUserland(t).link("date")
	u.wrap("date", `echo $(($(/bin/date +%s) + 3600))`)
	conn.only, conn.env["PATH"] = true, u.dir
	p, err := openCache(t, conn, Options{}).Probe(t.Context())
	must(t, err)
	if !p.Skewed || p.Skew < 59*time.Minute || p.Skew > 61*time.Minute {
		t.Errorf("an hour ahead: %v", p.Skew)
	}
}

// TestAProbeSeesWhatAPushWouldMeet has something wrong in each case, and holds the rest to being told.
func TestAProbeSeesWhatAPushWouldMeet(t *testing.T) {
	openssl, _ := exec.LookPath("openssl")
	for name, c := range map[string]struct {
		spoil func(t *testing.T, conn *shellConn, home string)
		is    func(p *Probe, home string) bool
	}{
		"unsafe": {func(t *testing.T, _ *shellConn, home string) { open(t, filepath.Join(home, ".cache"), 0o777) },
			func(p *Probe, home string) bool {
				e, ok := errors.AsType[*Error](p.Unusable)
				return ok && e.Kind == ErrUnsafe && e.Path == filepath.Join(home, ".cache") && transport.Hint(e) != "" && p.Class == "exec"
			}},
		"no tar": {func(t *testing.T, conn *shellConn, _ string) {
			conn.only, conn.env["PATH"] = true, newUserland(t).link("tar").dir
		},
			func(p *Probe, _ string) bool {
				return errors.Is(p.Exec, ErrTools) && slices.Equal(p.Missing, []string{"tar"}) && p.Class == "sftp"
			}},
		"no find": {func(t *testing.T, conn *shellConn, _ string) {
			conn.only, conn.env["PATH"] = true, newUserland(t).link("find").dir
		},
			func(p *Probe, _ string) bool {
				return errors.Is(p.Exec, ErrTools) && slices.Equal(p.Missing, []string{"find"})
			}},
		"no SHA-256": {func(t *testing.T, conn *shellConn, _ string) {
			conn.only, conn.env["PATH"] = true, newUserland(t).link("sha256sum").dir
		}, func(p *Probe, _ string) bool {
			return errors.Is(p.Exec, ErrTools) && slices.Equal(p.Missing, []string{"sha256sum"})
		}},
		"openssl alone": {func(t *testing.T, conn *shellConn, _ string) {
			u := newUserland(t).link("sha256sum")
			u.put("openssl", openssl)
			conn.only, conn.env["PATH"] = true, u.dir
		}, func(p *Probe, _ string) bool { return p.SHA256 == "openssl" && p.Exec == nil && p.Missing == nil }},
		"no home": {func(_ *testing.T, conn *shellConn, _ string) { conn.env["HOME"] = "nowhere" },
			func(p *Probe, _ string) bool {
				return p.Class == "exec" && p.Unusable != nil && transport.Hint(p.Unusable) != ""
			}},
		"a file in the way": {func(t *testing.T, _ *shellConn, home string) {
			must(t, os.MkdirAll(filepath.Join(home, ".cache/berry"), 0o700))
			must(t, os.WriteFile(filepath.Join(home, ".cache/berry/skills"), nil, 0o600))
		}, func(p *Probe, _ string) bool { return p.Class == "exec" && p.Unusable != nil }},
		"locked": {func(t *testing.T, _ *shellConn, home string) { must(t, os.Chmod(home, 0o500)) },
			func(p *Probe, home string) bool { return p.Class == "exec" && p.ReadOnly == home && p.Unusable == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			conn, home := newPlainConn(t)
			c.spoil(t, conn, home)
			give(t, home)
			before := dated(t, home)
			p, err := openCache(t, conn, Options{}).Probe(t.Context())
			must(t, err)
			if !c.is(p, home) {
				t.Errorf("got %+v", p)
			}
			if p.User == "" || !p.Skewed || p.Latency <= 0 || !conn.only && name != "no home" && p.Free <= 0 {
				t.Errorf("something else is hidden: %+v", p)
			}
			if after := dated(t, home); after != before {
				t.Errorf("the home was changed from\n%sto\n%s", before, after)
			}
		})
	}
}

func TestAReadOnlyFileSystemIsSeen(t *testing.T) {
	conn, home := newShellConn(t)
	dir := mounted(t, home, "size=1m,mode=755,ro")
	conn.env["XDG_CACHE_HOME"] = dir
	p, err := openCache(t, conn, Options{}).Probe(t.Context())
	if err != nil || p.ReadOnly != dir || p.Free <= 0 || p.Free > 1<<20 || p.Inodes <= 0 {
		t.Errorf("%v, %+v", err, p)
	}
}
