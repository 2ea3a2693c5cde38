package environment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/environment"
	"github.com/punnet/punnet/profile"
	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// A harness's loop: each request to the model has the catalog and what is loaded, and what the model
// calls is answered. The conversation runs on a machine that the harness reaches by an SSH client of its
// own; here that is a server on loopback.
func Example() {
	ctx := context.Background()
	host, server, err := exampleMachines()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(host)
	defer server.Close()

	p, err := profile.Load("berry")
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := bundle.OpenStore(filepath.Join(host, "bundles"), p.Rules.Limits)
	if err != nil {
		fmt.Println(err)
		return
	}
	conversations, err := session.NewFiles(filepath.Join(host, "conversations"))
	if err != nil {
		fmt.Println(err)
		return
	}
	o := environment.Options{
		Profile: p,
		Getenv:  func(name string) string { return map[string]string{"HOME": host}[name] },
		Dial: func(ctx context.Context, t transport.Target) (transport.Conn, error) {
			client, err := server.Client(ctx, t.Host) // in its place the harness's own *ssh.Client
			if err != nil {
				return nil, err
			}
			return transport.NewConn(client, transport.Options{}), nil
		},
	}
	cfg := session.Config{Conventions: environment.Conventions(p, "berry"), Store: store, Storage: conversations, Reach: o.Reach}

	c, err := session.Start(ctx, cfg, "demo", session.Target{Host: "dev"}, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	model := &exampleModel{}
	for {
		catalog, err := c.Catalog(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		loaded, err := c.Prompt(ctx, session.PromptOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		tool, arguments, done := model.request(catalog.Text + loaded.Text)
		if done {
			break
		}
		answer, err := c.Tool(ctx, tool, arguments)
		if err != nil {
			model.answers = append(model.answers, err.Error())
			continue
		}
		model.answers = append(model.answers, answer.Text)
	}
	// What the person types is answered the same way.
	answer, err := c.Command(ctx, "/unskill release")
	fmt.Println(answer.Text, err)

	// Output:
	// request 1: release is in the catalog: true, loaded: false
	// the model calls load_skill {"name":"relase"}
	// request 2: release is in the catalog: true, loaded: false
	// the model reads: no skill named relase
	// the model calls load_skill {"name":"release"}
	// request 3: release is in the catalog: true, loaded: true
	// Unloaded release (host). <nil>
}

// exampleModel asks for a skill, and mistypes it the first time.
type exampleModel struct {
	requests int
	answers  []string
}

func (m *exampleModel) request(system string) (tool string, arguments json.RawMessage, done bool) {
	m.requests++
	fmt.Printf("request %d: release is in the catalog: %v, loaded: %v\n", m.requests,
		strings.Contains(system, "- release (host): Prepare a release."), strings.Contains(system, "Review changes since the last release."))
	if m.requests == 2 {
		fmt.Println("the model reads:", m.answers[0])
	}
	if m.requests == 3 {
		return "", nil, true
	}
	arguments = json.RawMessage(`{"name":"relase"}`)
	if m.requests == 2 {
		arguments = json.RawMessage(`{"name":"release"}`)
	}
	fmt.Printf("the model calls load_skill %s\n", arguments)
	return "load_skill", arguments, false
}

// exampleMachines makes a host with one skill, and a server with the account "dev".
func exampleMachines() (host string, server *transporttest.Server, err error) {
	if host, err = os.MkdirTemp("", "example-"); err != nil {
		return "", nil, err
	}
	dir := filepath.Join(host, ".config", "berry", "skills", "release")
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: release\ndescription: Prepare a release.\n---\n\nReview changes since the last release.\n"), 0o644)
	}
	if err == nil {
		server, err = transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{{Name: "dev"}}})
	}
	if err != nil {
		os.RemoveAll(host)
	}
	return host, server, err
}
