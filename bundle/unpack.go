package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/punnet/punnet/internal/display"
)

// overheadPerEntry bounds what a tar may spend on an entry beside its content: its header, a long
// name with a header of its own, and padding.
const overheadPerEntry = 8 << 10

// Unpack reads one packed bundle from r, writes its top directory below dst, where nothing of that
// name may exist, and returns the manifest of what it wrote, which has the digest that the stream
// is rooted at. The limits are those a skill directory is held to. dst should be a staging
// directory: after an error it holds a part of the bundle.
//
// The stream may come from anywhere. It is refused, with a *RejectedError where it breaks the
// format or a limit, as soon as it holds anything but directories and regular files of good names
// under one digest, or says more than the limits allow.
func Unpack(ctx context.Context, r io.Reader, dst *os.Root, limits Limits) (*Manifest, error) {
	limits = limits.withDefaults()
	z, err := newDecompressor(r)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	u := &unpacking{
		dst: dst, limits: limits, dirs: map[string]siblings{},
		in: &io.LimitedReader{R: z, N: limits.Bytes + int64(limits.Entries+2)*overheadPerEntry},
	}
	m, err := u.run(ctx)
	if err != nil && u.in.N <= 0 {
		return nil, u.reject("", TooManyBytes, "it unpacks to more than %s", formatBytes(limits.Bytes))
	}
	if err != nil {
		return nil, err
	}
	return m, syncDirs(dst, m)
}

// unpacking is a stream on its way into a directory.
type unpacking struct {
	dst     *os.Root
	limits  Limits
	in      *io.LimitedReader
	digest  Digest
	name    string
	entries []Entry
	dirs    map[string]siblings // the directories made, with the names in them
	files   int
	bytes   int64
}

func (u *unpacking) reject(p string, reason Reason, format string, args ...any) error {
	if p == "" {
		p = "."
	}
	return &RejectedError{Name: u.name, Findings: []Finding{{p, Rejected, reason, fmt.Sprintf(format, args...)}}}
}

func (u *unpacking) run(ctx context.Context) (*Manifest, error) {
	t := tar.NewReader(u.in)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if err := u.entry(t, h); err != nil {
			return nil, err
		}
	}
	// What follows a tar's end can only be padding; reading it lets the decoder check its sums.
	if err := onlyZeros(u.in); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if len(u.entries) == 0 {
		return nil, u.reject("", NoSkillFile, "the stream holds no bundle")
	}
	m := newManifest(u.entries)
	if e, ok := m.lookup(u.name + "/" + SkillFile); !ok || e.Kind == Dir {
		return nil, u.reject(SkillFile, NoSkillFile, "the bundle has no SKILL.md, so it is not a skill's")
	}
	if m.Digest() != u.digest {
		return nil, u.reject("", WrongDigest, "the content has digest %s, not the %s it is packed as", m.Digest().Short(), u.digest.Short())
	}
	return m, nil
}

func onlyZeros(r io.Reader) error {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return errors.New("there is something after the end of the archive")
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) entry(t *tar.Reader, h *tar.Header) error {
	if h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg {
		return u.reject(h.Name, SpecialFile, "it is neither a directory nor a regular file (tar type %q)", h.Typeflag)
	}
	first, p, _ := strings.Cut(h.Name, "/")
	if u.digest.IsZero() {
		d, err := ParseDigest(first)
		if err != nil {
			return u.reject(h.Name, BadName, "the stream is not rooted at a digest: %v", err)
		}
		u.digest = d
	}
	if first != u.digest.String() {
		return u.reject(h.Name, BadName, "it is not below %s", u.digest.Short())
	}
	if h.Typeflag == tar.TypeDir {
		p = strings.TrimSuffix(p, "/")
		if p == "" {
			return nil // the digest's own directory
		}
	}
	if err := u.place(p, h.Typeflag == tar.TypeDir); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		u.entries = append(u.entries, Entry{Path: p, Kind: Dir})
		u.dirs[p] = siblings{}
		return makeDir(u.dst, p)
	}
	return u.file(t, h, p)
}

// place holds a path to the format and the limits before anything is made of it.
func (u *unpacking) place(p string, dir bool) error {
	parent, name := path.Split(p)
	parent = strings.TrimSuffix(parent, "/")
	if err := CheckName(name); err != nil {
		return u.reject(p, BadName, "%v", err)
	}
	if !fs.ValidPath(p) {
		return u.reject(p, BadName, "it is not a path of plain elements")
	}
	if len(u.entries) == 0 {
		if parent != "" || !dir {
			return u.reject(p, BadName, "a bundle starts with its top directory")
		}
		u.name = name
		return nil
	}
	in, ok := u.dirs[parent]
	if !ok {
		return u.reject(p, BadName, "its directory does not come before it")
	}
	if earlier := in.add(name); earlier != "" {
		return u.reject(p, NamesCollide, "some file systems take it and %s for the same name", display.Quote(earlier))
	}
	switch {
	case len(u.entries) > u.limits.Entries: // the top directory does not count
		return u.reject("", TooManyEntries, "more than %d files and directories; %s is past the limit", u.limits.Entries, display.Quote(p))
	case strings.Count(p, "/") > u.limits.Levels:
		return u.reject(p, TooManyLevels, "it is more than %d levels deep", u.limits.Levels)
	}
	return nil
}

func (u *unpacking) file(t *tar.Reader, h *tar.Header, p string) error {
	u.files++
	u.bytes += h.Size
	switch {
	case h.Size < 0 || h.Size > u.limits.FileBytes:
		return u.reject(p, FileTooLarge, "it is larger than %s", formatBytes(u.limits.FileBytes))
	case u.bytes > u.limits.Bytes:
		return u.reject("", TooManyBytes, "more than %s of content; %s is over it", formatBytes(u.limits.Bytes), display.Quote(p))
	case u.files > u.limits.Files:
		return u.reject("", TooManyFiles, "more than %d files; %s is one too many", u.limits.Files, display.Quote(p))
	}
	e := Entry{Path: p, Kind: File}
	if h.Mode&0o111 != 0 {
		e.Kind = Exec
	}
	f, err := createFile(u.dst, p, e.Kind)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(t, h.Size+1)); err != nil {
		return fmt.Errorf("unpack %s: %w", display.Quote(p), err)
	}
	sum.Sum(e.SHA256[:0])
	u.entries = append(u.entries, e)
	if err := f.Sync(); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return f.Close()
}
