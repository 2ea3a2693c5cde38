package main

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
	"github.com/punnet/punnet/transport/transporttest"
)

// TestATargetIsOneConnectionAndOneLogin holds punnet to what servers count: connections that are
// not logged in (MaxStartups), logins that fail (PerSourcePenalties), and sessions (MaxSessions).
func TestATargetIsOneConnectionAndOneLogin(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil || runtime.GOOS == "windows" {
		testenv.Missing(t, "ssh and a POSIX shell")
	}
	exe, dir := build(t), t.TempDir()
	skill := makeSkill(t, dir)
	s, err := transporttest.Start(transporttest.Options{MaxSessions: 2, Accounts: []transporttest.Account{
		{Name: "user"}, {Name: "locked", OnlyKeys: true}, {Name: "sftponly", NoExec: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct {
		name, target        string
		faults              transporttest.Faults
		exit                int
		want                string
		connections, logins int
	}{
		{"published", "user", transporttest.Faults{}, 0, `"outcome":"published"`, 1, 1},
		{"present", "user", transporttest.Faults{}, 0, `"outcome":"present"`, 1, 1},
		{"by SFTP", "sftponly", transporttest.Faults{}, 0, `"outcome":"published"`, 1, 1},
		{"refused", "locked", transporttest.Faults{}, 4, `"code":"authentication"`, 1, 1},
		{"dropped once", "user", transporttest.Faults{Drop: 1, DropWords: "Exceeded MaxStartups\r\n"}, 0, `"outcome":"present"`, 2, 1},
		{"shut out", "user", transporttest.Faults{Drop: 9, DropWords: "Not allowed at this time\r\n"}, 1, `"code":"connection-lost"`, 1, 0},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			s.SetFaults(c.faults)
			connections, logins := s.Connections(), s.Logins()
			cmd := exec.Command(exe, "--json", "-F", s.ConfigFile(), "push", c.target, skill)
			cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run()
			if cmd.ProcessState.ExitCode() != c.exit || !strings.Contains(out.String(), c.want) {
				t.Errorf("exit %d, %s%s", cmd.ProcessState.ExitCode(), &out, &errs)
			}
			if n, l := s.Connections()-connections, s.Logins()-logins; n != c.connections || l != c.logins {
				t.Errorf("%d connections and %d logins, want %d and %d", n, l, c.connections, c.logins)
			}
		})
	}
}
