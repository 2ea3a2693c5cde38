package transport

import (
	"strings"
	"testing"
)

func TestTargetsTakeTheFormsOfSSH(t *testing.T) {
	for in, want := range map[string]Target{
		"local:":                 {},
		"devbox":                 {Host: "devbox"},
		"me@devbox":              {User: "me", Host: "devbox"},
		"me@corp.example@jump":   {User: "me@corp.example", Host: "jump"},
		`CORP\me@win`:            {User: `CORP\me`, Host: "win"},
		"::1":                    {Host: "::1"},
		"[2001:db8::1]":          {Host: "2001:db8::1"},
		"me@[fe80::1%eth0]":      {User: "me", Host: "fe80::1%eth0"},
		"ssh://devbox":           {Host: "devbox"},
		"ssh://devbox/":          {Host: "devbox"},
		"SSH://me@devbox:2222":   {User: "me", Host: "devbox", Port: 2222},
		"ssh://me@[::1]:22":      {User: "me", Host: "::1", Port: 22},
		"ssh://me%40corp@devbox": {User: "me@corp", Host: "devbox"},
		"dev-box_1.example.org":  {Host: "dev-box_1.example.org"},
		"büro":                   {Host: "büro"},
	} {
		got, err := ParseTarget(in)
		if err != nil || got != want {
			t.Errorf("ParseTarget(%q) = %+v, %v; want %+v", in, got, err, want)
		}
	}
}

func TestTargetsThatCouldDoHarmAreRefused(t *testing.T) {
	for in, word := range map[string]string{
		"":                            "empty",
		"-oProxyCommand=touch pwned":  "white space",
		"-oProxyCommand=x":            "option",
		"me@-oProxyCommand=x":         "option",
		"-l@host":                     "option",
		"ssh://-oProxyCommand=x":      "option",
		"ssh://-x@host":               "option",
		"ssh://%2DoProxyCommand@host": "option",
		"two words":                   "white space",
		"host\n":                      "white space",
		"host\x00":                    "cannot be seen",
		"ho\u202est":                  "cannot be seen",
		"ssh://me%00@host":            "cannot be seen",
		"ssh://me:secret@host":        "password",
		"ssh://host/path":             "path",
		"host/path":                   "slash",
		"/etc/passwd":                 "slash",
		"host:22":                     "ssh://host:port",
		"host:path":                   "ssh://host:port",
		"@host":                       "no user",
		"ssh://":                      "no host",
		"me@":                         "no host",
		"ssh://host:0":                "port",
		"ssh://host:65536":            "port",
		"ssh://host:+22":              "port",
		"ssh://host:":                 "port",
		"[host]":                      "IPv6",
		"[127.0.0.1]":                 "IPv6",
		"[::1":                        "IPv6",
		"$(reboot)":                   "refuses",
		"`reboot`@host":               "refuses",
		"a;b@host":                    "refuses",
		strings.Repeat("a", 256):      "longer",
	} {
		got, err := ParseTarget(in)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("ParseTarget(%q) = %+v, %v; want an error with %q", in, got, err, word)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x00\n\x1b") {
			t.Errorf("ParseTarget(%q): raw control characters in %q", in, err)
		}
	}
}

func TestPasswordsInTargetsAreNotRepeated(t *testing.T) {
	if _, err := ParseTarget("ssh://me:secret@host"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"local:", "a@b", "ssh://a@b:1", "[::1]", "-x", "ssh://a%40b@[::1]:22/", "a@b@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil {
			if got != (Target{}) {
				t.Fatalf("%q: a target beside the error %v", s, err)
			}
			return
		}
		if strings.HasPrefix(got.Host, "-") || strings.HasPrefix(got.User, "-") {
			t.Fatalf("%q: %+v could be an option", s, got)
		}
		if strings.ContainsAny(got.Host+got.User, " \t\n\r\x00'\"`$;&|<>()") {
			t.Fatalf("%q: %+v holds what a shell reads", s, got)
		}
		again, err := ParseTarget(got.String())
		if err != nil || again != got {
			t.Fatalf("%q: %+v, written %q, reads back as %+v, %v", s, got, got.String(), again, err)
		}
	})
}
