//go:build unix

package remote

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/transport"
	"github.com/punnet/punnet/transport/transporttest"
)

// benchRTT is the round trip time of the benchmarks' link: long beside what either side computes.
const benchRTT = 100 * time.Millisecond

// liveConn is a connection that exists, over a link of benchRTT, to an account that runs commands
// or not.
func liveConn(b *testing.B, account transporttest.Account) transport.Conn {
	b.Helper()
	account.Name = "user"
	s, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{account}, Faults: transporttest.Faults{Delay: benchRTT / 2}})
	must(b, err)
	client, err := s.Client(b.Context(), "user")
	must(b, err)
	conn := transport.NewConn(client, transport.Options{})
	b.Cleanup(func() {
		conn.Close()
		client.Close()
		s.Close()
	})
	return conn
}

// medianSkill has the size of the median public skill: 8 KB packed. n makes it another bundle.
func medianSkill(b *testing.B, n int) *bundle.Bundle {
	noise := make([]byte, 3500)
	_, _ = rand.Read(noise) // it does not fail
	return testSkill{
		"SKILL.md":        fmt.Sprintf("---\nname: median\ndescription: d\n---\n\n%d %s\n", n, strings.Repeat("words to read ", 400)),
		"references/a.md": hex.EncodeToString(noise),
		"scripts/run.sh":  "#!/bin/sh\n" + hex.EncodeToString(noise[:1000]),
	}.pin(b, "median")
}

// reportTrips reports what an operation cost in round trips of the link.
func reportTrips(b *testing.B) {
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/benchRTT.Seconds(), "roundtrips/op")
}

// The median skill, cold, over a connection that exists.
func BenchmarkPublishMedian(b *testing.B) {
	for way, account := range map[string]transporttest.Account{"exec": {}, "sftp": {NoExec: true}} {
		b.Run(way, func(b *testing.B) {
			c, err := Open(liveConn(b, account), Options{Dir: "berry/skills", NoExec: account.NoExec})
			must(b, err)
			n := 0
			var sent int64
			for b.Loop() {
				b.StopTimer()
				n++
				skill := medianSkill(b, n)
				b.StartTimer()
				r, err := c.Publish(b.Context(), skill)
				must(b, err)
				sent = r[0].Sent
			}
			reportTrips(b)
			b.ReportMetric(float64(sent), "bytes-sent")
		})
	}
}

// Whether a hundred bundles are there and whole, over a connection that exists.
func BenchmarkCheckHundred(b *testing.B) {
	c, err := Open(liveConn(b, transporttest.Account{}), Options{Dir: "berry/skills"})
	must(b, err)
	var bundles []*bundle.Bundle
	var digests []bundle.Digest
	for n := range 100 {
		s := medianSkill(b, n)
		bundles, digests = append(bundles, s), append(digests, s.Manifest.Digest())
	}
	_, err = c.Publish(b.Context(), bundles...)
	must(b, err)
	for b.Loop() {
		copies, err := c.Check(b.Context(), digests...)
		must(b, err)
		for _, c := range copies {
			if c.State != Whole {
				b.Fatalf("%s is %s", c.Digest.Short(), c.State)
			}
		}
	}
	reportTrips(b)
}

// The largest bundle, streamed: what is allocated does not grow with it.
func BenchmarkPublishLargest(b *testing.B) {
	files := testSkill{"SKILL.md": "---\nname: large\ndescription: d\n---\n"}
	noise := make([]byte, 1<<20)
	for i := range 31 {
		_, _ = rand.Read(noise) // it does not fail
		files[fmt.Sprintf("assets/%d.bin", i)] = string(noise)
	}
	large := files.pin(b, "large")
	b.SetBytes(31 << 20)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		conn, _ := newShellConn(b)
		c, err := Open(conn, Options{Dir: "berry/skills"})
		must(b, err)
		b.StartTimer()
		_, err = c.Publish(b.Context(), large)
		must(b, err)
	}
}
