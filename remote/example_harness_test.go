package remote_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// A harness shows a conversation on another machine the skills of both, and publishes those of this
// machine that it uses: Punnet has the conventions from a profile, and the connection when it is needed.
func Example_harness() {
	ctx := context.Background()
	server, home, done := machines()
	defer done()
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] } // a program has os.Getenv

	p, err := profile.Load("berry")
	check(err)
	dial := func(ctx context.Context) (*ssh.Client, error) { return server.Client(ctx, "user") }
	conn := transport.Lazy(transport.Target{Host: "devbox"}, dial, transport.Options{})
	defer conn.Close()
	cache, err := remote.Open(conn, remote.Options{Dir: p.Cache})
	check(err)

	// The catalog: what is here, and what is there.
	query, err := p.HostQuery(getenv)
	check(err)
	files, err := transport.Local().Files(ctx)
	check(err)
	here, err := discovery.Read(ctx, files, query)
	check(err)
	there, err := cache.Collections(ctx, p.EnvironmentQuery(discovery.Home))
	check(err)
	catalog := discovery.Build(p.Policy(false), here, there)
	for _, s := range catalog.Skills {
		fmt.Println(s.Name, s.Scope, s.State)
	}

	// A skill that the conversation loads, put where it can run.
	skill := catalog.Visible("release")
	source, err := bundle.OpenSource(filepath.FromSlash(skill.Path))
	check(err)
	defer source.Close()
	place, err := profile.Locate(p.Store, getenv)
	check(err)
	store, err := bundle.OpenStore(place, p.Rules.Limits)
	check(err)
	pinned, _, err := store.Pin(ctx, source, p.Rules, nil)
	check(err)
	b, err := store.Open(pinned.Digest)
	check(err)
	defer b.Close()
	results, err := cache.Publish(ctx, b)
	check(err)
	at := strings.TrimPrefix(results[0].Path, server.Home("user"))
	fmt.Println(results[0].Outcome, strings.Replace(at, pinned.Digest.String(), "DIGEST", 1))
	// Output:
	// release host visible
	// release user shadowed
	// review user visible
	// published /.cache/berry/skills/DIGEST/release
}

// machines makes a target with two skills, and a home directory on this machine with one.
func machines() (server *transporttest.Server, home string, done func()) {
	server, err := transporttest.Start(transporttest.Options{})
	check(err)
	home, err = os.MkdirTemp("", "example")
	check(err)
	for _, dir := range []string{
		filepath.Join(home, ".config/berry/skills/release"),
		filepath.Join(server.Home("user"), ".agents/skills/release"),
		filepath.Join(server.Home("user"), ".agents/skills/review"),
	} {
		check(os.MkdirAll(dir, 0o755))
		text := fmt.Sprintf("---\nname: %s\ndescription: An example.\n---\n", filepath.Base(dir))
		check(os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o644))
	}
	return server, home, func() {
		server.Close()
		os.RemoveAll(home)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
