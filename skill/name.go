package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// canonicalName returns the form under which names are compared and kept: without white space around
// it, in NFKC, as the standard's reference reader has it.
func canonicalName(s string) string {
	return norm.NFKC.String(strings.TrimSpace(s))
}

// checkName returns what the standard holds against a canonical name, at most one problem a rule.
//
// Which letters beyond a to z the standard means is open upstream. Its reference reader takes every
// letter and number that is its own lower-case form, and so does this, with a warning.
func checkName(name string, line int) []Problem {
	var problems []Problem
	report := func(code Code, hint, format string, args ...any) {
		problems = append(problems, Problem{
			Code: code, Line: line, Field: "name", Message: fmt.Sprintf(format, args...), Hint: hint,
		})
	}
	const letters = "use lower-case letters, digits and hyphens"
	if n := utf8.RuneCountInString(name); n > MaxNameRunes {
		report(NameLength, "", "the name is %d characters long; at most %d are allowed", n, MaxNameRunes)
	}
	bad, refused := firstRefused(name)
	switch {
	case refused:
		report(NameCharacters, letters, "the name %s holds %s, which is no letter, digit or hyphen", quote(name), quote(string(bad)))
	case strings.ToLower(name) != name:
		report(NameCharacters, letters, "the name %s is not in lower case", quote(name))
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		report(NameHyphens, "put single hyphens between words", "the name %s starts or ends with a hyphen, or has two in a row", quote(name))
	}
	if !refused && !isASCII(name) {
		report(NameNotASCII, "", "the name %s has letters outside a to z, which other clients may refuse", quote(name))
	}
	return problems
}

// firstRefused finds the first rune of a name that is no letter, number or hyphen. A combining mark that
// NFKC leaves standing is none of them.
func firstRefused(name string) (rune, bool) {
	for _, r := range name {
		if r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) {
			return r, true
		}
	}
	return 0, false
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// checkDirectory compares a canonical name with the directory the skill lies in, "" for unknown.
func checkDirectory(name, dir string, line int) []Problem {
	if dir == "" || norm.NFKC.String(dir) == name {
		return nil
	}
	return []Problem{{
		Code:    NameDirectory,
		Line:    line,
		Field:   "name",
		Message: fmt.Sprintf("the name is %s and the directory %s", quote(name), quote(dir)),
		Hint:    "give both the same name",
	}}
}
