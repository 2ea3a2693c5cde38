package sftp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/internal/watchdog"
)

// Bounds of one SFTP channel.
const (
	chunkBytes    = 32 << 10  // data in one READ or WRITE; every server takes this much
	statusBytes   = 8 << 10   // a status, handle, attributes or path
	namesBytes    = 256 << 10 // one READDIR reply; OpenSSH's own limit for any packet
	queueMessages = 128       // requests waiting to be written
)

// Client carries requests and replies of one SFTP channel, for many goroutines at once: names as they
// were sent, permissions at creation, a bound on every reply, a context for each call, and several
// requests for one file in flight.
type Client struct {
	in   io.Reader
	out  io.WriteCloser
	exts map[string]bool

	watch *watchdog.Watchdog
	queue chan []byte
	gone  chan struct{} // closed when err is set
	wg    sync.WaitGroup

	mu      sync.Mutex
	nextID  uint32
	pending map[uint32]*call
	err     error
}

// call is one request that waits for its reply.
type call struct {
	max   uint32 // longest reply accepted, in bytes after the length
	reply chan *reply
}

// Start speaks the opening words over in and out and starts a Client. What the login shell
// prints before the server's version is skipped, up to MaxNoise, and returned in an error's words.
// Closing out must make in end. A server that owes a reply and moves no byte for idle is given up; a
// negative idle is no limit. Whoever starts a Client closes it.
func Start(in io.Reader, out io.WriteCloser, idle time.Duration) (*Client, error) {
	c := &Client{
		out: out, exts: make(map[string]bool), queue: make(chan []byte, queueMessages),
		gone: make(chan struct{}), pending: make(map[uint32]*call),
	}
	c.watch = watchdog.New(idle, func() {
		c.fail(fault.Both(fmt.Errorf("the SFTP server owes a reply and sent nothing for %v", idle), ErrTimeout))
	})
	if _, err := out.Write(hello()); err != nil && !fault.IsEnd(err) {
		return nil, fmt.Errorf("starting SFTP: %w", err)
	}
	br := bufio.NewReaderSize(in, 64<<10)
	noise, err := skipToVersion(br)
	if err != nil {
		if len(bytes.TrimSpace(noise)) > 0 {
			return nil, fmt.Errorf("%w; the account said: %s", err, display.Said(string(noise)))
		}
		return nil, err
	}
	c.in = br
	if err := c.readVersion(); err != nil {
		return nil, err
	}
	c.wg.Add(2)
	go c.writeLoop()
	go c.readLoop()
	return c, nil
}

// hello is the packet that begins SFTP, which no server sends.
func hello() []byte { return message{0, 0, 0, 0, fxInit}.u32(3).done() }

// skipToVersion leaves r before the server's version packet. It returns the beginning of what was
// skipped.
func skipToVersion(r *bufio.Reader) (noise []byte, err error) {
	kept := &proc.FirstBytes{Max: display.SaidBytes}
	for skipped := 0; skipped <= MaxNoise; skipped++ {
		head, err := r.Peek(9)
		if err != nil {
			kept.Write(head)
			if fault.IsEnd(err) {
				return kept.Bytes(), fmt.Errorf("the SFTP server ended before it began: %w", io.ErrUnexpectedEOF)
			}
			return kept.Bytes(), fmt.Errorf("waiting for the SFTP server: %w", err)
		}
		// A version packet is shorter than 64 KiB, so its length starts with two zeros; then
		// type 2 and version 3. No text looks like that.
		if head[0] == 0 && head[1] == 0 && bytes.Equal(head[4:], []byte{fxVersion, 0, 0, 0, 3}) {
			return kept.Bytes(), nil
		}
		if bytes.Equal(head, hello()) {
			return kept.Bytes(), errors.New("what was said to the SFTP server comes back, as from a command that repeats its input")
		}
		kept.Write(head[:1])
		if _, err := r.Discard(1); err != nil {
			return kept.Bytes(), err
		}
	}
	return kept.Bytes(), fmt.Errorf("%w: the account prints more than %d bytes before SFTP starts", ErrProtocol, MaxNoise)
}

// readVersion reads the packet that skipToVersion found.
func (c *Client) readVersion() error {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return err
	}
	data := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.in, data); err != nil {
		return fmt.Errorf("reading the SFTP version: %w", err)
	}
	if len(data) < 5 {
		return fmt.Errorf("%w: SFTP version packet of %d bytes", ErrProtocol, len(data))
	}
	r := reply{data: data[5:]}
	for len(r.data) > 0 && !r.bad {
		name := r.str()
		r.str()
		if !r.bad {
			c.exts[name] = true
		}
	}
	return nil
}

// writeLoop sends what is queued, several small requests at once.
func (c *Client) writeLoop() {
	defer c.wg.Done()
	var buf []byte
	for {
		select {
		case m := <-c.queue:
			buf = append(buf[:0], m...)
		case <-c.gone:
			return
		}
		for len(buf) < chunkBytes {
			select {
			case m := <-c.queue:
				buf = append(buf, m...)
				continue
			default:
			}
			break
		}
		if _, err := c.out.Write(buf); err != nil {
			c.fail(fault.Both(fmt.Errorf("writing to the SFTP server: %w", cutOff(err)), ErrLost))
			return
		}
		c.watch.Moved()
	}
}

// readLoop hands replies to the calls that wait for them.
func (c *Client) readLoop() {
	defer c.wg.Done()
	for {
		if err := c.readReply(); err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *Client) readReply() error {
	var head [9]byte // length, type, id
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return fault.Both(fmt.Errorf("the SFTP server ended: %w", cutOff(err)), ErrLost)
	}
	size, id := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[5:])
	c.watch.Moved()
	c.mu.Lock()
	waiting := c.pending[id]
	delete(c.pending, id)
	c.mu.Unlock()
	// What was asked for decides how much may come: nothing is allocated on the server's word.
	if waiting == nil || size < 5 || size > waiting.max {
		return fmt.Errorf("%w: SFTP reply of %d bytes to request %d, which did not ask for it", ErrProtocol, size, id)
	}
	data := make([]byte, size-5)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return fault.Both(fmt.Errorf("the SFTP server ended within a reply: %w", cutOff(err)), ErrLost)
	}
	c.watch.Owe(-1)
	waiting.reply <- &reply{kind: head[4], data: data}
	return nil
}

// cutOff keeps the end of the connection from being taken for the end of a file, which io.EOF means
// to whoever reads one.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// start sends a request, built by fill after its header, and returns the call to wait for. A reply
// longer than max bytes is a protocol violation.
func (c *Client) start(ctx context.Context, kind byte, max uint32, fill func(message) message) (*call, error) {
	if ctx.Err() != nil {
		return nil, proc.Ended(ctx)
	}
	w := &call{max: max, reply: make(chan *reply, 1)}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.nextID++
	id := c.nextID
	c.pending[id] = w
	c.mu.Unlock()
	c.watch.Owe(1)
	select {
	case c.queue <- fill(newMessage(kind, id)).done():
		return w, nil
	case <-c.gone:
		return nil, c.Err()
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
		c.watch.Owe(-1)
		return nil, proc.Ended(ctx)
	}
}

// wait returns the reply to w.
func (c *Client) wait(ctx context.Context, w *call) (*reply, error) {
	select {
	case r := <-w.reply:
		return r, nil
	default:
	}
	select {
	case r := <-w.reply:
		return r, nil
	case <-c.gone:
		return nil, c.Err()
	case <-ctx.Done():
		return nil, proc.Ended(ctx)
	}
}

// ask is start and wait, for a reply of at most statusBytes.
func (c *Client) ask(ctx context.Context, kind byte, fill func(message) message) (*reply, error) {
	w, err := c.start(ctx, kind, statusBytes, fill)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, w)
}

// fail ends the client for all callers. The first reason stays.
func (c *Client) fail(err error) {
	c.mu.Lock()
	first := c.err == nil
	if first {
		c.err = err
		close(c.gone)
	}
	c.mu.Unlock()
	if first {
		c.watch.Stop()
		c.out.Close()
	}
}

// Err returns why the client ended, or nil while it has not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the client and closes out. It does not wait: that is for whoever can also cut the
// connection.
func (c *Client) Close() { c.fail(ErrClosed) }

// Wait returns when the client has ended and nothing of it runs any more.
func (c *Client) Wait() { c.wg.Wait() }

// Files returns the server's files. Every call through them, and through what they opened, ends when
// ctx does.
func (c *Client) Files(ctx context.Context) *FS { return &FS{ctx, c} }

// status is a server's refusal of one request.
type status struct {
	code uint32
	text string
}

func (s *status) Error() string {
	name := map[uint32]string{
		statusEOF: "end of file", statusNoFile: "no such file", statusPermission: "permission denied",
		statusFailure: "failure", statusBadMessage: "bad message", statusUnsupported: "operation unsupported",
	}[s.code]
	if name == "" {
		name = fmt.Sprintf("status %d", s.code)
	}
	if t := display.Said(s.text); t != "" {
		return fmt.Sprintf("%s (server: %s)", name, t)
	}
	return name
}

// errBadReply is a reply that cannot be read, or is of a kind the request does not have.
var errBadReply = fmt.Errorf("%w: SFTP reply that cannot be read", ErrProtocol)

// check returns nil for a reply of the wanted kind, the server's refusal as a *status, or
// errBadReply. fxStatus is wanted by requests whose success is a status of its own.
func (r *reply) check(want byte) error {
	if r.kind == fxStatus {
		s := &status{code: r.u32()}
		if !r.bad {
			text := *r // very old servers leave the text out
			if s.text = text.str(); text.bad {
				s.text = ""
			}
		}
		switch {
		case r.bad || s.code == statusOK && want != fxStatus:
			return errBadReply
		case s.code == statusOK:
			return nil
		}
		return s
	}
	if r.kind != want {
		return errBadReply
	}
	return nil
}

// isStatus reports whether err is a server's refusal with this code.
func isStatus(err error, code uint32) bool {
	s, ok := errors.AsType[*status](err)
	return ok && s.code == code
}
