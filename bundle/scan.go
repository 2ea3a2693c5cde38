package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/punnet/punnet/internal/display"
)

// Tree is what a scan found: a skill directory as it was at one moment. It describes content and
// holds none, save the skill file's.
type Tree struct {
	Manifest *Manifest
	// SkillFile holds the bytes of SKILL.md that the manifest's digest covers: all of them, or the
	// first MaxSkillFileBytes + 1.
	SkillFile []byte
	// Bytes is the size of the content, all files together.
	Bytes int64

	source *Source
	files  []scanned // in the manifest's order
}

// scanned is one kept node with what reading it told.
type scanned struct {
	node
	entry Entry
	facts facts
}

// Size returns the bytes of the file at an entry's path, and 0 for any other path.
func (t *Tree) Size(p string) int64 {
	i, ok := slices.BinarySearchFunc(t.files, p, func(f scanned, p string) int { return strings.Compare(f.entry.Path, p) })
	if !ok {
		return 0
	}
	return t.files[i].info.Size()
}

// Scan reads the whole skill directory and returns it as a manifest, with a report that accounts
// for every path walked. What it returns is the directory as it was at one moment: everything is
// looked at again after the last read, and a scan that met a change starts over up to three times.
//
// The error is a *RejectedError where the directory cannot become a bundle, ctx's, or one from the
// system; the report is returned with each of them.
func (s *Source) Scan(ctx context.Context, rules Rules) (*Tree, *Report, error) {
	var tree *Tree
	report := &Report{}
	err := retryChanging(ctx, func() error {
		var err error
		tree, report, err = s.scanOnce(ctx, rules)
		return err
	})
	if errors.Is(err, errChanged) {
		f := changing(".")
		report.Findings = append(report.Findings, f)
		err = &RejectedError{Name: s.Name, Findings: []Finding{f}}
	}
	if err != nil {
		return nil, report, err
	}
	return tree, report, nil
}

func (s *Source) scanOnce(ctx context.Context, rules Rules) (*Tree, *Report, error) {
	w := newWalk(s, rules)
	if err := w.run(ctx); err != nil {
		return nil, w.report, err
	}
	if bad := w.report.Rejected(); len(bad) > 0 {
		return nil, w.report, &RejectedError{Name: s.Name, Findings: bad}
	}
	kept := make([]scanned, len(w.nodes))
	unread := make([]error, len(w.nodes))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(s.readers)
	for i, n := range w.nodes {
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			var err error
			kept[i], err = s.readNode(gctx, n)
			if err != nil && !errors.Is(err, errChanged) && ofThePath(err) {
				unread[i] = err
				return nil
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, w.report, err
	}
	for i, err := range unread {
		if err != nil {
			w.report.Findings = append(w.report.Findings, unreadable(w.nodes[i].out, err))
		}
	}
	if bad := w.report.Rejected(); len(bad) > 0 {
		return nil, w.report, &RejectedError{Name: s.Name, Findings: bad}
	}
	if err := w.lookAgain(); err != nil {
		return nil, w.report, err
	}
	return w.tree(s, w.choose(kept))
}

// lookAgain finds out whether anything changed since it was first looked at.
func (w *walk) lookAgain() error {
	for _, l := range w.looks {
		info, err := w.root.Lstat(l.name)
		if err != nil || !unchanged(l.info, info) {
			return errChanged
		}
	}
	return nil
}

// readNode reads a kept file and returns its entry; a directory has nothing to read.
func (s *Source) readNode(ctx context.Context, n node) (scanned, error) {
	out := scanned{node: n, entry: Entry{Path: path.Join(s.Name, n.out), Kind: Dir}}
	if n.isDir() {
		return out, nil
	}
	r := reading{sum: sha256.New(), facts: facts{text: true}, keep: 0}
	if n.out == SkillFile {
		r.keep = MaxSkillFileBytes + 1
	}
	if err := copyStable(ctx, &r, s.files, n.real, n.info); err != nil {
		return scanned{}, err
	}
	out.facts = r.done()
	r.sum.Sum(out.entry.SHA256[:0])
	out.entry.Kind = File
	if isExec(n.info.Mode(), out.facts) {
		out.entry.Kind = Exec
	}
	return out, nil
}

// isExec decides the one bit of a file's mode that a bundle keeps.
func isExec(mode fs.FileMode, f facts) bool {
	if hasExecBits {
		return mode&0o111 != 0
	}
	return f.script
}

// reading is a file's content on its way past: hashed, and looked at.
type reading struct {
	sum   hash.Hash
	facts facts
	keep  int // bytes of the start to keep, where that is more than the look needs
}

func (r *reading) Write(p []byte) (int, error) {
	r.sum.Write(p)
	r.facts.take(p, max(r.keep, headBytes))
	return len(p), nil
}

func (r *reading) done() facts {
	r.facts.end()
	if r.keep == 0 {
		r.facts.head = nil
	}
	return r.facts
}

// tree puts together what a scan returns, and the report's account of what was kept.
func (w *walk) tree(s *Source, kept []scanned) (*Tree, *Report, error) {
	slices.SortFunc(kept, func(a, b scanned) int { return strings.Compare(a.entry.Path, b.entry.Path) })
	t := &Tree{source: s, files: kept}
	entries := make([]Entry, len(kept))
	for i, k := range kept {
		entries[i] = k.entry
		f := Finding{Path: k.out, Outcome: Kept}
		if k.out == "" {
			f.Path = "."
		}
		if k.out != k.real && k.out != "" {
			f.Detail = "through a link, from " + display.Quote(k.real)
		}
		w.report.Findings = append(w.report.Findings, f)
		if k.isDir() {
			continue
		}
		t.Bytes += k.info.Size()
		w.report.Warnings = append(w.report.Warnings, warnings(k)...)
		if k.out == SkillFile {
			t.SkillFile = k.facts.head
		}
	}
	slices.SortFunc(w.report.Findings, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	t.Manifest = newManifest(entries)
	return t, w.report, nil
}

// choose returns the nodes that the rules keep now that their content is known, and accounts for
// the rest. SKILL.md is counted before all others.
func (w *walk) choose(read []scanned) []scanned {
	slices.SortStableFunc(read, func(a, b scanned) int {
		if (a.out == SkillFile) != (b.out == SkillFile) {
			if a.out == SkillFile {
				return -1
			}
			return 1
		}
		return strings.Compare(a.out, b.out)
	})
	var kept []scanned
	var files int
	var bytes int64
	for _, r := range read {
		switch size := r.info.Size(); {
		case r.isDir():
		case w.rules.TextOnly && !r.facts.text && r.out != SkillFile:
			w.leaveOut(r.out, NotText, "it is not UTF-8 text")
			continue
		case w.rules.LeaveOutExcess && r.out != SkillFile && files+1 > w.rules.Files:
			w.leaveOut(r.out, TooManyFiles, "it is past the first %d files", w.rules.Files)
			continue
		case w.rules.LeaveOutExcess && r.out != SkillFile && bytes+size > w.rules.Bytes:
			w.leaveOut(r.out, TooManyBytes, "it does not fit into %s with the files before it", formatBytes(w.rules.Bytes))
			continue
		default:
			files++
			bytes += size
		}
		kept = append(kept, r)
	}
	return kept
}
