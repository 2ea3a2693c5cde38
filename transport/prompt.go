package transport

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/sshconfig"
)

const (
	maxQuestions   = 16      // of one round of keyboard-interactive
	maxRoundsAsked = 32      // of one attempt at keyboard-interactive; a program may answer each at once
	maxSaidLines   = 24      // of a server's words around a question
	maxSaidBytes   = 4 << 10 // and bytes of them
	serverWaiting  = "the server may wait only a minute or two for an answer (LoginGraceTime)"
)

// Prompt is one question to a person.
type Prompt struct {
	Text    string // the question, fit to be shown; it may have several lines
	Secret  bool   // the answer must not be shown while it is typed
	Confirm bool   // the answer is "yes" or "no"
}

// asker asks a person what one login needs to know. The handshake's clock stands still meanwhile.
type asker struct {
	ctx   context.Context // ends a question that waits
	s     *sshconfig.Settings
	ask   func(context.Context, Prompt) (string, error) // nil where there is nobody
	clock *handshakeClock
	log   *slog.Logger
	asked bool // at least once
	told  bool // the server said something that is no question
}

func newAsker(ctx context.Context, s *sshconfig.Settings, o Options, clock *handshakeClock) *asker {
	return &asker{ctx: ctx, s: s, ask: o.Ask, clock: clock, log: o.logger()}
}

// can reports whether somebody may be asked.
func (a *asker) can() bool { return a.ask != nil && !a.s.BatchMode }

// advice says how there would be somebody to ask.
func (a *asker) advice() string {
	if a.s.BatchMode {
		return "the account is opened by an answer, and BatchMode forbids to ask; use a key, or -o BatchMode=no"
	}
	return "the account is opened by an answer, and there is nobody to ask; run it in a terminal, or name a program that asks " +
		"with SSH_ASKPASS and SSH_ASKPASS_REQUIRE=force"
}

func (a *asker) put(p Prompt) (string, error) {
	defer a.clock.pause()()
	a.asked = true
	answer, err := a.ask(a.ctx, p)
	if a.ctx.Err() != nil {
		return "", context.Cause(a.ctx)
	}
	if err != nil {
		return "", fmt.Errorf("not answered: %w", err)
	}
	return answer, nil
}

func (a *asker) passphrase(file string, again bool) (string, error) {
	text := fmt.Sprintf("Enter passphrase for key '%s': ", display.Said(file))
	if again {
		text = "That is not the passphrase.\n" + text
	}
	return a.put(Prompt{Text: text, Secret: true})
}

// account is what is asked about, as the user knows it.
func (a *asker) account() string { return display.Said(a.s.User + "@" + a.s.Alias) }

func (a *asker) password(again bool) (string, error) {
	text := a.account() + "'s password: "
	if again {
		text = "Permission denied.\n" + text
	}
	return a.put(Prompt{Text: text, Secret: true})
}

func (a *asker) confirm(text string) (bool, error) {
	answer, err := a.put(Prompt{Text: text, Confirm: true})
	return answer == "yes", err
}

// round answers one round of keyboard-interactive: each question is put to the person, the first
// below the server's name and instruction. A round without questions is only something to read.
func (a *asker) round(name, instruction string, questions []string, echos []bool) ([]string, error) {
	if len(questions) > maxQuestions {
		return nil, fmt.Errorf("the server asks %d questions at once", len(questions))
	}
	around := a.said(name) + a.said(instruction)
	if len(questions) == 0 {
		if around != "" && !a.told {
			a.told = true
			a.log.Info("the server says", "text", display.Said(name+" "+instruction))
		}
		return nil, nil
	}
	var answers []string
	for i, q := range questions {
		text := around + strings.TrimSuffix(a.said(q), "\n")
		if strings.TrimSpace(q) == "" {
			text = around + "(" + a.account() + ")"
		}
		answer, err := a.put(Prompt{Text: text + " ", Secret: !echos[i]})
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
		around = ""
	}
	return answers, nil
}

// said makes a server's words fit to be shown: line by line, each quoted and marked as the server's,
// so that none can pass for a question of ours.
func (a *asker) said(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if len(text) > maxSaidBytes {
		text = strings.ToValidUTF8(text[:maxSaidBytes], "") + "..."
	}
	var b strings.Builder
	lines := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" {
			continue
		}
		if lines++; lines > maxSaidLines {
			break
		}
		fmt.Fprintf(&b, "(%s) %s\n", a.account(), display.Quote(line))
	}
	return b.String()
}
