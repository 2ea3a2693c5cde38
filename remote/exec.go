package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

const (
	// maxReply bounds the answers about digests: each takes a line, of a digest and a name at most.
	maxReply = 64 << 10
	// maxIntact bounds what a damaged copy adds to an answer. The script cuts it off there.
	maxIntact = 200_000 + 16
	// maxListReply bounds the answer of list.
	maxListReply = transport.MaxListing
	// idle is how long a target may work on what it was sent without a word. A small machine needs
	// time to unpack and to read 32 MiB.
	idle = 2 * time.Minute
	// idleReading is the same for a command that is sent nothing and reads no bundle.
	idleReading = 30 * time.Second
	// lingerTime is how long a command may take to end when its answer is complete, and cleanTime that of
	// one which has to clean up. What a login shell has begun in the background holds the command's output
	// for as long as it likes.
	lingerTime = time.Second
	cleanTime  = 5 * time.Second
)

// execWay reaches a cache by the scripts in this package: one command answers a question about any
// bundles that fit, and one takes any bundles in.
type execWay struct {
	conn    transport.Conn
	o       Options
	log     *slog.Logger
	silence time.Duration
}

func newExecWay(conn transport.Conn, o Options) *execWay {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &execWay{conn: conn, o: o, log: log, silence: silence}
}

func (*execWay) name() string { return "exec" }

// noExecError is an account or a target on which the scripts cannot run.
type noExecError struct {
	tool  string // the program that is missing, or ""
	words string // what there was instead of an answer, as it came
	err   error  // how the command ended, or nil
}

func (e *noExecError) Error() string {
	switch words := display.Said(e.words); {
	case e.tool != "":
		return fmt.Sprintf("on the target: %v: %s", ErrTools, display.Said(e.tool))
	case words != "":
		return "on the target: instead of running a command it said: " + words
	case e.err != nil:
		return fmt.Sprintf("on the target: no command was run: %v", e.err)
	}
	return "on the target: no command was run, and nothing said"
}

func (e *noExecError) Unwrap() error { return e.err }

// Is makes a missing program an ErrTools.
func (e *noExecError) Is(target error) bool { return target == ErrTools && e.tool != "" }

// run runs one verb and returns its answer. stdin may be nil. The reply is returned with every
// error, as far as it was read.
func (w *execWay) run(ctx context.Context, r *reply, words []string, stdin io.Reader) error {
	nonce := newNonce()
	limit := maxReply
	switch r.verb {
	case verbList:
		limit = maxListReply
	case verbPublish:
		limit += len(words) * maxIntact
	}
	return w.ask(ctx, question{
		verb: r.verb, line: line(r.verb, nonce, w.o.Dir, words...), stdin: stdin,
		frame: newFrame(nonce, limit, r.take),
		end: func() error {
			err := r.end()
			if r.tool != "" {
				return &noExecError{tool: r.tool}
			}
			return err
		},
	})
}

func newNonce() string {
	var random [nonceLen / 2]byte
	_, _ = rand.Read(random[:]) // it does not fail
	return hex.EncodeToString(random[:])
}

// question is one command and where its answer goes.
type question struct {
	verb, line string
	stdin      io.Reader
	frame      *frame
	// end says of an answer that came whole what it means: nil, why the script stopped, or what is
	// wrong with it.
	end func() error
}

// ask runs a command.
func (w *execWay) ask(ctx context.Context, q question) error {
	var stderr stderrWriter
	stderr.Max = maxStderr
	f := q.frame
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	linger, patience := lingerTime, idle
	if q.verb == verbCollections || q.verb == verbProbe {
		patience = idleReading
	}
	if q.verb == verbPublish || q.verb == verbPrune {
		linger = cleanTime
	}
	f.answered = func() { time.AfterFunc(linger, cancel) }
	err := w.conn.Exec(ctx, transport.Cmd{Line: q.line, Stdin: q.stdin, Stdout: f, Stderr: &stderr, Idle: patience})
	if f.err == nil && f.state != afterAnswer {
		f.err = stderr.err
	}
	return q.judge(string(stderr.Bytes()), err)
}

// judge says what an answer and the way its command ended mean together.
func (q question) judge(stderr string, err error) error {
	f := q.frame
	words := string(f.noise.Bytes())
	if f.state != beforeAnswer {
		words = stderr
	} else if stderr != "" {
		words += "\n" + stderr
	}
	_, exited := errors.AsType[*transport.ExitError](err)
	switch {
	case f.state == afterAnswer && f.err == nil || errors.Is(f.err, errAfter):
		err := q.end()
		if no, ok := errors.AsType[*noExecError](err); ok {
			no.words = words
			return err
		}
		if err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				err = notUnderstood(q.verb, words, err)
			}
		}
		return err
	case f.err != nil:
		return notUnderstood(q.verb, words, f.err)
	case errors.Is(err, transport.ErrNoExec):
		return &noExecError{words: words, err: err}
	case err != nil && !exited:
		return side(q.verb, "on the way to the target", err)
	case f.state == beforeAnswer:
		return &noExecError{words: words, err: err}
	case err != nil:
		return notUnderstood(q.verb, words, fmt.Errorf("it is not complete: %w", err))
	}
	return notUnderstood(q.verb, words, errors.New("it is not complete"))
}

func notUnderstood(op, words string, err error) error {
	return &Error{Op: op, Kind: ErrReply, Said: words, Err: err}
}

// check asks about any number of digests, in as many commands as they need, all under way at once.
func (w *execWay) check(ctx context.Context, wanted []bundle.Digest) ([]Copy, error) {
	copies := make([]Copy, len(wanted))
	for i, d := range wanted {
		copies[i] = Copy{Digest: d, State: Absent}
	}
	words, at := distinct(wanted)
	var g errgroup.Group
	g.SetLimit(transport.MaxChannels)
	for _, batch := range batches(verbCheck, w.o.Dir, words) {
		g.Go(func() error {
			r := &reply{verb: verbCheck, asked: make(map[bundle.Digest]*asked)}
			for _, word := range batch {
				r.asked[wanted[at[word][0]]] = &asked{}
			}
			if err := w.run(ctx, r, batch, nil); err != nil || r.none {
				return err
			}
			for _, word := range batch {
				for _, i := range at[word] {
					copies[i].settle(r.root, r.asked[wanted[i]])
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return copies, nil
}

// distinct returns the digests' words, each once, and where each word is wanted.
func distinct(wanted []bundle.Digest) (words []string, at map[string][]int) {
	at = make(map[string][]int)
	for i, word := range digestWords(wanted) {
		if len(at[word]) == 0 {
			words = append(words, word)
		}
		at[word] = append(at[word], i)
	}
	return words, at
}

// settle fills in what a check's answer says.
func (c *Copy) settle(root string, a *asked) {
	c.State, c.Name = State(a.state), a.name
	c.place(root)
}

// place fills in where the copy is, if its name can be part of a path that is shown.
func (c *Copy) place(root string) {
	if bundle.CheckName(c.Name) == nil && c.State != Absent && c.State != Foreign {
		c.Path = path.Join(root, c.Digest.String(), c.Name)
	}
}

func (w *execWay) list(ctx context.Context) (string, []Copy, error) {
	r, err := w.entries(ctx, "check")
	return r.root, r.copies, err
}

// entries lists the cache, with "check" as word and every copy verified or without either.
func (w *execWay) entries(ctx context.Context, word string) (*reply, error) {
	r := &reply{verb: verbList, seen: make(map[string]bool)}
	err := w.run(ctx, r, []string{word}, nil)
	for i := range r.copies {
		r.copies[i].place(r.root)
	}
	return r, err
}

// prune looks at the ages first, so that any number of bundles can be kept, and then names what
// goes, with the age it had: a copy that was used meanwhile stays.
func (w *execWay) prune(ctx context.Context, o PruneOptions) ([]Removed, error) {
	r, err := w.entries(ctx, "")
	if err != nil {
		return nil, opError("prune", err)
	}
	var removed []Removed
	var words []string
	for _, c := range r.copies {
		if c.State == Foreign || o.Keep[c.Digest] {
			continue
		}
		used := "-"
		if o.OlderThan > 0 {
			// What tells no age is not old.
			if c.Used.IsZero() || time.Unix(r.now, 0).Sub(c.Used) < o.OlderThan {
				continue
			}
			used = fmt.Sprint(c.Used.Unix())
		}
		removed = append(removed, Removed{Copy: c})
		words = append(words, c.Digest.String()+":"+used)
	}
	if o.DryRun || len(words) == 0 {
		return removed, nil
	}
	return w.remove(ctx, removed, words)
}

// remove takes away what words name, which are those of removed.
func (w *execWay) remove(ctx context.Context, removed []Removed, words []string) ([]Removed, error) {
	var gone []Removed
	for _, batch := range batches(verbPrune, w.o.Dir, words) {
		now := removed[:len(batch)]
		removed = removed[len(batch):]
		r := &reply{verb: verbPrune, asked: make(map[bundle.Digest]*asked)}
		for _, c := range now {
			r.asked[c.Digest] = &asked{}
		}
		if err := w.run(ctx, r, batch, nil); err != nil || r.none {
			return gone, err
		}
		for _, c := range now {
			switch a := r.asked[c.Digest]; a.result {
			case "removed":
				gone = append(gone, c)
			case "kept":
				c.Err = failure(verbPrune, path.Join(r.root, c.Digest.String()), a.words)
				gone = append(gone, c)
			}
		}
	}
	return gone, nil
}

// opError makes err the error of another operation than the one that met it.
func opError(op string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Op = op
	}
	return err
}
