package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/discovery"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/skill"
)

// diagnostic is one thing that a skill's owner should know.
type diagnostic = discovery.Diagnostic

// diagnosticText returns the line, where it is known, and the message.
func diagnosticText(d diagnostic) string {
	if d.Line == 0 {
		return d.Message
	}
	return fmt.Sprintf("line %d: %s", d.Line, d.Message)
}

// scanDiagnostics returns findings of a scan as diagnostics.
func scanDiagnostics(src *bundle.Source, findings []bundle.Finding, severity skill.Severity) []diagnostic {
	var out []diagnostic
	for _, f := range findings {
		message := f.Detail
		if f.Outcome == bundle.LeftOut {
			message = "left out: " + message
		}
		out = append(out, diagnostic{
			Severity: severity, Code: string(f.Reason),
			Path: filepath.Join(src.Path, filepath.FromSlash(f.Path)), Message: message,
		})
	}
	return out
}

// ownerWarnings returns a report's warnings as diagnostics: what was left out for what it is, and
// what goes along that perhaps should not. What is left out by its name is never missed.
func ownerWarnings(src *bundle.Source, report *bundle.Report) []diagnostic {
	var missing []bundle.Finding
	for _, f := range report.LeftOut() {
		if f.Reason != bundle.LeftOutByName {
			missing = append(missing, f)
		}
	}
	out := scanDiagnostics(src, missing, skill.Warning)
	for _, w := range report.Warnings {
		out = append(out, diagnostic{
			Severity: skill.Warning, Code: w.Code,
			Path: filepath.Join(src.Path, filepath.FromSlash(w.Path)), Message: w.Message,
		})
	}
	return out
}

// warn prints warnings on standard error, unless they are unwanted or are part of the JSON.
func (a *app) warn(ds []diagnostic) {
	if a.quiet || a.json {
		return
	}
	for _, d := range ds {
		fmt.Fprintf(a.stderr, "%s %s: %s\n", a.paintSeverity(a.stderr, d.Severity), display.Quote(d.Path), diagnosticText(d))
	}
}

// paintSeverity returns the word that a diagnostic begins with on w.
func (a *app) paintSeverity(w io.Writer, s skill.Severity) string {
	color := yellow
	if s == skill.Error {
		color = red
	}
	return a.paint(w, color, s.String()+":")
}
