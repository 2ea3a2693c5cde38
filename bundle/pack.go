package bundle

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"
)

// PackedTime is the time that every entry of a packed bundle and every file of a copy has. It is
// fixed so that packing is repeatable and an edit of a copy shows, and late enough for the archive
// formats that count from 1980.
func PackedTime() time.Time { return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) }

// Pack writes bundles to w as one packed stream, each below a directory named by its digest. Every
// file's content is held to the manifest on its way; where it differs Pack ends with a
// *DamagedError, and the stream without its end. Memory does not grow with the bundles.
func Pack(ctx context.Context, w io.Writer, c Compression, bundles ...*Bundle) error {
	p, err := NewPacker(w, c)
	if err != nil {
		return err
	}
	for _, b := range bundles {
		if err := p.Add(ctx, b, nil); err != nil {
			return err
		}
	}
	return p.Close()
}

// Packer writes a packed stream piece by piece, for a receiver that has some of the pieces already.
type Packer struct {
	z io.WriteCloser
	t *tar.Writer
}

// NewPacker starts a packed stream on w. Without a Close the stream has no end, and no receiver
// takes it for whole.
func NewPacker(w io.Writer, c Compression) (*Packer, error) {
	z, err := newCompressor(w, c)
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return &Packer{z: z, t: tar.NewWriter(z)}, nil
}

// Add writes a bundle below a directory named by its digest: all directories, and the files that
// want reports true for, or all of them where it is nil. The errors are Pack's.
func (p *Packer) Add(ctx context.Context, b *Bundle, want func(Entry) bool) error {
	if err := p.add(ctx, b, want); err != nil {
		return fmt.Errorf("pack %s: %w", b.Manifest.Digest().Short(), err)
	}
	return nil
}

// AddData writes a file that is no bundle's. name is its path in the stream, with slashes.
func (p *Packer) AddData(name string, k Kind, data []byte) error {
	if err := p.t.WriteHeader(packedHeader(name, k, int64(len(data)))); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if _, err := p.t.Write(data); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	return nil
}

// Flush writes out what was added so far, so that a receiver can have it before the stream ends.
func (p *Packer) Flush() error {
	err := p.t.Flush()
	if f, ok := p.z.(interface{ Flush() error }); ok && err == nil {
		err = f.Flush()
	}
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// Close ends the stream and leaves the writer below it open.
func (p *Packer) Close() error {
	if err := errors.Join(p.t.Close(), p.z.Close()); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

func (p *Packer) add(ctx context.Context, b *Bundle, want func(Entry) bool) error {
	prefix := b.Manifest.Digest().String() + "/"
	if err := p.t.WriteHeader(packedHeader(prefix, Dir, 0)); err != nil {
		return err
	}
	for _, e := range b.Manifest.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch {
		case e.Kind == Dir:
			if err := p.t.WriteHeader(packedHeader(prefix+e.Path+"/", Dir, 0)); err != nil {
				return err
			}
		case want == nil || want(e):
			size, err := b.Size(e)
			if err != nil {
				return err
			}
			if err := p.t.WriteHeader(packedHeader(prefix+e.Path, e.Kind, size)); err != nil {
				return err
			}
			if err := b.copyFile(ctx, p.t, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func packedHeader(name string, k Kind, size int64) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(k.Perm()),
		ModTime: PackedTime(), Format: tar.FormatGNU,
	}
	if k == Dir {
		h.Typeflag = tar.TypeDir
	}
	return h
}

// Size returns the bytes of content that the file of an entry has. The error is a *DamagedError
// where it is not there or is not a regular file.
func (b *Bundle) Size(e Entry) (int64, error) {
	info, err := b.root.Lstat(e.Path)
	if err != nil {
		return 0, b.damaged(e, err.Error())
	}
	if !info.Mode().IsRegular() {
		return 0, b.damaged(e, "it is not a regular file")
	}
	return info.Size(), nil
}

// CopyFile writes the content of an entry's file to w and holds it to the manifest. It has written
// everything before it knows: only a nil error says that what was written is the content. The error
// is a *DamagedError where it is not, or w's.
func (b *Bundle) CopyFile(w io.Writer, e Entry) error {
	return b.copyFile(context.Background(), w, e)
}

func (b *Bundle) copyFile(ctx context.Context, w io.Writer, e Entry) error {
	info, err := b.root.Lstat(e.Path)
	if err != nil {
		return b.damaged(e, err.Error())
	}
	if !info.Mode().IsRegular() {
		return b.damaged(e, "it is not a regular file")
	}
	sum := sha256.New()
	if err := copyStable(ctx, io.MultiWriter(w, sum), local{b.root}, e.Path, info); err != nil {
		if errors.Is(err, errChanged) || errors.Is(err, tar.ErrWriteTooLong) {
			return b.damaged(e, "it changed while it was read")
		}
		return err
	}
	if [32]byte(sum.Sum(nil)) != e.SHA256 {
		return b.damaged(e, "its content is not what was pinned")
	}
	return nil
}

func (b *Bundle) damaged(e Entry, what string) error {
	return &DamagedError{Digest: b.Manifest.Digest(), Damage: []Damage{{e.Path, what}}}
}
