package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
)

// TestAWarningIsNoFailure holds each finding to whether a push would fail, and to having a hint where
// there is something to mend.
func TestAWarningIsNoFailure(t *testing.T) {
	whole := func() *remote.Probe {
		return &remote.Probe{Class: "exec", SHA256: "sha256sum", Free: 1 << 40, Inodes: 1 << 20, Cache: "/c", Skewed: true, Latency: time.Millisecond,
			Extensions: []string{"posix-rename@openssh.com"}}
	}
	for name, c := range map[string]struct {
		change func(p *remote.Probe)
		check  string
		ok     bool
		hint   string // a part of it, "" for none
	}{
		"all is well":          {func(*remote.Probe) {}, "tools", true, ""},
		"openssl alone":        {func(p *remote.Probe) { p.SHA256 = "openssl" }, "tools", true, "sha256sum"},
		"no touch":             {func(p *remote.Probe) { p.Missing = []string{"touch"} }, "tools", false, "install"},
		"no tar, but SFTP":     {func(p *remote.Probe) { p.Class, p.Missing, p.Exec = "sftp", []string{"tar"}, remote.ErrTools }, "tools", true, "install"},
		"no tar, and class":    {func(p *remote.Probe) { p.Class, p.Missing, p.Exec = "sftp", []string{"tar"}, remote.ErrTools }, "class", true, "install tar"},
		"little space":         {func(p *remote.Probe) { p.Free = 5 << 20 }, "free-space", true, "prune"},
		"no space":             {func(p *remote.Probe) { p.Free = 0 }, "free-space", false, "prune"},
		"few inodes":           {func(p *remote.Probe) { p.Inodes = 5 }, "free-files", true, "prune"},
		"a clock a day ahead":  {func(p *remote.Probe) { p.Skew = 24 * time.Hour }, "clock", true, "set the clock"},
		"a clock behind":       {func(p *remote.Probe) { p.Skew = -24 * time.Hour }, "clock", true, "set the clock"},
		"a clock that will do": {func(p *remote.Probe) { p.Skew = 30 * time.Second }, "clock", true, ""},
		"read-only":            {func(p *remote.Probe) { p.ReadOnly = "/x" }, "writable", false, "XDG_CACHE_HOME"},
		"unsafe":               {func(p *remote.Probe) { p.Unusable = &remote.Error{Kind: remote.ErrUnsafe, Advice: "chmod"} }, "cache", false, "chmod"},
		"no posix-rename":      {func(p *remote.Probe) { p.Class, p.Exec, p.Extensions = "sftp", errors.New("no"), nil }, "sftp", true, "posix-rename"},
		"no way in":            {func(p *remote.Probe) { p.Class, p.Unusable = "", errors.New("neither") }, "class", false, "login shell"},
	} {
		p := whole()
		c.change(p)
		d := &diagnosis{}
		d.probed(p, false)
		found := false
		for _, k := range d.Checks {
			switch {
			case k.Name == c.check:
				found = true
				if k.OK != c.ok || (k.Hint == "") != (c.hint == "") || !strings.Contains(k.Hint, c.hint) {
					t.Errorf("%s: %+v", name, k)
				}
			case !k.OK:
				t.Errorf("%s: besides %s, %+v failed", name, c.check, k)
			}
		}
		if !found {
			t.Errorf("%s: nothing of %s in %+v", name, c.check, d.Checks)
		}
	}
}

func TestWhatWasNotAskedIsNotListed(t *testing.T) {
	d := &diagnosis{}
	d.probed(&remote.Probe{Class: "sftp", Exec: errors.New("no"), Free: -1, Inodes: -1, Cache: "/c"}, false)
	for _, c := range d.Checks {
		if !strings.Contains("class sftp cache", c.Name) {
			t.Errorf("%+v", c)
		}
	}
}

func TestTheStepsOfReachingBecomeChecks(t *testing.T) {
	target, hop := transport.Target{Host: "far"}, transport.Target{Host: "near"}
	steps := func() *stepList {
		l := &stepList{target: target}
		for _, s := range []transport.Step{
			{Target: target, Name: transport.StepConfiguration, Value: "host far"},
			{Target: hop, Name: transport.StepAddress, Value: "10.0.0.1:22", Took: 1500 * time.Microsecond},
			{Target: target, Name: transport.StepServer, Err: errors.New("dropped")},
			{Target: target, Name: transport.StepServer, Value: "SSH-2.0-x"}, // it was tried again
			{Target: target, Name: transport.StepSocket, Err: errors.New("stale\x1b[2J")},
		} {
			l.add(s)
		}
		return l
	}
	got := steps().checks(nil)
	want := []check{
		{Name: "configuration", OK: true, Value: "host far"},
		{Name: "address", Target: "near", OK: true, Value: "10.0.0.1:22 (1.5ms)"},
		{Name: "server", OK: true, Value: "SSH-2.0-x"},
		{Name: "control-socket", OK: true, Value: `stale\x1b[2J`},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if want[i].Name == "control-socket" {
			if strings.ContainsRune(got[i].Value, 0x1b) || !got[i].OK {
				t.Errorf("got %+v", got[i])
			}
		} else if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	// Where the target was not reached, what failed has failed.
	failed := steps().checks(errors.New("stale"))
	if last := failed[len(failed)-1]; last.OK || last.Name != "control-socket" {
		t.Errorf("got %+v", last)
	}
	// A failure that no step told is told all the same, under the step that it belongs to.
	for _, c := range []struct {
		err  error
		name string
	}{
		{transport.ErrAuth, "login"}, {transport.ErrHostKey, "host-key"}, {transport.ErrUnreachable, "address"},
		{transport.ErrConfig, "configuration"}, {errors.New("x"), "connection"},
	} {
		l := &stepList{target: target}
		if got := l.checks(c.err); len(got) != 1 || got[0].OK || got[0].Name != c.name {
			t.Errorf("%v: %+v", c.err, got)
		}
	}
}
