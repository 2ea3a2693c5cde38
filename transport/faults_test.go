package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/punnet/punnet/transport/transporttest"
)

// meter is a TCP relay for one connection that, after so many bytes in one direction, to the byte,
// ends the connection or passes nothing more of either direction.
type meter struct {
	l      net.Listener
	in     [2]atomic.Int64 // bytes passed: to the server, to the client
	limit  [2]atomic.Int64 // 0 is none
	silent bool
	over   chan struct{} // closed when the connection is to fall silent or to end
	once   sync.Once
	end    chan struct{} // closed with the test
}

const (
	toServer = 0
	toClient = 1
)

func newMeter(t *testing.T, to string, silent bool) *meter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{l: l, silent: silent, over: make(chan struct{}), end: make(chan struct{})}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); close(m.end); wg.Wait() })
	wg.Go(func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		wg.Go(func() { m.pass(toServer, server, client) })
		wg.Go(func() { m.pass(toClient, client, server) })
		select {
		case <-m.over:
			if !m.silent {
				return
			}
		case <-m.end:
		}
		<-m.end
	})
	return m
}

// pass copies until its direction's limit.
func (m *meter) pass(way int, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-m.over:
			return
		default:
		}
		if limit := m.limit[way].Load(); limit > 0 && m.in[way].Load()+int64(n) >= limit {
			n, err = int(max(0, limit-m.in[way].Load())), io.EOF
		}
		m.in[way].Add(int64(n))
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			m.once.Do(func() { close(m.over) })
			return
		}
	}
}

func (m *meter) addr() string { return m.l.Addr().String() }

// exchanges counts them, for a file of its own each.
var exchanges atomic.Int64

// exchange dials, runs a command with input and output, and writes and reads a file.
func exchange(t *testing.T, dial func() (Conn, error), home string) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx := t.Context()
	var out bytes.Buffer
	err = c.Exec(ctx, Cmd{Line: "cat; seq 1 300", Stdin: bytes.NewReader(make([]byte, 3000)), Stdout: &out})
	if err != nil {
		return err
	}
	if out.Len() != 3000+9*2+90*3+201*4 {
		return fmt.Errorf("the command wrote %d bytes", out.Len())
	}
	fsys, err := c.Files(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s/%d", home, exchanges.Add(1))
	w, err := fsys.Create(name, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(make([]byte, 5000))
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if got, err := fsys.ReadFile(name, 10000); err != nil || len(got) != 5000 {
		return errors.Join(err, fmt.Errorf("read %d bytes", len(got)))
	}
	_, err = fsys.ReadDir(home, 1000)
	return err
}

// offsets are so many places in n bytes, the first and last ones among them.
func offsets(n int64, count int) []int64 {
	var all []int64
	for i := range count {
		all = append(all, 1+int64(i)*(n-2)/int64(count-1))
	}
	return all
}

// faulty tries an exchange with a fault at each of many places in each direction. Every one must
// end, with a typed error, and soon.
func faulty(t *testing.T, count int, try func(t *testing.T, m *meter) error, s *transporttest.Server) {
	whole := newMeter(t, s.Addr(), false)
	if err := try(t, whole); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	var failed atomic.Int64
	for way, name := range []string{"to the server", "to the client"} {
		for _, at := range offsets(whole.in[way].Load(), count) {
			for _, silent := range []bool{false, true} {
				m := newMeter(t, s.Addr(), silent)
				m.limit[way].Store(at)
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					start := time.Now()
					err := try(t, m)
					took := time.Since(start)
					if err != nil {
						failed.Add(1)
					}
					if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrTimeout) {
						t.Errorf("%d bytes %s, silent %v: %v", at, name, silent, err)
					}
					if took > 20*time.Second {
						t.Errorf("%d bytes %s, silent %v: took %v", at, name, silent, took)
					}
				})
			}
		}
	}
	wg.Wait()
	if n := failed.Load(); n < int64(3*count) {
		t.Errorf("%d of %d faults were met", n, 4*count)
	}
}

func TestAFaultAnywhereEndsInATypedErrorAndLeavesNothing(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	o := needSSH(t, s)
	known := tempDir(t) + "/known"
	faulty(t, 16, func(t *testing.T, m *meter) error {
		o := short(o)
		o.Options = []string{fmt.Sprintf("Port=%d", m.l.Addr().(*net.TCPAddr).Port), "StrictHostKeyChecking=accept-new",
			"UserKnownHostsFile=" + known, "HostKeyAlias=one"}
		return exchange(t, func() (Conn, error) { return Dial(context.WithoutCancel(t.Context()), Target{Host: "user"}, o) }, s.Home("user"))
	}, s)
}

// TestAFaultOfABorrowedConnectionEndsInATypedError has the fault after the handshake, which is the
// lender's, and closes the client at the end, which frees what waits for a dead link.
func TestAFaultOfABorrowedConnectionEndsInATypedError(t *testing.T) {
	noLeaks(t)
	s := startServer(t, transporttest.Options{})
	faulty(t, 8, func(t *testing.T, m *meter) error {
		var limit [2]int64
		for way := range limit {
			limit[way] = m.limit[way].Swap(0)
		}
		client, err := s.ClientAt(context.WithoutCancel(t.Context()), m.addr(), "user")
		if err != nil {
			return err
		}
		defer client.Close()
		for way, n := range limit {
			if n > 0 {
				m.limit[way].Store(m.in[way].Load() + n*6/10) // the handshake is less than four tenths
			}
		}
		return exchange(t, func() (Conn, error) { return NewConn(client, short(Options{})), nil }, s.Home("user"))
	}, s)
}
