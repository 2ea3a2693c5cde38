//go:build unix

package sshconfig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAFileOthersMayWriteIsRefused(t *testing.T) {
	home := t.TempDir()
	writeDeep(t, home+"/.ssh/config", "Include other\nProxyCommand run me\n")
	writeDeep(t, home+"/.ssh/other", "Port 5\n")
	q := quiet("dev")
	q.Home = home
	if s, err := readHere(t, q); err != nil || s.Port != 5 || s.ProxyCommand != "run me" {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, name := range []string{"config", "other"} {
		file := filepath.Join(home, ".ssh", name)
		if err := os.Chmod(file, 0o622); err != nil {
			t.Fatal(err)
		}
		if _, err := readHere(t, q); err == nil || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPipeIsNotReadAsConfiguration(t *testing.T) {
	q := quiet("dev")
	q.ConfigFile = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(q.ConfigFile, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := readHere(t, q)
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("it was read")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it is waited for")
	}
	q.ConfigFile = os.DevNull
	if _, err := readHere(t, q); err != nil {
		t.Errorf("the null device: %v", err)
	}
}
