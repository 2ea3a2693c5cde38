package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sshconfig"
)

// byPassword lets in whoever knows the word.
func byPassword(word string) func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
		if string(password) != word {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}
}

// byCode asks one round of questions and lets in whoever gives these answers.
func byCode(questions []string, echos []bool, want ...string) func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		answers, err := ask("", "", questions, echos)
		if err != nil || !slices.Equal(answers, want) {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}
}

func byKey(key ssh.PublicKey) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if !sameKey(k, key) {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}
}

func TestReport18Zed28601AKeyAndThenAQuestion(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "")
	duo := func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		if _, err := ask("", "Welcome", nil, nil); err != nil { // nothing to answer
			return nil, err
		}
		answers, err := ask("Duo", "Two steps\n\n 1. Push\x1b[2J", []string{"Passcode or option (1-1): "}, []bool{true})
		if err != nil || answers[0] != "1" {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if _, err := byKey(pub)(c, k); err != nil {
			return nil, err
		}
		return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{KeyboardInteractiveCallback: duo}}
	}})
	who := &person{answers: []string{"1"}}
	o := s.options(t, "IdentityFile "+dir+"/k")
	o.Ask = who.ask
	var steps []Step
	o.Trace = func(s Step) { steps = append(steps, s) }
	dial(t, "host", o)
	want := "(user@host) Duo\n(user@host) Two steps\n(user@host)  1. Push\\u{1b}[2J\n(user@host) Passcode or option (1-1): "
	if len(who.asked) != 1 || who.asked[0] != (Prompt{Text: want}) {
		t.Errorf("asked %+v", who.asked)
	}
	login := slices.IndexFunc(steps, func(s Step) bool { return s.Name == StepLogin })
	if login < 0 || !strings.Contains(steps[login].Value, "keyboard-interactive") {
		t.Errorf("steps %+v", steps)
	}
	// Nobody to ask: what is missing is said.
	o.Ask = nil
	err := refusedLogin(t, o)
	if !slices.Equal(err.Methods, []string{methodInteractive}) || !strings.Contains(err.Error(), "after it had accepted key "+dir+"/k") || !strings.Contains(Hint(err), "SSH_ASKPASS") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

func TestAWrongPasswordIsAskedForAgainOnTheSameConnection(t *testing.T) {
	noLeaks(t)
	s := startLogin(t, &ssh.ServerConfig{PasswordCallback: byPassword("third")})
	who := &person{answers: []string{"first", "second", "third"}}
	o := s.options(t)
	o.Ask = who.ask
	dial(t, "host", o)
	if len(who.asked) != 3 || s.connections() != 1 || who.asked[0] != (Prompt{Text: "user@host's password: ", Secret: true}) {
		t.Errorf("asked %+v on %d connections", who.asked, s.connections())
	}
	o = s.options(t, "NumberOfPasswordPrompts 2")
	who.asked = nil
	o.Ask = who.ask
	if err := refusedLogin(t, o); len(who.asked) != 2 || !strings.Contains(Hint(err), "check the answers") || s.connections() != 2 || !slices.Equal(err.Tried, []string{methodPassword}) {
		t.Errorf("%v; asked %d times, %d connections", err, len(who.asked), s.connections())
	}
}

func TestAQuestionThatIsNotAnsweredIsNotPutAgain(t *testing.T) {
	s := startLogin(t, &ssh.ServerConfig{PasswordCallback: byPassword("x"), KeyboardInteractiveCallback: byCode([]string{"Code: "}, []bool{false}, "x")})
	o := s.options(t)
	asked := 0
	o.Ask = func(context.Context, Prompt) (string, error) {
		asked++
		return "", errors.New("not now")
	}
	if err := refusedLogin(t, o); asked != 2 || !strings.Contains(err.Error(), "not now") {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestTheConfigurationsMethodsAloneAreUsedAndInItsOrder(t *testing.T) {
	dir := tempDir(t)
	keyFile(t, dir+"/k", "")
	s := startLogin(t, &ssh.ServerConfig{
		MaxAuthTries: 20, PasswordCallback: byPassword("x"), PublicKeyCallback: byKey(nopub(t)),
		KeyboardInteractiveCallback: byCode([]string{"Code: "}, []bool{false}, "x"),
	})
	for _, c := range []struct {
		lines  string
		nobody bool
		want   string
	}{
		{"", false, "publickey keyboard-interactive password"},
		{"PreferredAuthentications password,publickey", false, "password publickey"},
		{"PreferredAuthentications gssapi-with-mic,hostbased,keyboard-interactive", false, "keyboard-interactive"},
		{"PasswordAuthentication no", false, "publickey keyboard-interactive"},
		{"KbdInteractiveAuthentication no", false, "publickey password"},
		{"PubkeyAuthentication no", false, "keyboard-interactive password"},
		{"BatchMode yes", false, "publickey"},
		{"", true, "publickey"},
	} {
		o := s.options(t, "NumberOfPasswordPrompts 1", "IdentityFile "+dir+"/k", c.lines)
		who := &person{answers: []string{"wrong"}}
		if !c.nobody {
			o.Ask = who.ask
		}
		err := refusedLogin(t, o)
		if got := strings.TrimPrefix(s.methods(), "none "); got != c.want {
			t.Errorf("%s: tried %q, want %q", c.lines, got, c.want)
		}
		if len(err.Methods) != 3 {
			t.Errorf("%s: the server takes %q", c.lines, err.Methods)
		}
	}
	o := s.options(t, "BatchMode yes", "PubkeyAuthentication no")
	o.Ask = func(context.Context, Prompt) (string, error) { t.Error("asked"); return "", nil }
	if err := refusedLogin(t, o); !strings.Contains(Hint(err), "BatchMode") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

func nopub(t testing.TB) ssh.PublicKey {
	_, pub := keyFile(t, tempDir(t)+"/k", "")
	return pub
}

func TestAnAnswerIsNeverUsedTwice(t *testing.T) {
	noLeaks(t)
	var got []string
	// Each server wants two rounds, refuses them once, and is on the way to the next.
	codes := func() func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		tries := 0
		return func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for range 2 {
				answers, err := ask("", "", []string{"Code: ", "PIN: "}, []bool{false, false})
				if err != nil {
					return nil, err
				}
				got = append(got, answers...)
			}
			if tries++; tries == 1 {
				return nil, errors.New("once more")
			}
			return nil, nil
		}
	}
	near := startLogin(t, &ssh.ServerConfig{KeyboardInteractiveCallback: codes()})
	far := startLogin(t, &ssh.ServerConfig{KeyboardInteractiveCallback: codes()})
	o := far.options(t, "ProxyJump near")
	more := Options{ConfigFile: o.ConfigFile, home: o.home}
	write(t, more.ConfigFile, far.host("host", "ProxyJump near")+near.host("near"))
	n := 0
	more.Ask = func(context.Context, Prompt) (string, error) {
		n++
		return fmt.Sprint("code ", n), nil
	}
	c := dial(t, "host", more)
	c.Close()
	if len(got) != 16 || n != 16 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 16 {
		t.Errorf("%d questions, answers %q", n, got)
	}
}

func TestAServerThatAsksNothingIsNotAskedAgain(t *testing.T) {
	s := startLogin(t, &ssh.ServerConfig{KeyboardInteractiveCallback: func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		return nil, errors.New("no")
	}})
	o := s.options(t)
	o.Ask = (&person{answers: []string{""}}).ask
	if err := refusedLogin(t, o); s.methods() != "none keyboard-interactive" {
		t.Errorf("got %v", err)
	}
}

// TestAServerCannotAskWithoutEnd has servers that never decide, and a program that answers at once.
func TestAServerCannotAskWithoutEnd(t *testing.T) {
	var again func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error)
	again = func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) {
		return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{PasswordCallback: again}}
	}
	for name, c := range map[string]struct {
		cfg ssh.ServerConfig
		max int
	}{
		"rounds": {ssh.ServerConfig{KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for {
				if _, err := ask("", "", []string{"Code: "}, []bool{false}); err != nil {
					return nil, err
				}
			}
		}}, maxRoundsAsked},
		"steps": {ssh.ServerConfig{PasswordCallback: again}, maxSteps + 1},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			o := startLogin(t, &c.cfg).options(t)
			asked := 0
			o.Ask = func(context.Context, Prompt) (string, error) {
				if asked++; asked > 1000 {
					t.Error("asked without end")
					return "", errors.New("enough")
				}
				return "x", nil
			}
			within(t, 30*time.Second, func() {
				if err := refusedLogin(t, o); asked != c.max {
					t.Errorf("asked %d times: %v", asked, err)
				}
			})
		})
	}
}

func TestAServersWordsCannotPassForOurs(t *testing.T) {
	a := &asker{s: &sshconfig.Settings{User: "me", Alias: "dev"}}
	for in, want := range map[string]string{
		"":         "",
		"\r\n \n":  "",
		"a\nb\r\n": "(me@dev) a\n(me@dev) b\n",
		"\x1b[1A\x1b[2KEnter passphrase for key 'id': ": "(me@dev) \\u{1b}[1A\\u{1b}[2KEnter passphrase for key 'id':\n",
	} {
		if got := a.said(in); got != want {
			t.Errorf("%q is shown as %q", in, got)
		}
	}
	if got := a.said(strings.Repeat("x\n", 1<<20)); strings.Count(got, "\n") > maxSaidLines || len(got) > 2*maxSaidBytes {
		t.Errorf("%d bytes are shown", len(got))
	}
	if _, err := a.round("", "", make([]string, maxQuestions+1), nil); err == nil {
		t.Error("any number of questions is put")
	}
}

func TestAQuestionEndsWithTheContextAndWithTheConnection(t *testing.T) {
	noLeaks(t)
	s := startLogin(t, &ssh.ServerConfig{PasswordCallback: byPassword("x")})
	o := s.options(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Ask = func(ctx context.Context, _ Prompt) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}
	within(t, 10*time.Second, func() {
		if _, err := Dial(ctx, Target{Host: "host"}, o); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	o.Ask = func(ctx context.Context, _ Prompt) (string, error) {
		s.drop()
		<-ctx.Done()
		return "", ctx.Err()
	}
	within(t, 10*time.Second, func() {
		if _, err := Dial(t.Context(), Target{Host: "host"}, o); !errors.Is(err, ErrLost) || !strings.Contains(Hint(err), "LoginGraceTime") {
			t.Errorf("got %v", err)
		}
	})
}

func TestReport30Vcspull574ASlowPersonIsNoTimeout(t *testing.T) {
	noLeaks(t)
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "hunter2")
	s := startLogin(t, &ssh.ServerConfig{PublicKeyCallback: byKey(pub)})
	o := s.options(t, "IdentityFile "+dir+"/k")
	o.HandshakeTimeout = 400 * time.Millisecond
	o.Ask = func(context.Context, Prompt) (string, error) {
		time.Sleep(2 * o.HandshakeTimeout)
		return "hunter2", nil
	}
	dial(t, "host", o)
	o.Ask = func(ctx context.Context, p Prompt) (string, error) {
		time.Sleep(2 * o.HandshakeTimeout)
		return "", errors.New("away")
	}
	if err := refusedLogin(t, o); errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "away") || !strings.Contains(Hint(err), "ssh-add "+dir+"/k") {
		t.Errorf("%v; hint %q", err, Hint(err))
	}
}

func TestSecretsAreInNoLogAndNoError(t *testing.T) {
	dir := tempDir(t)
	_, pub := keyFile(t, dir+"/k", "pass-phrase-1")
	s := startLogin(t, &ssh.ServerConfig{
		MaxAuthTries: 30, PublicKeyCallback: byKey(pub), PasswordCallback: byPassword("x"),
		KeyboardInteractiveCallback: byCode([]string{"Code: "}, []bool{true}, "x"),
	})
	o := s.options(t, "IdentityFile "+dir+"/k")
	log := &logBuffer{}
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var steps strings.Builder
	o.Trace = func(s Step) { fmt.Fprintf(&steps, "%+v\n", s) }
	who := &person{answers: []string{"not-the-phrase-2", "not-the-phrase-3", "not-the-phrase-4", "one-time-5", "one-time-6", "one-time-7", "pass-word-8"}}
	o.Ask = who.ask
	_, err := Dial(t.Context(), Target{Host: "host"}, o)
	if !errors.Is(err, ErrAuth) || len(who.asked) != 9 {
		t.Fatalf("%v after %d questions", err, len(who.asked))
	}
	o.Ask = (&person{answers: []string{"pass-phrase-1"}}).ask
	c, ok := Dial(t.Context(), Target{Host: "host"}, o)
	if ok != nil {
		t.Fatal(ok)
	}
	c.Close()
	all := log.String() + steps.String() + fmt.Sprintf("%v %+v %#v", err, err, err) + Hint(err)
	for _, secret := range append(who.answers, "pass-phrase-1") {
		if strings.Contains(all, secret) {
			t.Errorf("%s is in %s", secret, all)
		}
	}
	if !strings.Contains(log.String(), "SHA256:") {
		t.Errorf("the log does not name the key: %s", log)
	}
}

func FuzzServersWords(f *testing.F) {
	f.Add("Duo\n\n 1. Push\r\nPasscode: ")
	f.Add("\x1b]0;title\x07\xff\u202e")
	f.Add(strings.Repeat("line\n", 100))
	a := &asker{s: &sshconfig.Settings{User: "me", Alias: "dev"}}
	f.Fuzz(func(t *testing.T, text string) {
		got := a.said(text)
		if n := strings.Count(got, "\n"); n > maxSaidLines || len(got) > maxSaidLines*16+8*maxSaidBytes {
			t.Fatalf("%q is shown in %d lines and %d bytes", text, n, len(got))
		}
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, "(me@dev) ") || display.Quote(strings.TrimSuffix(line, "\n"))+"\n" != line {
				t.Fatalf("%q is shown as %q", text, got)
			}
		}
	})
}
