package transport

import (
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/sshconfig"
)

// sessionEnv returns the variables that SendEnv and SetEnv want in each session, NAME=value each.
// environ is this process's environment. As with ssh, what is set comes last, and so wins.
func sessionEnv(s *sshconfig.Settings, environ []string) []string {
	var env []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		for _, pattern := range s.SendEnv {
			if name != "" && sshconfig.Matches(name, pattern) {
				env = append(env, kv)
				break
			}
		}
	}
	return append(env, s.SetEnv...)
}

// sendEnv asks for the connection's variables in a session. No answer is asked for: a server takes
// what its AcceptEnv lets it take.
func (c *sshConn) sendEnv(ch ssh.Channel) {
	for _, kv := range c.env {
		name, value, _ := strings.Cut(kv, "=")
		_, _ = ch.SendRequest("env", false, ssh.Marshal(struct{ Name, Value string }{name, value}))
	}
}
