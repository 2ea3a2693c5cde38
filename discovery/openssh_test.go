package discovery

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
)

// overOpenSSH returns a connection to this machine through OpenSSH's own sftp-server, which starts in
// home. Each direction takes delay.
func overOpenSSH(t testing.TB, home string, delay time.Duration) transport.Conn {
	t.Helper()
	bin := ""
	for _, at := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"} {
		if _, err := os.Stat(at); err == nil {
			bin = at
		}
	}
	if bin == "" {
		testenv.Missing(t, "sftp-server")
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	must(t, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	out, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	in, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { out.Close(); in.Close() })
	go serveSFTP(in, config, bin, home, delay)
	conn, chans, reqs, err := ssh.NewClientConn(out, "", &ssh.ClientConfig{User: "user", HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	must(t, err)
	client := ssh.NewClient(conn, chans, reqs)
	c := transport.NewConn(client, transport.Options{})
	t.Cleanup(func() { c.Close(); client.Close() })
	return c
}

func serveSFTP(nc net.Conn, config *ssh.ServerConfig, bin, home string, delay time.Duration) {
	defer nc.Close()
	late := func(dst io.Writer, src io.Reader) {
		type parcel struct {
			b  []byte
			at time.Time
		}
		line := make(chan parcel, 1<<16)
		go func() {
			defer close(line)
			for {
				b := make([]byte, 64<<10)
				n, err := src.Read(b)
				line <- parcel{b[:n], time.Now().Add(delay)}
				if err != nil {
					return
				}
			}
		}()
		for p := range line {
			time.Sleep(time.Until(p.at))
			if _, err := dst.Write(p.b); err != nil {
				return
			}
		}
	}
	_, chans, reqs, err := ssh.NewServerConn(nc, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs)
	for offer := range chans {
		ch, reqs, err := offer.Accept()
		if err != nil {
			return
		}
		go func() {
			for r := range reqs {
				time.Sleep(2 * delay) // the opening, and this, are a round trip each
				if r.WantReply {
					r.Reply(r.Type == "subsystem", nil)
				}
			}
		}()
		cmd := exec.Command(bin)
		cmd.Dir = home
		stdin, _ := cmd.StdinPipe()
		stdout, _ := cmd.StdoutPipe()
		if cmd.Start() != nil {
			return
		}
		go func() { late(stdin, ch); stdin.Close() }()
		go func() { late(ch, stdout); ch.Close(); cmd.Wait() }()
	}
}

// TestOpenSSHGivesTheSameListing reads one home directory here and through OpenSSH.
func TestOpenSSHGivesTheSameListing(t *testing.T) {
	local, home := here(t)
	c := home + "/.agents/skills"
	oddEntries(t, home)
	for i := range 150 {
		put(t, fmt.Sprintf("%s/many-%d", c, i))
	}
	must(t, os.MkdirAll(home+"/repo/.jj", 0o755))
	must(t, os.MkdirAll(home+"/repo/a", 0o755))
	put(t, home+"/repo/.agents/skills/s")
	link(t, "../../elsewhere", home+"/repo/a/.agents/skills")
	link(t, "repo/a", home+"/cwd")
	link(t, "gone", home+"/dangling")
	link(t, "circle", home+"/circle")
	write(t, home+"/file", "")
	remote, err := overOpenSSH(t, home, 0).Files(t.Context())
	must(t, err)
	for _, dir := range []string{"", "/cwd", "/repo/a", "/gone", "/dangling", "/circle", "/file"} {
		q := user(256)
		if dir != "" {
			q.Dir = home + dir
		}
		q.Roots = append(q.Roots, project)
		for _, at := range []string{"/gone", "/dangling", "/circle", "/file", "/file/x", "/.agents"} {
			q.Roots = append(q.Roots, Root{ID: 2, Path: home + at, Entries: 5})
		}
		want, got := read(t, local, q), read(t, remote, q)
		if !reflect.DeepEqual(want, got) {
			t.Errorf("in %q here it is\n%s\nthere\n%s", dir, story(want), story(got))
		}
	}
}

// TestWhatCannotBeEnteredIsUnreadableOnEachMachine: a server lists nothing of such a directory, and says
// that all is well.
func TestWhatCannotBeEnteredIsUnreadableOnEachMachine(t *testing.T) {
	testenv.AsOther(t, func(t *testing.T) {
		local, home := here(t)
		remote, err := overOpenSSH(t, home, 0).Files(t.Context())
		must(t, err)
		put(t, home+"/repo/.agents/skills/above")
		must(t, os.MkdirAll(home+"/repo/.git", 0o755))
		put(t, home+"/repo/in/.agents/skills/s")
		for _, mode := range []os.FileMode{0, 0o222, 0o444, 0o666} {
			for shut, want := range map[string]string{
				"/repo/in":                "dir ~/repo/in repo  unreadable\n",
				"/repo/in/.agents/skills": "dir ~/repo/in repo ~/repo\n7 ~/repo/in/.agents/skills unreadable\n7 ~/repo/.agents/skills\n  \"above\"\n",
			} {
				must(t, os.Chmod(home+shut, mode))
				t.Cleanup(func() { os.Chmod(home+shut, 0o755) })
				q := Query{Dir: home + "/repo/in", Roots: []Root{project}}
				wantStory(t, read(t, local, q), want)
				wantStory(t, read(t, remote, q), want)
				must(t, os.Chmod(home+shut, 0o755))
			}
		}
	})
}

// BenchmarkListOverOpenSSH counts what the link costs over OpenSSH, the SFTP channel's request and
// greeting included, the channel's opening not.
func BenchmarkListOverOpenSSH(b *testing.B) {
	const rtt = 100 * time.Millisecond
	for _, n := range []int{16, 128, 250} {
		b.Run(fmt.Sprintf("skills=%d", n), func(b *testing.B) {
			_, home := here(b)
			putMany(b, home+"/.agents/skills", n)
			list := func(delay time.Duration) time.Duration {
				conn := overOpenSSH(b, home, delay)
				defer conn.Close()
				return timeToList(b, conn, n)
			}
			reportRoundTrips(b, rtt, list)
		})
	}
}
