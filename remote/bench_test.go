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

// benchRTT is the round trip time of the benchmarks' slow link.
const benchRTT = 100 * time.Millisecond

// links are the cache of one account over two connections that exist: one that takes benchRTT for a
// round trip and one that takes none. What an operation costs more over the first is what it waits
// for the link, whatever the machine computes meanwhile.
type links struct {
	slow, fast *Cache
	waited     time.Duration
}

// newLinks has prepare make what the account's home directory holds, once for each connection's
// server; nil makes nothing.
func newLinks(b *testing.B, account transporttest.Account, prepare func(home string)) *links {
	b.Helper()
	account.Name = "user"
	open := func(delay time.Duration) *Cache {
		s, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{account}, Faults: transporttest.Faults{Delay: delay}})
		must(b, err)
		client, err := s.Client(b.Context(), "user")
		must(b, err)
		conn := transport.NewConn(client, transport.Options{})
		b.Cleanup(func() {
			conn.Close()
			client.Close()
			s.Close()
		})
		if prepare != nil {
			prepare(s.Home("user"))
		}
		c, err := Open(conn, Options{Dir: "berry/skills", NoExec: account.NoExec})
		must(b, err)
		return c
	}
	return &links{slow: open(benchRTT / 2), fast: open(0)}
}

// time runs an operation over both links.
func (l *links) time(op func(c *Cache)) {
	start := time.Now()
	op(l.slow)
	slow := time.Since(start)
	start = time.Now()
	op(l.fast)
	l.waited += slow - time.Since(start)
}

// report says what an operation cost in round trips of the slow link.
func (l *links) report(b *testing.B) {
	b.ReportMetric(l.waited.Seconds()/float64(b.N)/benchRTT.Seconds(), "roundtrips/op")
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

// The median skill, cold.
func BenchmarkPublishMedian(b *testing.B) {
	for way, account := range map[string]transporttest.Account{"exec": {}, "sftp": {NoExec: true}} {
		b.Run(way, func(b *testing.B) {
			l := newLinks(b, account, nil)
			n := 0
			var sent int64
			for b.Loop() {
				n++
				skill := medianSkill(b, n)
				l.time(func(c *Cache) {
					r, err := c.Publish(b.Context(), skill)
					must(b, err)
					sent = r[0].Sent
				})
			}
			l.report(b)
			b.ReportMetric(float64(sent), "bytes-sent")
		})
	}
}

// Whether a hundred bundles are there and whole.
func BenchmarkCheckHundred(b *testing.B) {
	l := newLinks(b, transporttest.Account{}, nil)
	var bundles []*bundle.Bundle
	var digests []bundle.Digest
	for n := range 100 {
		s := medianSkill(b, n)
		bundles, digests = append(bundles, s), append(digests, s.Manifest.Digest())
	}
	l.time(func(c *Cache) {
		_, err := c.Publish(b.Context(), bundles...)
		must(b, err)
	})
	l.waited = 0
	for b.Loop() {
		l.time(func(c *Cache) {
			copies, err := c.Check(b.Context(), digests...)
			must(b, err)
			for _, c := range copies {
				if c.State != Whole {
					b.Fatalf("%s is %s", c.Digest.Short(), c.State)
				}
			}
		})
	}
	l.report(b)
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
