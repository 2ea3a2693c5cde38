package transporttest

import (
	"io"
	"net"
	"sync"
	"time"
)

// link is a connection with the faults of a line: it can be slow, end, or fall silent.
type link struct {
	net.Conn
	closing <-chan struct{}
	over    chan struct{}
	once    sync.Once

	out, in *line // nil without a delay

	mu             sync.Mutex
	sent, received int64
	cutSent        int64
	cutReceived    int64
	stallSent      int64
	stallReceived  int64
}

func newLink(nc net.Conn, f Faults, closing <-chan struct{}) *link {
	l := &link{
		Conn: nc, closing: closing, over: make(chan struct{}),
		cutSent: f.CutSent, cutReceived: f.CutReceived, stallSent: f.StallSent, stallReceived: f.StallReceived,
	}
	if f.Delay > 0 {
		l.out, l.in = newLine(f.Delay, l.over), newLine(f.Delay, l.over)
		go l.out.pump(func(b []byte) error { _, err := nc.Write(b); return err })
		go func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := nc.Read(buf)
				l.in.push(buf[:n], err)
				if err != nil {
					return
				}
			}
		}()
	}
	return l
}

// passed reports whether a limit is set and n is beyond it.
func passed(n, limit int64) bool { return limit < 0 || limit > 0 && n > limit }

func (l *link) Read(b []byte) (int, error) {
	var n int
	var err error
	if l.in != nil {
		n, err = l.in.pop(b)
	} else {
		n, err = l.Conn.Read(b)
	}
	l.mu.Lock()
	l.received += int64(n)
	cut, stall := passed(l.received, l.cutReceived), passed(l.received, l.stallReceived)
	l.mu.Unlock()
	switch {
	case cut:
		l.Close()
		return 0, io.EOF
	case stall:
		l.hang()
		return 0, io.EOF
	}
	return n, err
}

func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.sent += int64(len(b))
	cut, stall := passed(l.sent, l.cutSent), passed(l.sent, l.stallSent)
	l.mu.Unlock()
	switch {
	case cut:
		l.Close()
		return 0, io.ErrClosedPipe
	case stall:
		l.hang()
		return 0, io.ErrClosedPipe
	case l.out != nil:
		l.out.push(b, nil)
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// hang waits for the end of the connection or of the server.
func (l *link) hang() {
	select {
	case <-l.closing:
	case <-l.over:
	}
}

func (l *link) Close() error {
	l.once.Do(func() { close(l.over) })
	return l.Conn.Close()
}

// line delivers what is pushed into it after a delay, in order.
type line struct {
	delay time.Duration
	over  <-chan struct{}
	queue chan parcel
	rest  []byte // of the parcel that pop is handing out
	err   error
}

type parcel struct {
	due time.Time
	b   []byte
	err error
}

// A line holds this many parcels, each of one read or write, before a push waits.
const lineParcels = 1024

func newLine(delay time.Duration, over <-chan struct{}) *line {
	return &line{delay: delay, over: over, queue: make(chan parcel, lineParcels)}
}

func (l *line) push(b []byte, err error) {
	p := parcel{time.Now().Add(l.delay), append([]byte(nil), b...), err}
	select {
	case l.queue <- p:
	case <-l.over:
	}
}

// next returns the next parcel when it is due.
func (l *line) next() (parcel, bool) {
	select {
	case p := <-l.queue:
		due := time.NewTimer(time.Until(p.due))
		defer due.Stop()
		select {
		case <-due.C:
			return p, true
		case <-l.over:
		}
	case <-l.over:
	}
	return parcel{}, false
}

func (l *line) pop(b []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		p, ok := l.next()
		if !ok {
			return 0, io.EOF
		}
		l.rest, l.err = p.b, p.err
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *line) pump(write func([]byte) error) {
	for {
		p, ok := l.next()
		if !ok || write(p.b) != nil {
			return
		}
	}
}
