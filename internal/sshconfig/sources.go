package sshconfig

import (
	"bytes"
	"slices"
	"strings"

	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/internal/proc"
)

// maxSources bounds how many sources are told; a configuration has a handful.
const maxSources = 64

// sources collects what decided, each once, fit to be shown.
type sources struct{ list []string }

func (s *sources) add(text string) {
	text = display.Said(text)
	if len(s.list) < maxSources && !slices.Contains(s.list, text) {
		s.list = append(s.list, text)
	}
}

// block adds a Host or Match block that applies.
func (s *sources) block(file, line, what string) { s.add(file + ":" + line + ": " + what) }

// sources tells what of q decides: by name, for a value may be a secret.
func (q Query) sources() []string {
	var s sources
	for _, option := range q.Options {
		if key, _, err := keyword(option); err == nil {
			s.add("command line: " + key)
		}
	}
	return s.list
}

// maxDiaryLine bounds a line of the diary, in bytes; what is longer is cut.
const maxDiaryLine = 4096

// diary reads what ssh -vvv writes to its standard error: which files it reads, which blocks of them
// apply, and, apart from that, what it wants to say.
type diary struct {
	sources sources
	words   proc.FirstBytes // what is not for debugging
	openSSH bool            // it said that it is OpenSSH

	line     []byte
	match    string // the criteria being looked at
	file, at string // where they stand, if that is known
	last     string // the file that was included last

	// inert are the files included where nothing applies: ssh looks at their criteria all the same.
	inert map[string]bool
}

// Write takes some of the diary.
func (d *diary) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		d.line = append(d.line, part[:min(len(part), maxDiaryLine-len(d.line))]...)
		if i < 0 {
			return n, nil
		}
		d.end()
		p = p[i+1:]
	}
}

// end ends a line.
func (d *diary) end() {
	line := strings.TrimRight(string(d.line), "\r")
	d.line = d.line[:0]
	if level, text, ok := strings.Cut(line, ": "); ok && len(level) == len("debug1") && strings.HasPrefix(level, "debug") {
		d.note(text)
		return
	}
	if strings.HasPrefix(line, "OpenSSH_") {
		d.openSSH = true
		return
	}
	if line != "" {
		_, _ = d.words.Write([]byte(line + "\n"))
	}
}

// note reads one line of debugging.
func (d *diary) note(text string) {
	if file, ok := strings.CutPrefix(text, "Reading configuration data "); ok {
		d.sources.add(file)
		return
	}
	if criteria, ok := strings.CutPrefix(text, "checking match for '"); ok {
		if i := strings.LastIndex(criteria, "' host "); i >= 0 {
			criteria = criteria[:i]
		}
		d.match, d.file, d.at = criteria, "", ""
		return
	}
	if text == "match found" {
		switch {
		case d.inert[firstOf(d.file, d.last)]:
		case d.file != "":
			d.sources.block(d.file, d.at, "Match "+d.match)
		default:
			d.sources.add("Match " + d.match) // ssh does not say where a lone "all" stands
		}
		return
	}
	file, rest, ok := strings.Cut(text, " line ")
	line, what, ok2 := strings.Cut(rest, ": ")
	if !ok || !ok2 || line == "" || strings.Trim(line, "0123456789") != "" {
		return
	}
	if host, ok := strings.CutPrefix(what, "Applying options for "); ok {
		d.sources.block(file, line, "Host "+host)
	} else if strings.HasPrefix(what, "matched '") {
		d.file, d.at = file, line
	} else if name, ok := strings.CutPrefix(what, "Including file "); ok {
		d.include(name)
	}
}

// include notes which file is included, and whether for more than its grammar.
func (d *diary) include(what string) {
	i := strings.LastIndex(what, " depth ")
	if i < 0 {
		return
	}
	d.last = what[:i]
	if d.inert == nil || len(d.inert) > maxFiles {
		d.inert = make(map[string]bool)
	}
	d.inert[d.last] = strings.HasSuffix(what, "(parse only)")
}
