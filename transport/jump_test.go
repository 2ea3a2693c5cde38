package transport

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/sshconfig"
)

// TestAMachineOnTheWayIsReadAsSSHWritesIt takes the forms of ssh -G, which puts IPv4 addresses, and
// names of digits, in brackets too.
func TestAMachineOnTheWayIsReadAsSSHWritesIt(t *testing.T) {
	for s, want := range map[string]Target{
		"jump":                        {Host: "jump"},
		"me@jump:2200":                {User: "me", Host: "jump", Port: 2200},
		"[192.0.2.1]":                 {Host: "192.0.2.1"},
		"me@[192.0.2.1]:2200":         {User: "me", Host: "192.0.2.1", Port: 2200},
		"[12]":                        {Host: "12"},
		"192.0.2.1":                   {Host: "192.0.2.1"},
		"me@[2001:db8::1]:2200":       {User: "me", Host: "2001:db8::1", Port: 2200},
		"me@corp@jump":                {User: "me@corp", Host: "jump"},
		"50%25@jump":                  {User: "50%25", Host: "jump"}, // no URL, no encoding
		"ssh://50%25@jump:2200":       {User: "50%", Host: "jump", Port: 2200},
		"ssh://me@[2001:db8::1]:2200": {User: "me", Host: "2001:db8::1", Port: 2200},
		"-oProxyCommand=x@jump":       {},
		"me@-oProxyCommand=x":         {},
		"jump:0":                      {},
		"jump:+22":                    {},
		"jump:99999":                  {},
		"[jump]":                      {},
		"":                            {},
		"@":                           {},
	} {
		got, err := parseJump(s)
		if (err != nil) != (want == Target{}) || err == nil && got != want {
			t.Errorf("%q: got %+v, %v; want %+v", s, got, err, want)
		}
	}
}

// TestAMachineOnTheWayMayBeAnAddress goes through ssh -G, as a configuration does.
func TestAMachineOnTheWayMayBeAnAddress(t *testing.T) {
	noLeaks(t)
	d := startSSHD(t)
	config, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sshconfig.Resolve(t.Context(), sshconfig.Query{Host: d.alias, ConfigFile: d.config})
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(filepath.Join(d.dir, "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	write(t, filepath.Join(dir, "config"), strings.Replace(string(config), "Host "+d.alias, "Host "+d.alias+" 127.0.0.1", 1))
	write(t, filepath.Join(dir, "known"), strings.Replace(string(known), "127.0.0.1", "localhost", 1))
	o := Options{ConfigFile: filepath.Join(dir, "config"), Options: []string{
		fmt.Sprintf("ProxyJump=127.0.0.1:%d", s.Port), "HostName=localhost", "AddressFamily=inet", // ssh takes two of one name for a loop
		"UserKnownHostsFile=" + filepath.Join(dir, "known"),
	}}
	c := dial(t, d.alias, o)
	if out, _, err := run(t.Context(), c, "cat", "through"); err != nil || out != "through" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestAMachineOnTheWayThatGoesNoFurtherIsNamed has one where nobody listens behind it, and one that
// may not connect others.
func TestAMachineOnTheWayThatGoesNoFurtherIsNamed(t *testing.T) {
	for lines, want := range map[string]string{"": "as real sees it", "AllowTcpForwarding no": "AllowTcpForwarding"} {
		d := newSSHD(t, tempDir(t), lines)
		t.Cleanup(d.stop)
		o := d.options()
		o.Options = []string{"ProxyJump=" + d.alias, "HostName=localhost", fmt.Sprintf("Port=%d", freePort(t))}
		_, err := Dial(t.Context(), Target{Host: "far"}, o)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), d.alias) || !strings.Contains(Hint(err), want) {
			t.Errorf("%q: %v; hint %q", lines, err, Hint(err))
		}
	}
}
