package ask

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/punnet/punnet/internal/testenv"
)

func TestWhoIsAskedIsDecidedAsSSHDoes(t *testing.T) {
	const program, screen = "SSH_ASKPASS", "DISPLAY"
	for name, c := range map[string]struct {
		env      map[string]string
		terminal bool
		want     string // "terminal", "program" or ""
	}{
		"nobody":                         {nil, false, ""},
		"a terminal":                     {nil, true, "terminal"},
		"a terminal before a program":    {map[string]string{program: "p", screen: ":0"}, true, "terminal"},
		"a program, on a screen":         {map[string]string{program: "p", screen: ":0"}, false, "program"},
		"a program, on Wayland":          {map[string]string{program: "p", "WAYLAND_DISPLAY": "w"}, false, "program"},
		"a program without a screen":     {map[string]string{program: "p"}, false, ""},
		"a screen without a program":     {map[string]string{screen: ":0"}, false, ""},
		"prefer":                         {map[string]string{program: "p", screen: ":0", "SSH_ASKPASS_REQUIRE": "prefer"}, true, "program"},
		"prefer, without a screen":       {map[string]string{program: "p", "SSH_ASKPASS_REQUIRE": "prefer"}, true, "terminal"},
		"force":                          {map[string]string{program: "p", "SSH_ASKPASS_REQUIRE": "force"}, true, "program"},
		"force, without a program":       {map[string]string{"SSH_ASKPASS_REQUIRE": "force"}, true, "terminal"},
		"never":                          {map[string]string{program: "p", screen: ":0", "SSH_ASKPASS_REQUIRE": "never"}, false, ""},
		"never, on a terminal":           {map[string]string{program: "p", screen: ":0", "SSH_ASKPASS_REQUIRE": "never"}, true, "terminal"},
		"a word that ssh does not know":  {map[string]string{program: "p", "SSH_ASKPASS_REQUIRE": "maybe"}, true, "terminal"},
		"words in any case, as ssh's do": {map[string]string{program: "p", "SSH_ASKPASS_REQUIRE": "FORCE"}, false, "program"},
	} {
		p := newPerson(func(k string) string { return c.env[k] }, func() bool { return c.terminal })
		got := ""
		if p != nil && p.program != "" {
			got = "program"
		} else if p != nil {
			got = "terminal"
		}
		if got != c.want {
			t.Errorf("%s: asked %q, want %q", name, got, c.want)
		}
	}
}

// program writes a program that asks.
func program(t *testing.T, script string) *Person {
	t.Helper()
	if runtime.GOOS == "windows" {
		testenv.Missing(t, "/bin/sh")
	}
	file := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &Person{program: file, turn: make(chan struct{}, 1)}
}

func TestTheProgramsFirstLineIsTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		q      Question
		want   string
		none   bool
	}{
		"the first line":       {script: `printf 'one\r\ntwo\n'`, want: "one"},
		"no newline":           {script: `printf one`, want: "one"},
		"an empty line":        {script: `echo`, want: ""},
		"the question":         {script: `echo "$#$1"`, q: Question{Text: "what? "}, want: "1what? "},
		"a quoted question":    {script: `echo "$1"`, q: Question{Text: "a\x1b[2J"}, want: `a\u{1b}[2J`},
		"a status of not done": {script: `echo hunter2; exit 1`, none: true},
		"the kind of question": {script: `echo "${SSH_ASKPASS_PROMPT-none}"`, want: "none"},
		"yes by a word":        {script: `[ "$SSH_ASKPASS_PROMPT" = confirm ] && echo Yes`, q: Question{Confirm: true}, want: "yes"},
		"yes by a button":      {script: `exit 0`, q: Question{Confirm: true}, want: "yes"},
		"no by a button":       {script: `exit 1`, q: Question{Confirm: true}, want: "no"},
		"no by a word":         {script: `echo secret`, q: Question{Confirm: true}, want: "no"},
		"too much":             {script: `head -c 9000 /dev/zero`, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := program(t, c.script).Ask(t.Context(), c.q)
			if (err != nil) != c.none || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
			if name == "a status of not done" && (!errors.Is(err, ErrUnanswered) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("got %v", err)
			}
		})
	}
	missing := &Person{program: "/nonexistent/ask", turn: make(chan struct{}, 1)}
	if _, err := missing.Ask(t.Context(), Question{}); err == nil || !strings.Contains(err.Error(), "SSH_ASKPASS") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestTheEndOfTheContextEndsTheProgramAndWhatItStarted(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "late")
	p := program(t, "(sleep 2; touch "+mark+") & sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := p.Ask(ctx, Question{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	// One that ends by itself leaves nothing behind either.
	if got, err := program(t, "(sleep 2; touch "+mark+") >/dev/null 2>&1 & echo x").Ask(t.Context(), Question{}); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := os.Stat(mark); err == nil {
		t.Error("what the program had started outlived it")
	}
}

func TestQuestionsComeOneAfterAnother(t *testing.T) {
	dir := t.TempDir()
	p := program(t, "mkdir "+dir+"/busy || exit 1\nsleep 0.05\nrmdir "+dir+"/busy\necho done")
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := p.Ask(t.Context(), Question{}); err != nil {
				t.Errorf("two at once: %v", err)
			}
		})
	}
	wg.Wait()
	p.turn <- struct{}{} // somebody does not answer
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Ask(ctx, Question{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a turn: %v", err)
	}
}

func TestAYesOrNoIsAskedUntilItIsOne(t *testing.T) {
	for name, c := range map[string]struct {
		typed []string
		want  string
	}{
		"yes": {[]string{"yes"}, "yes"}, "no": {[]string{"No "}, "no"}, "at last": {[]string{"", "y", "YES"}, "yes"},
		"never": {[]string{"a", "b", "c"}, "no"},
	} {
		left := c.typed
		got, err := converse(Question{Text: "Sure? ", Confirm: true}, func(string) (string, error) {
			answer := left[0]
			left = left[1:]
			return answer, nil
		})
		if err != nil || got != c.want || len(left) > 0 {
			t.Errorf("%s: %q, %v, not read: %q", name, got, err, left)
		}
	}
}
