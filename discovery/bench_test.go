package discovery

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// medianBytes is the size of the median SKILL.md that is published.
const medianBytes = 4500

func putMany(t testing.TB, dir string, n int) []string {
	t.Helper()
	var files []string
	for i := range n {
		name := fmt.Sprintf("skill-%04d", i)
		file := dir + "/" + name + "/SKILL.md"
		text := front(name, strings.Repeat("What it does and when to use it. ", 8)) + "\n"
		write(t, file, text+strings.Repeat("Read this line.\n", (medianBytes-len(text))/16))
		files = append(files, file)
	}
	return files
}

var userPolicy = Policy{Roots: []RootPolicy{{Scope: "user", Entries: 512}}, Skills: 512}

// BenchmarkListHere compares the listing of 400 skills here with reading their files one after the
// other, by this process and by cat.
func BenchmarkListHere(b *testing.B) {
	fs, home := here(b)
	files := putMany(b, home+"/.agents/skills", 400)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			c := Build(userPolicy, read(b, fs, user(512)))
			if len(c.Skills) != len(files) {
				b.Fatalf("%d skills, %v", len(c.Skills), c.Diagnostics)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			read(b, fs, user(512))
		}
	})
	b.Run("readfiles", func(b *testing.B) {
		for b.Loop() {
			for _, name := range files {
				if _, err := os.ReadFile(name); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("cat", func(b *testing.B) {
		cat, err := exec.LookPath("cat")
		if err != nil {
			testenv.Missing(b, "cat")
		}
		for b.Loop() {
			if _, err := exec.Command(cat, files...).Output(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkListOverSFTP counts what the link costs, the SFTP channel included: what one with a delay
// takes more than one without.
func BenchmarkListOverSFTP(b *testing.B) {
	const rtt = 100 * time.Millisecond
	for _, n := range []int{16, 128} {
		b.Run(fmt.Sprintf("skills=%d", n), func(b *testing.B) {
			list := func(delay time.Duration) time.Duration {
				s, err := transporttest.Start(transporttest.Options{Faults: transporttest.Faults{Delay: delay}})
				must(b, err)
				defer s.Close()
				putMany(b, filepath.ToSlash(s.Home("user"))+"/.agents/skills", n)
				client, err := s.Client(b.Context(), "user")
				must(b, err)
				defer client.Close()
				conn := transport.NewConn(client, transport.Options{})
				defer conn.Close()
				return timeToList(b, conn, n)
			}
			reportRoundTrips(b, rtt, list)
		})
	}
}

// timeToList is how long it takes to list n skills over a connection that is open, its SFTP channel
// included.
func timeToList(b *testing.B, conn transport.Conn, n int) time.Duration {
	start := time.Now()
	fs, err := conn.Files(b.Context())
	must(b, err)
	if got := len(read(b, fs, user(256)).Collections[0].Entries); got != n {
		b.Fatalf("%d entries", got)
	}
	return time.Since(start)
}

// reportRoundTrips reports what of the time that list takes is the link's, in round trips of it. list is
// given what the link adds to each direction.
func reportRoundTrips(b *testing.B, rtt time.Duration, list func(delay time.Duration) time.Duration) {
	var waited time.Duration
	for b.Loop() {
		waited += list(rtt/2) - list(0)
	}
	b.ReportMetric(waited.Seconds()/float64(b.N)/rtt.Seconds(), "roundtrips/op")
}

func BenchmarkBuild(b *testing.B) {
	fs, home := here(b)
	putMany(b, home+"/.agents/skills", 400)
	l := read(b, fs, user(512))
	b.ReportAllocs()
	for b.Loop() {
		Build(userPolicy, l)
	}
}
