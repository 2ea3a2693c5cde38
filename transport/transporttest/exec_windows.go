package transporttest

import (
	"os"
	"os/exec"
)

// shell prepares a POSIX shell, which Windows has only if somebody installed one: without, the
// command fails to start and the session says so.
func shell(line string) *exec.Cmd { return exec.Command("sh", "-c", line) }

func program(argv []string) *exec.Cmd { return exec.Command(argv[0], argv[1:]...) }

// signal does nothing: there are no signals.
func (p *process) signal(string) {}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.p != nil {
		_ = p.p.Kill()
	}
}

func signalOf(*os.ProcessState) string { return "" }
