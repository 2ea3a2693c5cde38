package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
	"github.com/punnet/punnet/transport"
)

const (
	// nonceLen is the length of a nonce: 128 random bits in hexadecimal.
	nonceLen = 32
	// maxReplyLine bounds one line of an answer: the longest path of a Unix system, its file's
	// SHA-256, and some words.
	maxReplyLine = 4096 + 512
	// maxAfter is how much a target may print after the answer's end.
	maxAfter = 64 << 10
)

// frame finds an answer in what a command prints and hands its lines on one by one. What a login
// shell prints before and after it belongs to nobody. It is an io.Writer that refuses what is over
// its limits, which ends the command.
type frame struct {
	begin, end string
	limit      int                // bytes the answer may have
	line       func([]byte) error // takes a line without its end; nil for an answer that is not lines
	body       []byte             // the answer that is not lines
	answered   func()             // called once, when the answer is complete; may be nil

	noise proc.FirstBytes // what came before the answer, for quoting
	state frameState
	size  int    // bytes in this state
	part  []byte // the line, or before the answer the noise, that is not at its end
	err   error
}

type frameState int

const (
	beforeAnswer frameState = iota
	inAnswer
	afterAnswer
)

func newFrame(nonce string, limit int, line func([]byte) error) *frame {
	return &frame{begin: "begin:" + nonce, end: "end:" + nonce, limit: limit, line: line, noise: proc.FirstBytes{Max: display.SaidBytes}}
}

// Write takes more of what the command printed.
func (f *frame) Write(p []byte) (int, error) {
	if f.err == nil {
		f.err = f.take(p)
	}
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}

func (f *frame) take(p []byte) error {
	for len(p) > 0 {
		if f.state == inAnswer && f.line == nil {
			var err error
			if p, err = f.bytes(p); err != nil {
				return err
			}
			continue
		}
		n := bytes.IndexByte(p, '\n')
		whole := n >= 0
		if !whole {
			n = len(p) - 1
		}
		piece := p[:n+1]
		p = p[n+1:]
		if err := f.count(piece); err != nil {
			return err
		}
		if f.state == afterAnswer {
			continue
		}
		f.part = append(f.part, bytes.TrimSuffix(piece, []byte("\n"))...)
		if len(f.part) > maxReplyLine {
			if f.state == inAnswer {
				return fmt.Errorf("a line of the answer is longer than %d bytes", maxReplyLine)
			}
			// Noise need not have lines. What is kept is too long to be the beginning.
			f.part = f.part[:maxReplyLine]
		}
		if !whole {
			continue
		}
		if err := f.whole(f.part); err != nil {
			return err
		}
		f.part = f.part[:0]
	}
	return nil
}

// whole takes a line that has ended.
func (f *frame) whole(l []byte) error {
	switch {
	case f.state == beforeAnswer && string(l) == f.begin:
		f.state, f.size = inAnswer, 0
	case f.state == inAnswer && string(l) == f.end:
		f.complete()
	case f.state == inAnswer && len(l) > 0:
		return f.line(l)
	}
	return nil
}

// bytes takes more of an answer that is not lines, and returns what follows it.
func (f *frame) bytes(p []byte) (after []byte, err error) {
	end := "\n" + f.end + "\n"
	from := max(len(f.body)-len(end), 0)
	f.body = append(f.body, p...)
	if n := bytes.Index(f.body[from:], []byte(end)); n >= 0 {
		after = p[len(p)-(len(f.body)-(from+n+len(end))):]
		f.body = f.body[:from+n]
		f.complete()
	}
	if len(f.body) > f.limit+len(end) {
		return nil, fmt.Errorf("the answer is longer than %d bytes", f.limit)
	}
	return after, nil
}

func (f *frame) complete() {
	f.state, f.size = afterAnswer, 0
	if f.answered != nil {
		f.answered()
	}
}

// count holds a piece to the limit of the state it comes in.
func (f *frame) count(piece []byte) error {
	f.size += len(piece)
	switch {
	case f.state == beforeAnswer:
		_, _ = f.noise.Write(piece)
		if f.size > transport.MaxNoise+maxReplyLine {
			return fmt.Errorf("over %d bytes were printed before an answer", transport.MaxNoise)
		}
	case f.state == inAnswer && f.size > f.limit:
		return fmt.Errorf("the answer is longer than %d bytes", f.limit)
	case f.state == afterAnswer && f.size > maxAfter:
		return errAfter
	}
	return nil
}

// errAfter ends a command that goes on printing when its answer is complete.
var errAfter = errors.New("the command does not end")

// stderrWriter keeps the beginning of a command's standard error, and ends a command that floods it.
type stderrWriter struct {
	proc.FirstBytes
	size int
	err  error
}

const (
	maxStderr      = 16 << 10 // bytes kept
	maxStderrFlood = 1 << 20  // bytes accepted
)

func (w *stderrWriter) Write(p []byte) (int, error) {
	if w.size += len(p); w.size > maxStderrFlood {
		w.err = fmt.Errorf("over %d bytes were printed to standard error", maxStderrFlood)
		return 0, w.err
	}
	return w.FirstBytes.Write(p)
}

var _ io.Writer = (*stderrWriter)(nil)
