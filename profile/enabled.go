package profile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/punnet/punnet/internal/atomicfile"
	"github.com/punnet/punnet/internal/display"
)

// maxEnabledBytes bounds a file of enabled roots.
const maxEnabledBytes = 1 << 20

// ErrNotRoots is the error of a file of enabled roots that is not of that form. It stays as it is.
var ErrNotRoots = errors.New("not a file of enabled roots")

// Enabled is a file that lists enabled roots, {"roots":["/absolute/path"]}. What else it holds,
// another program's keys and entries, is kept as it is.
type Enabled struct {
	roots []json.RawMessage
	keys  map[string]json.RawMessage
}

// LoadEnabled reads a file of enabled roots. Without the file there are none. The error is ErrNotRoots
// for a file of another form or of more than 1 MiB, else that of reading it.
func LoadEnabled(path string) (*Enabled, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Enabled{}, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxEnabledBytes {
		return nil, fmt.Errorf("%s: %w: it is no file of at most %d KiB", display.Quote(path), ErrNotRoots, maxEnabledBytes>>10)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	e := &Enabled{}
	if err := json.Unmarshal(data, &e.keys); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", display.Quote(path), ErrNotRoots, plainJSONError(data, err))
	}
	if roots, ok := e.keys["roots"]; ok {
		if err := json.Unmarshal(roots, &e.roots); err != nil {
			return nil, fmt.Errorf("%s: %w: roots is not a list", display.Quote(path), ErrNotRoots)
		}
	}
	return e, nil
}

// plainJSONError says why data is not a JSON object, in words for who wrote it.
func plainJSONError(data []byte, err error) string {
	if len(bytes.TrimSpace(data)) == 0 {
		return "it is empty"
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(syntax.Offset, int64(len(data)))]
		return fmt.Sprintf("line %d: %s", 1+bytes.Count(before, []byte("\n")), display.Quote(err.Error()))
	}
	return "it is not an object"
}

// Paths returns the roots, absolute paths, in the order of the file. Entries of another form are
// none of them.
func (e *Enabled) Paths() []string {
	var paths []string
	for _, raw := range e.roots {
		if path, ok := rootPath(raw); ok && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

func rootPath(raw json.RawMessage) (string, bool) {
	var path string
	if json.Unmarshal(raw, &path) != nil || !filepath.IsAbs(path) {
		return "", false
	}
	return filepath.Clean(path), true
}

// Enable adds a root, an absolute path, to the file at path, and reports whether it was new there. Who
// reads the file meanwhile finds it as it was or as it will be, and of two who change it at once one
// waits for the other, until ctx ends. Where path is a link, what it leads to is the file.
func Enable(ctx context.Context, path, root string) (bool, error) {
	return update(ctx, path, root, func(e *Enabled, root string) (bool, error) {
		if slices.Contains(e.Paths(), root) {
			return false, nil
		}
		raw, err := encode(root)
		if err != nil {
			return false, err
		}
		e.roots = append(e.roots, raw)
		return true, nil
	})
}

// Disable takes a root out of the file at path, as Enable does, and reports whether it was there.
func Disable(ctx context.Context, path, root string) (bool, error) {
	return update(ctx, path, root, func(e *Enabled, root string) (bool, error) {
		before := len(e.roots)
		e.roots = slices.DeleteFunc(e.roots, func(raw json.RawMessage) bool {
			at, ok := rootPath(raw)
			return ok && at == root
		})
		return len(e.roots) < before, nil
	})
}

// lockPause is how long to wait before asking for the lock again.
const lockPause = 20 * time.Millisecond

func update(ctx context.Context, path, root string, change func(*Enabled, string) (bool, error)) (bool, error) {
	if !filepath.IsAbs(root) || !utf8.ValidString(root) {
		return false, fmt.Errorf("%s: not an absolute path in UTF-8", display.Quote(root))
	}
	if err := atomicfile.MkdirAll(filepath.Dir(path)); err != nil {
		return false, err
	}
	lock := flock.New(path + ".lock")
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return false, fmt.Errorf("lock %s: %w", display.Quote(path), bare(err))
	}
	defer lock.Unlock()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	e, err := LoadEnabled(path)
	if err != nil {
		return false, err
	}
	changed, err := change(e, filepath.Clean(root))
	if err != nil || !changed {
		return false, err
	}
	return true, e.save(path)
}

// bare takes the path off an error beside which it stands already.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func (e *Enabled) save(path string) error {
	if e.roots == nil {
		e.roots = []json.RawMessage{}
	}
	roots, err := encode(e.roots)
	if err != nil {
		return err
	}
	keys := map[string]json.RawMessage{"roots": roots}
	for key, raw := range e.keys {
		if key != "roots" {
			keys[key] = raw
		}
	}
	data, err := encode(keys)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return atomicfile.Write(path, out.Bytes())
}

// encode returns v as JSON that people can read: & < > stay.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
