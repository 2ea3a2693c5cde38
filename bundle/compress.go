package bundle

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Compression is how a packed bundle is compressed.
type Compression int

// The compressions. Every target unpacks gzip; zstd is faster on both sides where a target has it.
const (
	Gzip Compression = iota
	Zstd
)

// String returns "gzip" or "zstd".
func (c Compression) String() string {
	if c == Zstd {
		return "zstd"
	}
	return "gzip"
}

const (
	// gzipLevel is where the ratio stops growing with effort: on 400 KB of skills level 9 packs 4 %
	// smaller than 6 and takes six times as long.
	gzipLevel = 6
	// zstdWindow bounds the memory of both sides. Skills are small: a larger window finds nothing.
	zstdWindow = 8 << 20
)

// newCompressor wraps w. Closing it ends the stream and leaves w open.
func newCompressor(w io.Writer, c Compression) (io.WriteCloser, error) {
	switch c {
	case Gzip:
		return gzip.NewWriterLevel(w, gzipLevel)
	case Zstd:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	}
	return nil, fmt.Errorf("unknown compression %d", int(c))
}

// newDecompressor reads gzip or zstd, told apart by how they begin. The decoder's memory is bounded
// whatever the stream says of itself; how much comes out of it is for the caller to bound.
func newDecompressor(r io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(4)
	if err != nil && len(magic) < 2 {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read packed bundle: %w", err)
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		return gzip.NewReader(b)
	case string(magic) == "\x28\xb5\x2f\xfd":
		d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, errors.New("read packed bundle: neither gzip nor zstd")
}
