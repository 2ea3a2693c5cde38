package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWriteReplacesWholeAndLeavesNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "file")
	for _, text := range []string{"first", "second, longer", ""} {
		if err := Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Errorf("read %q, %v; want %q", got, err, text)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v; want the file alone", len(entries), err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for p, want := range map[string]os.FileMode{path: 0o600, dir: os.ModeDir | 0o700, filepath.Dir(dir): os.ModeDir | 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, %v; want %v", p, info.Mode(), err, want)
		}
	}
}

func TestFailedWriteKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(taken, []byte("text")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d entries, %v; want the directory alone", len(entries), err)
	}
	if err := Write(filepath.Join(dir, "taken", "x", "..", "..", "file", "below"), nil); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(dir, "plain", "below")); err == nil {
		t.Error("a directory was made below a file")
	}
}

func TestMkdirAllLeavesWhatIsThereAsItIs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no modes to keep; that directories are made is checked elsewhere")
		return
	}
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(dir, "private")); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, "private"): 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", p, info.Mode(), err, want)
		}
	}
}

func TestTempNamesDiffer(t *testing.T) {
	a, b := TempName(".tmp-"), TempName(".tmp-")
	if a == b || len(a) < 30 {
		t.Errorf("%q and %q", a, b)
	}
}
