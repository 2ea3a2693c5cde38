package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/punnet/punnet/internal/display"
)

// output is standard output, and remembers that something did not get through: data that was lost
// is a failure, whatever else was done.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// The colors that severities and states are painted in: ANSI's own, which every theme sets.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colors text for w, where color is wanted there.
func (a *app) paint(w io.Writer, color, text string) string {
	if !a.colors(w) {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// colors says whether w gets color: --color says, and NO_COLOR (https://no-color.org), TERM=dumb
// and anything but a terminal mean no to auto.
func (a *app) colors(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	if out, ok := w.(*output); ok {
		w = out.w
	}
	f, ok := w.(*os.File)
	return ok && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// size writes a number of bytes for people, in binary units with one decimal.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n) / (1 << 10)
	for _, unit := range []string{"KiB", "MiB"} {
		if f < 1<<10 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		f /= 1 << 10
	}
	return fmt.Sprintf("%.1f GiB", f)
}

// plural returns "1 file" or "2 files".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// answer prints what a library call answered: data, which is encoded as an object, as JSON, else text, as
// it is for programs and without what a terminal would obey for people.
func (a *app) answer(data any, text string) error {
	if a.json {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(data); err != nil {
			return err
		}
		fields, ok := strings.CutPrefix(b.String(), "{")
		if !ok {
			return errors.New("the answer is no JSON object")
		}
		if !strings.HasPrefix(fields, "}") {
			fields = "," + fields
		}
		a.printJSON(json.RawMessage(fmt.Sprintf(`{"schemaVersion":%d%s`, schemaVersion, fields)))
		return nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if terminalWidth(a.stdout) > 0 {
		text = plainLines(text)
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

// plainLines returns text with its lines and tabs, and everything else in it fit for a terminal.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = display.Quote(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}
