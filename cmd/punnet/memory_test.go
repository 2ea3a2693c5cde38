//go:build unix

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// maxMemory is what the command may use for a bundle of any size, in bytes.
const maxMemory = 64 << 20

func TestLargestBundleIsPinnedAndPushedInUnder64MiBOfMemory(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh, to read an ssh_config")
	}
	home := t.TempDir()
	skill := makeSkill(t, home)
	writeNoise(t, filepath.Join(skill, "large.bin"))
	server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{{Name: "devbox"}, {Name: "filesonly", NoExec: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	exe, peaks := build(t), filepath.Join(t.TempDir(), "peak")
	if out, err := exec.Command("go", "build", "-o", peaks, "./testdata/peak").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"inspect", skill}, {"pin", skill}, {"pin", skill}, {"store", "verify"},
		{"push", "devbox", skill}, {"push", "devbox", skill}, {"push", "filesonly", skill}, {"status", "filesonly"},
	} {
		cmd := exec.Command(peaks, append([]string{exe, "-q", "-F", server.ConfigFile()}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		peak, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "darwin" { // which counts bytes; others count KiB
			peak <<= 10
		}
		t.Logf("%v: %d MiB at most", args[:len(args)-1], peak>>20)
		if peak > maxMemory {
			t.Errorf("%v: %d MiB of memory, over %d", args, peak>>20, maxMemory>>20)
		}
	}
}

// writeNoise writes a file of 31 MiB that does not compress, piece by piece: a child process starts
// with its parent's peak.
func writeNoise(t *testing.T, path string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 31 {
		var noise [1 << 20]byte
		for i := range noise {
			noise[i] = byte(r.Uint32())
		}
		if _, err := f.Write(noise[:]); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
