package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/internal/display"
)

// What a journal is.
const (
	journalKind    = "conversation"
	journalVersion = 1
	journalSuffix  = ".jsonl"
	maxHeaderBytes = 64 << 10
	// maxJournalBytes is far more than a conversation has, and fits in memory.
	maxJournalBytes = 1 << 30
)

// Files is a Storage of one file a conversation, see the package's documentation. Files and the
// directories that are made are private to the user.
type Files struct {
	dir string
}

// NewFiles returns the storage in a directory, an absolute path, which need not exist.
func NewFiles(dir string) (*Files, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("conversations in %s: the path is not absolute", display.Quote(dir))
	}
	return &Files{filepath.Clean(dir)}, nil
}

// Dir returns the directory.
func (s *Files) Dir() string { return s.dir }

// Path returns the file of a conversation, whether or not it is there.
func (s *Files) Path(id string) string { return filepath.Join(s.dir, id+journalSuffix) }

// headerLine is the first line of a journal.
type headerLine struct {
	Punnet  string `json:"punnet"`
	Version int    `json:"version"`
	// Made is random: two conversations that had one id, and began in the same moment, differ in it,
	// and so in the tag of their marks.
	Made string `json:"made,omitempty"`
	Header
}

// Create implements Storage.
func (s *Files) Create(ctx context.Context, h Header, events []*Event) error {
	if err := CheckID(h.ID); err != nil {
		return err
	}
	head, err := json.Marshal(headerLine{journalKind, journalVersion, newID(), h})
	if err != nil {
		return err
	}
	lines, err := encode(events)
	if err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(s.dir); err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	unlock, err := s.lock(ctx, h.ID)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(s.Path(h.ID)); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = taken(h.ID)
		}
		return err
	}
	if err := atomicfile.Write(s.Path(h.ID), slices.Concat(head, []byte{'\n'}, lines)); err != nil {
		return fmt.Errorf("create conversation: %w", err)
	}
	return nil
}

// open opens a journal.
func (s *Files) open(id string, flag int) (*os.File, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	info, err := os.Lstat(s.Path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noConversation(id)
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, s.damaged(id, 0, errors.New("it is not a file"))
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation: %w", err)
	}
	f, err := os.OpenFile(s.Path(id), flag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noConversation(id)
	}
	if err != nil {
		return nil, fmt.Errorf("open conversation: %w", err)
	}
	return f, nil
}

// damaged is the error of a journal that is not what was written. line counts from 1; 0 is the file.
func (s *Files) damaged(id string, line int, err error) error {
	at := s.Path(id)
	if line > 0 {
		at = fmt.Sprintf("%s:%d", at, line)
	}
	return &Error{Code: ErrDamaged, About: at, What: "the conversation's journal is damaged", Err: err,
		Advice: "mend the line or restore the file; nothing in it was guessed or changed"}
}

// Header implements Storage.
func (s *Files) Header(ctx context.Context, id string) (Header, error) {
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	h, _, err := s.header(f, id)
	return h, errors.Join(err, ctx.Err())
}

// header reads the first line, which it also returns.
func (s *Files) header(f io.ReaderAt, id string) (Header, []byte, error) {
	buf := make([]byte, maxHeaderBytes)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Header{}, nil, fmt.Errorf("read conversation: %w", err)
	}
	end := bytes.IndexByte(buf[:n], '\n') + 1
	h, err := parseHeader(buf[:end])
	if errors.Is(err, ErrNewer) {
		return Header{}, nil, &Error{Code: ErrNewer, About: s.Path(id), What: "the conversation was written by a later version of Punnet"}
	}
	if err == nil && h.ID != id {
		err = fmt.Errorf("it is the journal of %s", display.Quote(h.ID))
	}
	if err != nil {
		return Header{}, nil, s.damaged(id, 1, err)
	}
	return h, buf[:end], nil
}

func parseHeader(line []byte) (Header, error) {
	var h headerLine
	if len(line) == 0 {
		return Header{}, errors.New("it has no first line")
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, plain(err)
	}
	switch {
	case h.Punnet != journalKind || h.Version < 1:
		return Header{}, errors.New("it is not the header of a conversation")
	case h.Version > journalVersion:
		return Header{}, ErrNewer
	}
	return h.Header, nil
}

// plain returns the words of a JSON error, which can repeat what it read.
func plain(err error) error { return errors.New(asked(err.Error())) }

// Read implements Storage.
func (s *Files) Read(ctx context.Context, id string, from Mark) ([]*Event, Mark, error) {
	f, err := s.open(id, os.O_RDONLY)
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	if err := ctx.Err(); err != nil {
		return nil, from, err
	}
	r, err := s.read(f, id, from)
	if err != nil {
		return nil, from, err
	}
	return r.events, markAt(r.tag, r.end), nil
}

// part is what was read of a journal.
type part struct {
	events    []*Event
	tag       uint32 // of the header
	end, size int64  // of the last whole line, and of the file
}

// read returns what follows a mark.
func (s *Files) read(f *os.File, id string, mark Mark) (p part, err error) {
	_, line, err := s.header(f, id)
	if err != nil {
		return p, err
	}
	p.tag = crc32.ChecksumIEEE(line)
	from, err := mark.in(id, p.tag)
	if err != nil {
		return p, err
	}
	from = max(from, int64(len(line)))
	info, err := f.Stat()
	if err != nil {
		return p, fmt.Errorf("read conversation: %w", err)
	}
	p.size = info.Size()
	if p.size < from {
		return p, s.damaged(id, 0, errors.New("it is shorter than it was"))
	}
	if p.size > maxJournalBytes+maxLineBytes { // a line that was not finished included
		return p, s.damaged(id, 0, errors.New("it is larger than any that is written"))
	}
	data := make([]byte, p.size-from)
	if _, err := io.ReadFull(io.NewSectionReader(f, from, p.size-from), data); err != nil {
		return p, fmt.Errorf("read conversation: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var bad int
	if p.events, bad, err = decode(data); err != nil {
		return p, s.damaged(id, bad+s.linesBefore(f, from), err)
	}
	p.end = from + int64(len(data))
	return p, nil
}

// linesBefore counts the lines before an offset, for an error.
func (s *Files) linesBefore(f io.ReaderAt, offset int64) int {
	buf, lines := make([]byte, 64<<10), 0
	r := io.NewSectionReader(f, 0, offset)
	for {
		n, err := r.Read(buf)
		lines += bytes.Count(buf[:n], []byte{'\n'})
		if err != nil {
			return lines
		}
	}
}

// Append implements Storage.
func (s *Files) Append(ctx context.Context, id string, from Mark, decide func([]*Event) ([]*Event, error)) (Mark, error) {
	if err := CheckID(id); err != nil {
		return from, err
	}
	if _, err := os.Lstat(s.Path(id)); errors.Is(err, fs.ErrNotExist) {
		return from, noConversation(id) // and no lock is left for it
	}
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return from, err
	}
	defer unlock()
	f, err := s.open(id, os.O_RDWR)
	if err != nil {
		return from, err
	}
	defer f.Close()
	p, err := s.read(f, id, from)
	if err != nil {
		return from, err
	}
	end := markAt(p.tag, p.end)
	events, err := decide(p.events)
	if err != nil || len(events) == 0 {
		return end, err
	}
	lines, err := encode(events)
	if err != nil {
		return end, err
	}
	if p.end+int64(len(lines)) > maxJournalBytes {
		return end, &Error{Code: ErrTooLarge, About: id, What: "the conversation's journal is full", Advice: "fork it: a fork has only the events that lead to its own"}
	}
	if err := write(f, lines, p.end, p.size); err != nil {
		return end, fmt.Errorf("record in the conversation: %w", err)
	}
	return end + Mark(len(lines)), nil
}

// write makes lines follow at end, where a line that was not finished may stand, or leaves nothing new.
func write(f *os.File, lines []byte, end, size int64) error {
	if size > end {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	_, err := f.WriteAt(lines, end)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		// What cannot be cut off has no last line end, or was whole and is told as not recorded: then
		// it is all the same part of the history for who reads it next.
		return errors.Join(err, f.Truncate(end))
	}
	return nil
}

// List implements Storage.
func (s *Files) List(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || elsewhere(s.dir)) {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), journalSuffix); ok && CheckID(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, ctx.Err()
}

// elsewhere reports whether a directory is not there because a link on the way to it leads nowhere, as
// one to a disk that is not mounted does: that is not the same as having nothing.
func elsewhere(dir string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Lstat(at)
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			_, followed := os.Stat(at)
			return followed != nil
		}
	}
}

// Remove implements Storage.
func (s *Files) Remove(ctx context.Context, id string) error {
	f, err := s.open(id, os.O_RDONLY)
	if errors.Is(err, ErrBadID) || errors.Is(err, ErrNoConversation) {
		return err
	}
	if err == nil {
		f.Close()
	}
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer s.dropLock(id, unlock)
	if err := os.Remove(s.Path(id)); errors.Is(err, fs.ErrNotExist) {
		return noConversation(id)
	} else if err != nil {
		return fmt.Errorf("remove conversation: %w", err)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return atomicfile.SyncDir(root, ".")
}
