// Package ask asks the person who runs this process: on the terminal, or through the program that
// SSH_ASKPASS names, by the rules of ssh.
package ask

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
)

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 4 << 10

// ErrUnanswered is a question that the person, or the program, did not answer.
var ErrUnanswered = errors.New("no answer was given")

// Question is one question to a person.
type Question struct {
	Text    string // what is asked; it may have several lines
	Secret  bool   // the answer must not be shown while it is typed
	Confirm bool   // the answer is "yes" or "no"
}

// Person is somebody to ask. Its methods may be called from several goroutines: questions are put
// one after another.
type Person struct {
	program string        // of SSH_ASKPASS, or "" for the terminal
	turn    chan struct{} // one token: whose question is on the screen
}

// New finds out who there is to ask: the terminal of this process or the program of SSH_ASKPASS, as
// SSH_ASKPASS_REQUIRE, DISPLAY and WAYLAND_DISPLAY decide for ssh. It returns nil when there is nobody.
func New(getenv func(string) string) *Person {
	return newPerson(getenv, hasTerminal)
}

func newPerson(getenv func(string) string, hasTerminal func() bool) *Person {
	p := &Person{turn: make(chan struct{}, 1)}
	screen := getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	program := getenv("SSH_ASKPASS")
	switch strings.ToLower(getenv("SSH_ASKPASS_REQUIRE")) {
	case "never":
		program = ""
	case "force":
		if program != "" {
			p.program = program
			return p
		}
	case "prefer":
		if program != "" && screen {
			p.program = program
			return p
		}
	}
	switch {
	case hasTerminal():
		return p
	case program != "" && screen:
		p.program = program
		return p
	}
	return nil
}

// Ask puts q to the person and returns the answer, without its newline. It waits for questions before
// it, and ends when ctx does. The error is ErrUnanswered when there was no answer.
func (p *Person) Ask(ctx context.Context, q Question) (string, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return "", proc.Ended(ctx)
	}
	if ctx.Err() != nil {
		return "", proc.Ended(ctx)
	}
	q.Text = shown(q.Text)
	if p.program != "" {
		return p.run(ctx, q)
	}
	return onTerminal(ctx, q)
}

// shown quotes a question line by line.
func shown(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = display.Quote(l)
	}
	return strings.Join(lines, "\n")
}

// run asks through the program: the question is its argument, and the first line that it prints the
// answer. Exit status 0 alone means that there is one.
func (p *Person) run(ctx context.Context, q Question) (string, error) {
	cmd := exec.CommandContext(ctx, p.program, q.Text)
	defer proc.EndGroup(cmd)
	cmd.Env = os.Environ()
	if q.Confirm {
		cmd.Env = append(cmd.Env, "SSH_ASKPASS_PROMPT=confirm")
	}
	out, err := proc.Output(ctx, cmd, maxAnswer)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", proc.Ended(ctx)
	case errors.As(err, &exit) && q.Confirm:
		return "no", nil
	case errors.As(err, &exit):
		return "", fmt.Errorf("%w: %w", ErrUnanswered, err)
	case err != nil:
		return "", fmt.Errorf("SSH_ASKPASS: %w", err)
	}
	answer, _, _ := strings.Cut(string(out), "\n")
	answer = strings.TrimSuffix(answer, "\r")
	if q.Confirm {
		// A window with two buttons answers by its exit status alone.
		return yesOrNo(answer == "" || isYes(answer)), nil
	}
	return answer, nil
}

// converse asks until the answer fits the question. read asks once.
func converse(q Question, read func(text string) (string, error)) (string, error) {
	if !q.Confirm {
		return read(q.Text)
	}
	text := strings.TrimRight(q.Text, " ") + " (yes/no) "
	for range 3 {
		answer, err := read(text)
		if err != nil {
			return "", err
		}
		if isYes(answer) || isNo(answer) {
			return yesOrNo(isYes(answer)), nil
		}
		text = "Please type yes or no: "
	}
	return "no", nil
}

func isYes(s string) bool { return strings.EqualFold(strings.TrimSpace(s), "yes") }
func isNo(s string) bool  { return strings.EqualFold(strings.TrimSpace(s), "no") }

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
