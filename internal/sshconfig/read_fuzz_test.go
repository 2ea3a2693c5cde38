package sshconfig

import (
	"slices"
	"strings"
	"testing"
)

func FuzzReader(f *testing.F) {
	f.Add("Host dev\n  Port 5\nInclude /inc\nMatch final all\n User me\n", "HostName %h.example\n")
	f.Add("Match host \"dev\" user=x !exec \"a b\" # c\n IdentityFile \"~/a b\"\n", "Include /inc\nInclude /c\n")
	f.Add("ProxyCommand = nc %h %p # x\nUserKnownHostsFile ~/a \"b c\" %%\nControlPath ~/%C\n", "Host * !dev\n")
	f.Add("CanonicalizeHostname yes\nCanonicalDomains known.example\nMatch canonical\nConnectTimeout 1w2d3h4m5s\n", "SendEnv A -A\nSetEnv A=\"\n")
	f.Add("Ciphers +a*,-b\nIdentityAgent $A\nRevokedHostKeys ~/x\nCertificateFile ~nobody/x\n\x00\r\n\f", "")
	f.Fuzz(func(t *testing.T, config, inc string) {
		q := Query{Host: "dev", ConfigFile: "/c"}
		r := hostile(t, q, map[string]string{"/c": config, "/inc": inc})
		a, err := r.answer(t.Context())
		if r.files > maxFiles+1 || len(r.sources.list) > maxSources || len(r.warned) > maxWarnings {
			t.Fatalf("%d files, %d sources, %d warnings", r.files, len(r.sources.list), len(r.warned))
		}
		if err != nil {
			if len(err.Error()) > 16<<10 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		s, err := expandSettings(a.raw, r.q)
		if err != nil {
			return
		}
		if s.Host == "" || s.User == "" || s.Port < 1 || s.Port > 65535 || !slices.Contains([]string{"yes", "ask", "accept-new"}, s.StrictHostKey) {
			t.Fatalf("%q gives %+v", config, s)
		}
		files := slices.Concat(s.IdentityFiles, s.Certificates, s.UserKnownHosts, s.GlobalKnownHosts, []string{s.ControlPath, s.RevokedHostKeys})
		for _, name := range files {
			if strings.HasPrefix(name, "~/") {
				t.Fatalf("%q leaves %q unexpanded", config, name)
			}
		}
		for _, text := range s.Sources {
			if strings.ContainsAny(text, "\x1b\n\r") {
				t.Fatalf("a source is not fit to be shown: %q", text)
			}
		}
	})
}
