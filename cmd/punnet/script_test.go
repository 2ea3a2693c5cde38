package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"punnet": main})
}

// The command's behaviour is written down as scripts: testdata/*.txtar. Each has a home of its own
// and these commands besides testscript's:
//
//	mkfifo PATH        make a FIFO
//	sparse SIZE PATH   make a file of SIZE bytes of nothing
//	exits CODE CMD     run a command and compare its exit code
func TestScripts(t *testing.T) { runScripts(t, "testdata", nil) }

// The scripts in testdata/ssh have an SSH server of their own on the loopback interface, with the
// accounts devbox, filesonly (SFTP alone), noisy (its login shell prints), nothing (neither) and
// locked (which lets nobody in). SSHCONF is an ssh_config for it and HOMES the directory of homes.
func TestScriptsOverSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh, to read an ssh_config")
	}
	runScripts(t, "testdata/ssh", func(e *testscript.Env) error {
		server, err := transporttest.Start(transporttest.Options{Accounts: []transporttest.Account{
			{Name: "devbox"}, {Name: "filesonly", NoExec: true}, {Name: "noisy", Noise: "Welcome!\n"},
			{Name: "nothing", NoExec: true, NoFiles: true}, {Name: "locked", OnlyKeys: true},
		}})
		if err != nil {
			return err
		}
		e.Defer(func() { server.Close() })
		e.Setenv("SSHCONF", server.ConfigFile())
		e.Setenv("HOMES", filepath.Dir(server.Home("devbox")))
		return nil
	})
}

func runScripts(t *testing.T, dir string, more func(*testscript.Env) error) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			for _, kv := range os.Environ() {
				name, _, _ := strings.Cut(kv, "=")
				if strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "PUNNET_") || name == "HEADLESSCODE_DATA_DIR" || name == "NO_COLOR" || name == "SSH_AUTH_SOCK" {
					e.Setenv(name, "")
				}
			}
			if more != nil {
				if err := more(e); err != nil {
					return err
				}
			}
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"mkfifo": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(mkfifo(ts.MkAbs(args[0])))
			},
			"sparse": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), nil, 0o644))
				ts.Check(os.Truncate(ts.MkAbs(args[1]), atoi(args[0])))
			},
			"exits": exits,
		},
	})
}

// exits runs a command line and compares its exit code, which testscript's own exec does not tell:
//
//	exits CODE punnet ...
//
// Its output is for stdout and stderr as exec's is.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want := int(atoi(args[0]))
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if ee := (*exec.ExitError)(nil); err != nil {
		ok := false
		if ee, ok = err.(*exec.ExitError); !ok {
			ts.Fatalf("%v", err)
		}
		got = ee.Sys().(syscall.WaitStatus).ExitStatus()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func atoi(s string) int64 {
	n := int64(0)
	for _, r := range s {
		n = n*10 + int64(r-'0')
	}
	return n
}
