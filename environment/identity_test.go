package environment

import (
	"context"
	"testing"

	"github.com/punnet/punnet/session"
	"github.com/punnet/punnet/transport"
)

func TestAMachineThatDoesNotSayIsKnownByItsHostKey(t *testing.T) {
	l := newLab(t, "berry")
	login := func(target string) (string, string) {
		conn, err := l.o.Dial(context.Background(), transport.Target{Host: target})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return transport.Login(conn)
	}
	key, user := login("dev")
	if key == "" || user != "dev" {
		t.Fatalf("key %q of %q", key, user)
	}
	opsKey, ops := login("ops")
	if opsKey != key || ops != "ops" {
		t.Errorf("the same machine has key %q, then %q", key, opsKey)
	}
	a, alias := session.Target{Host: "a"}, session.Target{Host: "b"}
	id := identity(account{}, key, user, a)
	if again := identity(account{}, key, user, alias); again != id {
		t.Errorf("by another alias %s, not %s", again, id)
	}
	for what, other := range map[string]string{
		"another account":         identity(account{}, opsKey, ops, a),
		"the alias's new machine": identity(account{}, "SHA256:other", user, a),
		"nobody saw the key":      identity(account{}, "", "", a),
	} {
		if other == id {
			t.Errorf("%s is the same environment", what)
		}
	}
	public := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDh/5ZKVqJEXFmkYvDzwNvyE2BaHtkJ9i7IvzWXc7yTT root@3d1219c7-c4c5-404a-aa1f-6d2a48adfda4"
	said := account{machine: public, user: "0", home: "/root"}
	renamed := account{machine: public[:len(public)-1] + "5", user: "0", home: "/root"}
	if id := said.id(); id == "" || id != renamed.id() || id == (account{machine: "3d1219c7c4c5404aaa1f6d2a48adfda4", user: "0", home: "/root"}).id() {
		t.Errorf("a machine that says its host key is %q", id)
	}
	if k, u := transport.Login(transport.Local()); k != "" || u != "" {
		t.Errorf("this machine: %q, %q", k, u)
	}
}
