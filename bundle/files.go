package bundle

import (
	"io"
	"io/fs"
	"os"
)

// SourceFS is what a Source needs of the skill directory that it reads: names are relative to it, with
// slashes, and "." is the directory itself. No name leads through a link, and nothing outside of the
// directory may be reached by one. The methods are called from several goroutines at once.
type SourceFS interface {
	// Lstat describes a name, which may be a link.
	Lstat(name string) (fs.FileInfo, error)
	// Readlink returns where a link points.
	Readlink(name string) (string, error)
	// Open opens a regular file or directory. What is anything else by now must not block it.
	Open(name string) (SourceFile, error)
}

// SourceFile is an open file or directory.
type SourceFile interface {
	io.ReadCloser
	// Stat describes it as it is now.
	Stat() (fs.FileInfo, error)
	// Readdirnames returns at most n names in the directory, n > 0, as os.File does.
	Readdirnames(n int) ([]string, error)
}

// NewSource returns a Source over files that are not this machine's, or not reached by a path. path is
// for people and for Source.Path; name is the skill directory's, and linked says that the directory
// was reached through a link of that name. Closing the Source leaves files open.
//
// A file counts as unchanged while its mode, size and modification time are.
func NewSource(name, path string, linked bool, files SourceFS) *Source {
	return &Source{Name: name, Path: path, files: files, linked: linked, readers: distantReaders}
}

// distantReaders is how many files of another machine are read at once: reading one is mostly waiting.
const distantReaders = 32

// local is a directory on this machine.
type local struct{ *os.Root }

func (l local) Open(name string) (SourceFile, error) {
	f, err := l.OpenFile(name, readFlags, 0)
	if err != nil {
		return nil, err // and no SourceFile that holds a nil
	}
	return f, nil
}
