// Package fault gives the errors of files and connections one shape.
package fault

import (
	"errors"
	"io"
	"io/fs"

	"github.com/punnet/punnet/internal/display"
)

// Reasons an SFTP server does not put into words, and that not every system has an errno for.
var (
	ErrIsDir    = errors.New("is a directory")
	ErrNotDir   = errors.New("not a directory")
	ErrNotEmpty = Both(errors.New("directory not empty"), fs.ErrExist)
)

// Both joins two errors so that the text is the first's and errors.Is sees either.
func Both(shown, also error) error { return &both{shown, also} }

type both struct{ shown, also error }

func (b *both) Error() string   { return b.shown.Error() }
func (b *both) Unwrap() []error { return []error{b.shown, b.also} }

// Path gives err the shape every file operation fails with. It is nil for nil.
func Path(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if pe, ok := err.(*fs.PathError); ok {
		err = pe.Err
	}
	return &fs.PathError{Op: op, Path: display.Quote(name), Err: err}
}

// Bare takes the path off a file error, which stands beside it already.
func Bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// IsEnd reports whether err is only how a connection says that it is over.
func IsEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe)
}
