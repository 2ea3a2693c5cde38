package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// A harness talks to a target over an SSH connection of its own. It lends that connection to publish
// a bundle, while its own session goes on, and keeps it.
func Example() {
	ctx := context.Background()
	server, err := transporttest.Start(transporttest.Options{}) // stands in for the target
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := server.Client(ctx, "user") // the harness's own connection
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// The conversation: a session in which a program answers.
	session, err := client.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	in, _ := session.StdinPipe()
	out, _ := session.StdoutPipe()
	if err := session.Start("cat"); err != nil {
		log.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	ask := func(question string) {
		fmt.Fprintln(in, question)
		answers.Scan()
		fmt.Println("the conversation:", answers.Text())
	}
	ask("before")

	// The bundle, from a store on this machine.
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := pinExample(ctx, dir)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	// Over the same connection.
	conn := transport.NewConn(client, transport.Options{})
	defer conn.Close() // leaves the client open
	cache, err := remote.Open(conn, remote.Options{Dir: "example/skills"})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		results, err := cache.Publish(ctx, b)
		if err != nil {
			log.Fatal(err)
		}
		place := strings.TrimPrefix(results[0].Path, server.Home("user"))
		fmt.Println(results[0].Outcome, strings.Replace(place, b.Manifest.Digest().String(), "DIGEST", 1))
		ask("still here")
	}
	// Output:
	// the conversation: before
	// published /.cache/example/skills/DIGEST/release
	// the conversation: still here
	// present /.cache/example/skills/DIGEST/release
	// the conversation: still here
}

// pinExample puts a skill into a store below dir and opens its bundle.
func pinExample(ctx context.Context, dir string) (*bundle.Bundle, error) {
	skill := filepath.Join(dir, "release")
	if err := os.Mkdir(skill, 0o755); err != nil {
		return nil, err
	}
	text := "---\nname: release\ndescription: How to cut a release.\n---\n"
	if err := os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	source, err := bundle.OpenSource(skill)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	store, err := bundle.OpenStore(filepath.Join(dir, "store"), bundle.Limits{})
	if err != nil {
		return nil, err
	}
	pinned, _, err := store.Pin(ctx, source, bundle.Rules{}, nil)
	if err != nil {
		return nil, err
	}
	return store.Open(pinned.Digest)
}
