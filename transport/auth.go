package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/fault"
	"github.com/punnet/punnet/internal/sshconfig"
)

// The methods of RFC 4252 that this package speaks. gssapi-with-mic and hostbased are for the
// system's ssh.
const (
	methodPublickey   = "publickey"
	methodInteractive = "keyboard-interactive"
	methodPassword    = "password"
)

// maxSteps is how many steps of a login a server may take one after the other and want another.
const maxSteps = 8

// login gets one account of one machine open. It picks one method after the other, each key a method
// of its own, from what the server would take, so that what fails on our side, a refusing agent or a
// forgotten passphrase, leads to the next.
type login struct {
	s    *sshconfig.Settings
	ask  *asker
	keys *keyring

	ctx  context.Context // ends with the caller's, and when the connection is lost
	lost context.CancelCauseFunc

	queue   []*candidate // keys not offered since the last step that the server took
	opened  []*candidate // keys that were such a step
	read    bool         // the keys were looked for
	current *candidate   // the key on offer, or nil
	method  string       // the method under way

	allowed  []string // methods that the server would take now
	passed   []string // steps that it took
	attempts map[string]int
	ended    map[string]error // methods that lead no further, and why
	tried    []string
}

// newLogin starts to talk to the agent, so that its answer is there when the server asks.
func newLogin(ctx context.Context, s *sshconfig.Settings, o Options, clock *handshakeClock) *login {
	ctx, lost := context.WithCancelCause(ctx)
	ask := newAsker(ctx, s, o, clock)
	return &login{
		s: s, ask: ask, ctx: ctx, lost: lost,
		keys:     &keyring{s: s, ask: ask, log: o.logger(), agent: askAgent(ctx, s.IdentityAgent, clock)},
		attempts: make(map[string]int), ended: make(map[string]error),
	}
}

// close ends what the login needed: a question that waits, and the connection to the agent.
func (l *login) close() {
	l.lost(nil)
	l.keys.agent.close()
}

// watch returns conn, whose end ends the questions of the login.
func (l *login) watch(conn net.Conn) net.Conn { return &watchedConn{conn, l.lost} }

// watchedConn tells when nothing can be read from it any more.
type watchedConn struct {
	net.Conn
	lost context.CancelCauseFunc
}

func (w *watchedConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if err != nil {
		w.lost(err)
	}
	return n, err
}

// next picks the next method, as ssh.ClientConfig.AuthCallback. Returning none ends the login.
func (l *login) next(c *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	l.settle(c)
	if l.ctx.Err() != nil {
		return nil, context.Cause(l.ctx)
	}
	if len(l.passed) > maxSteps {
		return nil, fmt.Errorf("the server took %d steps and wants more", maxSteps)
	}
	for _, m := range l.order() {
		if !slices.Contains(l.allowed, m) || l.ended[m] != nil {
			continue
		}
		var method ssh.AuthMethod
		switch m {
		case methodPublickey:
			method = l.publickey()
		case methodInteractive:
			method = l.interactive()
		case methodPassword:
			method = l.password()
		}
		if method != nil {
			l.method = m
			l.attempts[m]++
			return method, nil
		}
	}
	return nil, nil
}

// settle notes what became of the method before.
func (l *login) settle(c *ssh.ClientAuthContext) {
	l.allowed = c.AllowedMethods
	if l.current != nil && l.current.failed != nil {
		l.keys.skip(l.current.name, l.current.failed)
	}
	if len(c.PartialSuccessMethods) > len(l.passed) {
		// What did not fit before may fit the next step; the key that did fit will not do twice.
		if l.current != nil {
			l.opened = append(l.opened, l.current)
		}
		l.passed = append(l.passed, l.how())
		l.read = false
		clear(l.attempts)
		clear(l.ended)
	}
	l.current = nil
}

// order is the methods that the configuration allows, in its order.
func (l *login) order() []string {
	preferred := l.s.PreferredAuth
	if len(preferred) == 0 {
		preferred = []string{methodPublickey, methodInteractive, methodPassword}
	}
	may := map[string]bool{
		methodPublickey:   l.s.PubkeyAuth,
		methodInteractive: l.s.InteractiveAuth && l.ask.can(),
		methodPassword:    l.s.PasswordAuth && l.ask.can(),
	}
	var order []string
	for _, m := range preferred {
		if may[m] && !slices.Contains(order, m) {
			order = append(order, m)
		}
	}
	return order
}

// publickey offers the next key, or nil when all have been offered.
func (l *login) publickey() ssh.AuthMethod {
	if !l.read {
		l.read = true
		l.queue = slices.DeleteFunc(l.keys.candidates(), func(c *candidate) bool {
			return slices.ContainsFunc(l.opened, c.same)
		})
	}
	for len(l.queue) > 0 {
		c := l.queue[0]
		l.queue = l.queue[1:]
		if c.reveal != nil {
			if err := c.reveal(); err != nil {
				l.keys.skip(c.name, err)
				continue
			}
			if err := l.keys.admit(c); err != nil {
				l.keys.skip(c.name, err)
				continue
			}
		}
		l.current = c
		l.note(c.String())
		return ssh.PublicKeys(c)
	}
	return nil
}

// password asks for the account's password, as often as the configuration allows.
func (l *login) password() ssh.AuthMethod {
	if l.attempts[methodPassword] >= max(1, l.s.PasswordPrompts) {
		return nil
	}
	again := l.attempts[methodPassword] > 0
	l.note(methodPassword)
	return ssh.PasswordCallback(func() (string, error) {
		answer, err := l.ask.password(again)
		l.end(methodPassword, err)
		return answer, err
	})
}

// interactive answers what the server asks, as often as the configuration allows. Every question
// goes to the person: what was answered before is not known here any more.
func (l *login) interactive() ssh.AuthMethod {
	if l.attempts[methodInteractive] >= max(1, l.s.PasswordPrompts) {
		return nil
	}
	l.note(methodInteractive)
	rounds := 0
	l.end(methodInteractive, errNoQuestion)
	return ssh.KeyboardInteractive(func(name, instruction string, questions []string, echos []bool) ([]string, error) {
		if rounds++; rounds == 1 {
			delete(l.ended, methodInteractive)
		}
		if rounds > maxRoundsAsked {
			err := fmt.Errorf("the server asked %d times and did not decide", maxRoundsAsked)
			l.end(methodInteractive, err)
			return nil, err
		}
		answers, err := l.ask.round(name, instruction, questions, echos)
		l.end(methodInteractive, err)
		return answers, err
	})
}

// errNoQuestion is a server that offers to ask and does not.
var errNoQuestion = errors.New("the server asked nothing")

// end keeps a method that failed on our side from being used again.
func (l *login) end(method string, err error) {
	if err != nil {
		l.ended[method] = err
	}
}

// note remembers what was tried.
func (l *login) note(what string) {
	if !slices.Contains(l.tried, what) {
		l.tried = append(l.tried, what)
	}
}

// how says what opened the account.
func (l *login) how() string {
	switch {
	case l.method == "":
		return "no authentication was asked for"
	case l.current != nil:
		return "key " + display.Quote(l.current.String())
	}
	return l.method
}

// failure makes an *AuthError of a handshake that ended in authentication.
func (l *login) failure(err error) *AuthError {
	if l.current != nil && l.current.failed != nil {
		l.keys.skip(l.current.name, l.current.failed)
	}
	for _, m := range []string{methodInteractive, methodPassword} {
		if end := l.ended[m]; end != nil {
			l.keys.skipped = append(l.keys.skipped, m+": "+display.Said(end.Error()))
		}
	}
	said := display.Said(err.Error())
	if len(l.passed) > 0 {
		said = "after it had accepted " + display.Said(strings.Join(l.passed, ", ")) + ": " + said
	}
	return &AuthError{
		User: l.s.User, Host: l.s.Alias, Tried: l.tried, Skipped: l.keys.skipped, Methods: l.takes(), Advice: l.advice(err),
		Err: fault.Both(errors.New(said), errors.Join(append([]error{err}, l.keys.errs...)...)),
	}
}

// takes is the methods that the server would take, fit to be shown.
func (l *login) takes() []string {
	var names []string
	for _, m := range l.allowed[:min(len(l.allowed), 16)] {
		names = append(names, display.Said(m))
	}
	return names
}

// adding is the command that has the agent hold a key, and what else it takes that the agent is used.
func (l *login) adding(file string) string {
	add := "ssh-add " + file
	if l.s.IdentityAgent != "" {
		return l.withAgent(add)
	}
	if os.Getenv("SSH_AUTH_SOCK") != "" {
		return add + ", and use the agent, with: -o IdentityAgent=SSH_AUTH_SOCK"
	}
	return `eval "$(ssh-agent)"; ` + add
}

// withAgent is a command that speaks to the agent of the configuration.
func (l *login) withAgent(command string) string {
	if agent := l.s.IdentityAgent; runtime.GOOS != "windows" && agent != os.Getenv("SSH_AUTH_SOCK") {
		return "SSH_AUTH_SOCK=" + word(agent) + " " + command
	}
	return command
}

// advice says what would open the account.
func (l *login) advice(err error) string {
	takes := func(m string) bool { return slices.Contains(l.allowed, m) }
	asks := takes(methodPassword) && l.s.PasswordAuth || takes(methodInteractive) && l.s.InteractiveAuth
	keys := len(l.keys.offered(l.tried))
	switch {
	case strings.Contains(strings.ToLower(err.Error()), "too many authentication "):
		return fmt.Sprintf("the server had enough after %d of the keys; name the right one with IdentityFile and set "+
			"IdentitiesOnly yes, or: -i FILE -o IdentitiesOnly=yes", keys)
	case len(l.keys.locked) > 0:
		return "unlock the key for this session with: " + l.adding(word(l.keys.locked[0]))
	case len(l.keys.unsigned) > 0:
		return "the agent holds " + l.keys.unsigned[0] + " and would not sign with it; a key that is limited to some machines " +
			"(ssh-add -h) works with --transport system"
	case len(l.keys.hardware) > 0 && takes(methodPublickey):
		return "use --transport system, or let the agent use the security key, with: " + l.adding(word(l.keys.hardware[0]))
	case strings.Contains(err.Error(), "no common public key signature algorithm"):
		return "the server knows no newer signatures of RSA keys; allow the old ones with -o PubkeyAcceptedAlgorithms=+ssh-rsa, or use another key"
	case asks && !l.ask.can() && (keys == 0 || !takes(methodPublickey)):
		return l.ask.advice()
	case asks && (keys == 0 || !takes(methodPublickey)):
		return "what was answered did not open the account; check the answers and the account's name"
	case !asks && !takes(methodPublickey) && len(l.allowed) > 0:
		return "the server takes only " + strings.Join(l.takes(), ", ") + "; if ssh gets in so, use --transport system"
	case keys == 0 && takes(methodPublickey) && l.keys.agent.silent():
		return "name a key with -i FILE, or see why the agent does not answer with: " + l.withAgent("ssh-add -l")
	case keys == 0 && takes(methodPublickey):
		return "name a key with -i FILE, or add one to the agent with: " + l.adding("FILE")
	case len(l.passed) > 0:
		return "the server wants more than one key; name the others with IdentityFile"
	case keys == 0:
		return "check the account's name"
	}
	return "check that one of these keys is in the account's ~/.ssh/authorized_keys, or name another with -i FILE"
}
