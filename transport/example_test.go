package transport_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// A program that has an SSH connection already lends it: a conversation in a session of its own and
// whatever goes over the Conn share it, and it is still the program's when the Conn is closed.
func ExampleNewConn() {
	ctx := context.Background()
	server, err := transporttest.Start(transporttest.Options{}) // stands in for the machine
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := server.Client(ctx, "user") // the program's own connection
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	conn := transport.NewConn(client, transport.Options{})
	if err := conn.Exec(ctx, transport.Cmd{Line: "echo over the Conn", Stdout: os.Stdout}); err != nil {
		log.Fatal(err)
	}
	conn.Close()

	session, err := client.NewSession()
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	out, err := session.Output("echo and over a session of the program")
	fmt.Printf("%s%v\n", out, err)
	// Output:
	// over the Conn
	// and over a session of the program
	// <nil>
}

// A program that connects when there is need for it, and again when the connection was lost, hands
// over the function that does so.
func ExampleLazy() {
	ctx := context.Background()
	server, err := transporttest.Start(transporttest.Options{}) // stands in for the machine
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	var client *ssh.Client // the program's, whoever uses it
	dial := func(ctx context.Context) (*ssh.Client, error) {
		fmt.Println("connecting")
		var err error
		client, err = server.Client(ctx, "user")
		return client, err
	}
	conn := transport.Lazy(transport.Target{Host: "box"}, dial, transport.Options{})
	defer conn.Close()
	for _, word := range []string{"one", "two"} {
		if err := conn.Exec(ctx, transport.Cmd{Line: "echo " + word, Stdout: os.Stdout}); err != nil {
			log.Fatal(err)
		}
	}
	client.Close() // the link breaks
	if err := conn.Exec(ctx, transport.Cmd{Line: "echo three", Stdout: os.Stdout}); err != nil {
		log.Fatal(err)
	}
	client.Close()
	// Output:
	// connecting
	// one
	// two
	// connecting
	// three
}
