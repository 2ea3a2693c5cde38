package sshconfig

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
)

// readFiles answers q from the configuration files alone.
func readFiles(ctx context.Context, q Query) (*answer, error) {
	r, err := newReader(q)
	if err != nil {
		return nil, err
	}
	return r.answer(ctx)
}

// answer reads everything and fills in what ssh would without being told.
func (r *reader) answer(ctx context.Context) (*answer, error) {
	if err := r.commandLine(); err != nil {
		return nil, err
	}
	if err := r.pass(); err != nil {
		return nil, err
	}
	host, err := r.hostname(firstOf(first(r.raw, "hostname"), r.q.Host))
	if err != nil {
		return nil, err
	}
	host = strings.ToLower(host)
	canonical := first(r.raw, "canonicalizehostname")
	if canonical == "always" || yes(canonical) {
		if host, err = r.canonical(ctx, host, canonical == "always"); err != nil {
			return nil, err
		}
		r.again = true
	}
	r.raw["hostname"] = []string{host}
	if r.again {
		r.host, r.final = host, true
		if err := r.pass(); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, proc.Ended(ctx)
	}
	if err := r.defaults(); err != nil {
		return nil, err
	}
	return &answer{raw: r.raw, sources: r.sources.list}, nil
}

// hostname expands HostName, which knows %h and %% alone.
func (r *reader) hostname(s string) (string, error) {
	x := &expander{tokens: map[byte]string{'%': "%", 'h': r.q.Host}}
	if s == r.q.Host {
		return s, nil // not a configured name: an address with a zone holds a %
	}
	s, err := x.expand(s, false)
	if err != nil {
		return "", fmt.Errorf("HostName: %w", err)
	}
	return s, nil
}

// canonical looks for host in CanonicalDomains, in the DNS. Names behind a proxy are looked for only
// if always is set.
func (r *reader) canonical(ctx context.Context, host string, always bool) (string, error) {
	proxied := none(first(r.raw, "proxycommand")) != "" || none(first(r.raw, "proxyjump")) != ""
	if net.ParseIP(host) != nil || proxied && !always {
		return host, nil
	}
	if name, ok := strings.CutSuffix(host, "."); ok { // said to be whole
		if r.lookup(ctx, host) {
			return name, nil
		}
		return host, nil
	}
	if strings.Count(host, ".") > number(r.raw, "canonicalizemaxdots", 1) {
		return host, nil
	}
	for _, domain := range r.raw["canonicaldomains"] {
		if none(domain) == "" {
			continue
		}
		if name := host + "." + domain; r.lookup(ctx, name) {
			return strings.ToLower(name), nil
		}
	}
	if no(first(r.raw, "canonicalizefallbacklocal")) {
		return "", fmt.Errorf("%q is in none of CanonicalDomains, and CanonicalizeFallbackLocal is no", display.Said(host))
	}
	return host, nil
}

// defaults fills in what `ssh -G` would print though nothing says it, and expands what it prints
// expanded.
func (r *reader) defaults() error {
	for key, value := range map[string]string{"user": r.me, "port": "22", "addressfamily": "any", "requiredrsasize": "1024"} {
		if len(r.raw[key]) == 0 {
			r.raw[key] = []string{value}
		}
	}
	if len(r.raw["identityfile"]) == 0 {
		for _, name := range defaultIdentities() {
			r.raw["identityfile"] = append(r.raw["identityfile"], "~/.ssh/"+name)
		}
	}
	if len(r.raw["userknownhostsfile"]) == 0 {
		r.raw["userknownhostsfile"] = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
	}
	if len(r.raw["globalknownhostsfile"]) == 0 && runtime.GOOS != "windows" {
		r.raw["globalknownhostsfile"] = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
	}
	return r.expandPrinted()
}

// expandPrinted expands ControlPath and UserKnownHostsFile.
func (r *reader) expandPrinted() error {
	s := &Settings{
		Alias: r.q.Host, Host: first(r.raw, "hostname"), User: first(r.raw, "user"), Port: number(r.raw, "port", 0),
		HostKeyAlias: none(first(r.raw, "hostkeyalias")), ProxyJump: list(first(r.raw, "proxyjump")),
	}
	x, err := newExpander(s, r.q)
	if err != nil {
		return err
	}
	if path := first(r.raw, "controlpath"); none(path) != "" {
		if path, err = x.path(path); err != nil {
			return fmt.Errorf("ControlPath: %w", err)
		}
		r.raw["controlpath"] = []string{path}
	}
	if r.raw["userknownhostsfile"], err = x.paths(r.raw["userknownhostsfile"]); err != nil {
		return fmt.Errorf("UserKnownHostsFile: %w", err)
	}
	return nil
}
