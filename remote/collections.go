package remote

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/punnet/punnet/discovery"
)

// Collections returns what the target says of its collections. By exec it is one command with one
// answer, of which each SKILL.md's frontmatter is the most; nothing on the target is changed, and the
// cache need not exist. Names and paths in the Listing are the target's: they are not paths here.
//
// A working directory that cannot be looked at is Listing.Problem, and no error.
func (c *Cache) Collections(ctx context.Context, q discovery.Query) (*discovery.Listing, error) {
	q, err := checkQuery(q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verbCollections, err)
	}
	var l *discovery.Listing
	err = c.do(ctx, verbCollections, func(w way) (err error) {
		l, err = w.collections(ctx, q)
		return err
	})
	return l, err
}

// checkQuery returns q with clean paths, or says why nothing can be asked about it.
func checkQuery(q discovery.Query) (discovery.Query, error) {
	if strings.IndexByte(q.Dir, 0) >= 0 {
		return q, fmt.Errorf("working directory %q: it holds a NUL", said(q.Dir))
	}
	if q.Dir != "" {
		q.Dir = path.Clean(q.Dir)
	}
	roots := q.Roots
	q.Roots = nil
	for _, r := range roots {
		switch {
		case r.Path == "" || strings.IndexByte(r.Path, 0) >= 0:
			return q, fmt.Errorf("root %q: not a path", said(r.Path))
		case r.Entries <= 0:
			return q, fmt.Errorf("root %q: no entries are to be looked at", said(r.Path))
		}
		if rest, ok := strings.CutPrefix(r.Path, "~/"); ok {
			r.Path = "~/" + path.Clean(rest)
		} else {
			r.Path = path.Clean(r.Path)
		}
		q.Roots = append(q.Roots, r)
	}
	return q, nil
}

// The kinds of roots, as the script knows them.
const (
	kindAbsolute = "a"
	kindHome     = "h"
	kindDir      = "d"
	kindWalk     = "w"
)

func rootKind(r discovery.Root) string {
	switch {
	case path.IsAbs(r.Path):
		return kindAbsolute
	case strings.HasPrefix(r.Path, "~/"):
		return kindHome
	case r.Walk:
		return kindWalk
	}
	return kindDir
}

// errNoLine is a question that no command can ask.
var errNoLine = errors.New("the paths to ask about are too long for one command, or those of another system")

// collectionsLine returns the command that asks q. With all, files are sent whole.
func collectionsLine(nonce string, all bool, q discovery.Query) (string, error) {
	whole := "0"
	if all {
		whole = "1"
	}
	words := []string{whole, pathWord(q.Dir)}
	windows := q.Dir != "" && q.Dir != discovery.Home && !path.IsAbs(q.Dir)
	for _, r := range q.Roots {
		kind := rootKind(r)
		p := r.Path
		if kind == kindHome {
			p = p[len("~/"):]
		}
		windows = windows || len(p) > 2 && p[1] == ':' && p[2] == '/'
		words = append(words, kind, strconv.Itoa(r.Entries), pathWord(p))
	}
	line := command(verbCollections, nonce, words...)
	if len(line) > maxLineBytes || windows {
		return "", errNoLine
	}
	return line, nil
}

// collections asks once, and once more with files sent whole where what came does not add up: a file
// was changed between the looks at it, or an awk is not as others are.
func (w *execWay) collections(ctx context.Context, q discovery.Query) (*discovery.Listing, error) {
	for _, all := range []bool{false, true} {
		r, err := w.askCollections(ctx, all, q)
		if errors.Is(err, errNoLine) {
			w.log.Debug("asking about collections by SFTP", "reason", err)
			return newSFTPWay(w.conn, w.o).collections(ctx, q)
		}
		if err != nil || !r.torn {
			return r.listing, err
		}
		w.log.Debug("what the target said of a file does not add up", "whole", all)
	}
	return nil, notUnderstood(verbCollections, "", errors.New("a SKILL.md is not of the size it is said to be"))
}

func (w *execWay) askCollections(ctx context.Context, all bool, q discovery.Query) (*collectionsReply, error) {
	nonce := newNonce()
	line, err := collectionsLine(nonce, all, q)
	if err != nil {
		return nil, err
	}
	r := newCollectionsReply(q)
	f := newFrame(nonce, discovery.MaxListing, nil)
	err = w.ask(ctx, question{verb: verbCollections, line: line, frame: f, end: func() error {
		err := r.read(f.body)
		if r.tool != "" {
			return &noExecError{tool: r.tool}
		}
		return err
	}})
	return r, err
}

// collections reads the target's files with everything in flight at once.
func (w *sftpWay) collections(ctx context.Context, q discovery.Query) (*discovery.Listing, error) {
	files, err := w.conn.Files(ctx)
	if err != nil {
		return nil, side(verbCollections, "on the way to the target", err)
	}
	l, err := discovery.Read(ctx, files, q)
	if err != nil {
		return nil, side(verbCollections, "on the target", err)
	}
	return l, nil
}
