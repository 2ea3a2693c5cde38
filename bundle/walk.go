package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// node is a directory or file that the walk keeps.
type node struct {
	out  string      // its path beneath the skill directory; "" for the directory itself
	real string      // where its content is, relative to the root, without links
	info fs.FileInfo // what was seen there
}

func (n node) isDir() bool { return n.info.IsDir() }

// walk looks at everything in a skill directory and decides, before any content is read, what is
// kept. It reads nothing but directories and links.
type walk struct {
	root   SourceFS
	linked bool
	rules  Rules
	name   string

	nodes  []node
	report *Report
	looks  []look
	walked int // entries seen, whatever became of them, save those left out by name
	files  int
	bytes  int64
	full   bool // the entry limit was passed and the walk given up
}

// look is one thing that was seen, so that it can be looked at again when all content was read.
type look struct {
	name string
	info fs.FileInfo
}

func newWalk(s *Source, rules Rules) *walk {
	rules.Limits = rules.Limits.withDefaults()
	return &walk{root: s.files, linked: s.linked, rules: rules, name: s.Name, report: &Report{}}
}

func (w *walk) saw(name string, info fs.FileInfo) { w.looks = append(w.looks, look{name, info}) }

func (w *walk) leaveOut(out string, reason Reason, format string, args ...any) {
	w.report.Findings = append(w.report.Findings, Finding{out, LeftOut, reason, fmt.Sprintf(format, args...)})
}

func (w *walk) reject(out string, reason Reason, format string, args ...any) {
	if out == "" {
		out = "."
	}
	w.report.Findings = append(w.report.Findings, Finding{out, Rejected, reason, fmt.Sprintf(format, args...)})
}

// excess leaves a path out or rejects it, as the rules say of what goes beyond a limit.
func (w *walk) excess(out string, reason Reason, format string, args ...any) {
	if w.rules.LeaveOutExcess && out != SkillFile {
		w.leaveOut(out, reason, format, args...)
	} else {
		w.reject(out, reason, format, args...)
	}
}

func unreadable(out string, err error) Finding {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return Finding{out, Rejected, Unreadable, fmt.Sprintf("it cannot be read: %v", err)}
}

func changing(out string) Finding {
	return Finding{out, Rejected, Changing, fmt.Sprintf("it changed while it was read, %d times in a row; try again when nothing writes there", changeRetries+1)}
}

// run walks the whole directory. The error is ctx's, or errChanged.
func (w *walk) run(ctx context.Context) error {
	if err := CheckName(w.name); err != nil {
		w.reject("", BadName, "the directory's name %s is not allowed: %v", display.Quote(w.name), err)
		return nil
	}
	if w.linked && w.rules.NoLinks {
		w.reject("", LinkRefused, "the skill directory is a link, and links are not followed here")
		return nil
	}
	_, finding, err := w.skillFile()
	if err != nil {
		return err
	}
	if finding != nil {
		w.report.Findings = append(w.report.Findings, *finding)
	}
	info, err := w.root.Lstat(".")
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, node{"", ".", info})
	if err := w.dir(ctx, w.nodes[0], nil); err != nil {
		return err
	}
	if finding == nil && !w.full && !slices.ContainsFunc(w.nodes, func(n node) bool { return n.out == SkillFile && !n.isDir() }) && len(w.report.Rejected()) == 0 {
		return errChanged // it was a good one when it was looked at first
	}
	return nil
}

// skillFile finds the regular file that SKILL.md is or links to, or says why there is none.
// The error is errChanged, or one that says nothing about the file.
func (w *walk) skillFile() (node, *Finding, error) {
	info, err := w.root.Lstat(SkillFile)
	if errors.Is(err, fs.ErrNotExist) {
		return node{}, &Finding{SkillFile, Rejected, NoSkillFile, "the directory has no SKILL.md, so it is not a skill"}, nil
	}
	if err != nil {
		return node{}, nil, err
	}
	n := node{SkillFile, SkillFile, info}
	if info.Mode()&fs.ModeSymlink != 0 {
		if w.rules.NoLinks {
			return node{}, &Finding{SkillFile, Rejected, LinkRefused, "SKILL.md is a link, and links are not followed here"}, nil
		}
		w.saw(SkillFile, info)
		if n.real, n.info, err = resolveLink(w.root, SkillFile, w.saw); err != nil {
			f, err := linkFinding(SkillFile, err)
			return node{}, f, err
		}
	}
	if !n.info.Mode().IsRegular() {
		return node{}, &Finding{SkillFile, Rejected, SpecialFile, fmt.Sprintf("it is %s, not a file", describe(n.info.Mode()))}, nil
	}
	return n, nil, nil
}

// linkFinding returns why a link cannot be followed, or the error where that is no fault of the link.
func linkFinding(out string, err error) (*Finding, error) {
	if le, ok := errors.AsType[*linkError](err); ok {
		return &Finding{out, Rejected, le.reason, le.detail}, nil
	}
	if errors.Is(err, errChanged) || !ofThePath(err) {
		return nil, err
	}
	f := unreadable(out, err)
	return &f, nil
}

// dir walks one directory. above holds the real paths of the directories it stands in.
func (w *walk) dir(ctx context.Context, d node, above []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := w.names(d)
	if err != nil {
		if errors.Is(err, errChanged) || !ofThePath(err) {
			return err
		}
		out := d.out
		if out == "" {
			out = "."
		}
		w.report.Findings = append(w.report.Findings, unreadable(out, err))
		return nil
	}
	if len(names) > w.rules.Entries+len(w.rules.LeaveOut) {
		w.tooMany(path.Join(d.out, names[len(names)-1]))
		return nil
	}
	w.saw(d.real, d.info)
	above = append(above[:len(above):len(above)], d.real)
	together := siblings{}
	for _, name := range names {
		if w.full {
			return nil
		}
		if err := w.entry(ctx, d, name, together, above); err != nil {
			return err
		}
	}
	return nil
}

// names returns the sorted names in a directory: at most one more than could be kept or left out
// by name, because a directory with more is rejected whatever the rest of it is.
func (w *walk) names(d node) ([]string, error) {
	f, err := openStable(w.root, d.real, d.info)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(w.rules.Entries + len(w.rules.LeaveOut) + 1)
	if err != nil && err != io.EOF {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// tooMany gives the walk up: out is past the limit of entries.
func (w *walk) tooMany(out string) {
	w.full = true
	w.reject("", TooManyEntries, "more than %d files and directories; %s is past the limit", w.rules.Entries, display.Quote(out))
}

// entry decides about one name in a directory.
func (w *walk) entry(ctx context.Context, d node, name string, together siblings, above []string) error {
	out := path.Join(d.out, name)
	if slices.Contains(w.rules.LeaveOut, name) {
		w.leaveOut(out, LeftOutByName, "%s is left out by its name", display.Quote(name))
		return nil
	}
	if w.walked++; w.walked > w.rules.Entries {
		w.tooMany(out)
		return nil
	}
	if err := CheckName(name); err != nil {
		w.reject(out, BadName, "%v", err)
		return nil
	}
	if earlier := together.add(name); earlier != "" {
		w.reject(out, NamesCollide, "some file systems take it and %s for the same name", display.Quote(earlier))
		return nil
	}
	n := node{out: out, real: path.Join(d.real, name)}
	var err error
	if n.info, err = w.root.Lstat(n.real); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", errChanged, err)
		}
		if !ofThePath(err) {
			return err
		}
		w.report.Findings = append(w.report.Findings, unreadable(out, err))
		return nil
	}
	return w.found(ctx, n, above)
}

// found decides about a path by what is there.
func (w *walk) found(ctx context.Context, n node, above []string) error {
	if n.info.Mode()&fs.ModeSymlink != 0 {
		if w.rules.NoLinks {
			if n.out != SkillFile { // that one was reported before the walk
				w.leaveOut(n.out, LinkRefused, "it is a link, and links are not followed here")
			}
			return nil
		}
		w.saw(n.real, n.info)
		var err error
		if n.real, n.info, err = resolveLink(w.root, n.real, w.saw); err != nil {
			f, err := linkFinding(n.out, err)
			if err == nil && n.out != SkillFile { // that one was reported before the walk
				w.report.Findings = append(w.report.Findings, *f)
			}
			return err
		}
		if by := w.leftOutName(n.real); by != "" {
			w.leaveOut(n.out, LeftOutByName, "it links into %s, which is left out by its name", display.Quote(by))
			return nil
		}
	}
	switch mode := n.info.Mode(); {
	case strings.Count(n.out, "/") >= w.rules.Levels:
		w.excess(n.out, TooManyLevels, "it is more than %d levels deep", w.rules.Levels)
	case mode.IsDir():
		if slices.Contains(above, n.real) {
			w.reject(n.out, LinkCycles, "the link leads to a directory it stands in")
			return nil
		}
		if n.out == SkillFile {
			return nil // reported before the walk
		}
		w.nodes = append(w.nodes, n)
		return w.dir(ctx, n, above)
	case mode.IsRegular():
		w.file(n)
	case n.out != SkillFile:
		w.reject(n.out, SpecialFile, "it is %s, and a bundle holds files and directories alone", describe(mode))
	}
	return nil
}

// leftOutName returns the first element of a path that is left out by its name, or "".
func (w *walk) leftOutName(p string) string {
	for elem := range strings.SplitSeq(p, "/") {
		if slices.Contains(w.rules.LeaveOut, elem) {
			return elem
		}
	}
	return ""
}

// file counts a regular file, by the size it was seen with.
func (w *walk) file(n node) {
	if size := n.info.Size(); size > w.rules.FileBytes {
		w.excess(n.out, FileTooLarge, "it is larger than %s", formatBytes(w.rules.FileBytes))
		return
	}
	w.saw(n.real, n.info)
	w.nodes = append(w.nodes, n)
	if w.rules.LeaveOutExcess {
		return // what fits is decided when it is known what is text
	}
	w.files++
	w.bytes += n.info.Size()
	switch {
	case w.bytes > w.rules.Bytes && w.bytes-n.info.Size() <= w.rules.Bytes:
		w.reject("", TooManyBytes, "more than %s of content; %s is over it", formatBytes(w.rules.Bytes), display.Quote(n.out))
	case w.files == w.rules.Files+1:
		w.reject("", TooManyFiles, "more than %d files; %s is one too many", w.rules.Files, display.Quote(n.out))
	}
}

// describe names a file type for people.
func describe(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}
