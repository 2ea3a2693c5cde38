package transport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func localFiles(t *testing.T) (*localFS, string) {
	t.Helper()
	conn := Local()
	t.Cleanup(func() { conn.Close() })
	files, err := conn.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files.(*localFS), filepath.ToSlash(t.TempDir())
}

func TestTheStartOfAFileIsAllOfAShortOne(t *testing.T) {
	files, dir := localFiles(t)
	for size, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 10, 11: 10, 100_000: 10} {
		text := strings.Repeat("0123456789", size/10+1)[:size]
		if err := os.WriteFile(dir+"/f", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		if n, err := files.ReadStart(dir+"/f", buf); err != nil || string(buf[:n]) != text[:want] {
			t.Errorf("of %d bytes: %q, %v", size, buf[:n], err)
		}
	}
	for name, want := range map[string]error{dir + "/gone": fs.ErrNotExist, "f": fs.ErrInvalid} {
		if _, err := files.ReadStart(name, make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := files.ReadStart(dir, make([]byte, 1)); err == nil {
		t.Error("a directory was read")
	}
}

func TestNamesAreThoseOfADirectoryUpToALimit(t *testing.T) {
	files, dir := localFiles(t)
	if list, err := files.ReadNames(dir, 1); err != nil || len(list) != 0 {
		t.Errorf("an empty directory has %v, %v", list, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := os.Mkdir(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for max, tooMany := range map[int]bool{1: true, 2: true, 3: false, 4: false} {
		list, err := files.ReadNames(dir, max)
		if len(list) != min(max, 3) || errors.Is(err, ErrTooLarge) != tooMany || !tooMany && err != nil {
			t.Errorf("of at most %d: %v, %v", max, list, err)
		}
		if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return !e.IsDir() }) {
			t.Errorf("not all of %v are directories", list)
		}
	}
	if _, err := files.ReadNames(dir+"/gone", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is gone: %v", err)
	}
	if _, err := files.ReadNames(dir, 0); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("at most none: %v", err)
	}
}
