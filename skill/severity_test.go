package skill

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestDefaultsAreBerrys(t *testing.T) {
	// Every code once, as the table in DESIGN.md has them.
	want := map[Severity][]Code{
		Error: {
			FileTooLarge, NotUTF8, NoFrontmatter, UnclosedFrontmatter, YAMLSyntax, YAMLForbidden, YAMLLimits, NotMapping,
			DuplicateRequiredKey, NameMissing, NameNotText, DescriptionMissing, DescriptionNotText,
			NameCharacters, NameLength, NameHyphens, DescriptionLength, DescriptionHidden,
		},
		Warning: {
			NameNotASCII, NameDirectory, CompatibilityLength, CompatibilityNotText, LicenseNotText, AllowedToolsNotText,
			MetadataNotFlat, DuplicateKey, UnknownKey, YAMLRepaired,
		},
	}
	total := 0
	for severity, list := range want {
		for _, code := range list {
			if got := Severities(nil).Of(code); got != severity {
				t.Errorf("%s is %v by default, want %v", code, got, severity)
			}
			total++
		}
	}
	infos := Codes()
	if len(infos) != total {
		t.Errorf("there are %d codes, want %d", len(infos), total)
	}
	for i, info := range infos {
		if info.Meaning == "" || strings.ContainsAny(info.Meaning, "\n") || string(info.Code) != strings.ToLower(string(info.Code)) {
			t.Errorf("code %q means %q", info.Code, info.Meaning)
		}
		if slices.ContainsFunc(infos[:i], func(other CodeInfo) bool { return other.Code == info.Code }) {
			t.Errorf("%s is listed twice", info.Code)
		}
	}
}

func TestCodesCannotBeChangedByACaller(t *testing.T) {
	Codes()[0].Default = Ignore
	if Codes()[0].Default != Error {
		t.Error("a caller changed a default for everyone")
	}
}

func TestAProfileChoosesSeverities(t *testing.T) {
	s := Severities{NameDirectory: Error, UnknownKey: Ignore, YAMLSyntax: Warning}
	for code, want := range map[Code]Severity{
		NameDirectory: Error, UnknownKey: Ignore, NameLength: Error, DuplicateKey: Warning,
		YAMLSyntax: Error, // there is no skill to load
		"made-up":  Error,
	} {
		if got := s.Of(code); got != want {
			t.Errorf("%s is %v, want %v", code, got, want)
		}
	}
	problems := []Problem{{Code: UnknownKey}, {Code: NameDirectory}, {Code: DuplicateKey}}
	if got := s.Worst(problems); got != Error {
		t.Errorf("the worst is %v, want error", got)
	}
	if got := Severities(nil).Worst(problems); got != Warning {
		t.Errorf("the worst by default is %v, want warning", got)
	}
	if got := s.Worst(problems[:1]); got != Ignore {
		t.Errorf("the worst of one ignored problem is %v", got)
	}
	if got := s.Worst(nil); got != Ignore {
		t.Errorf("the worst of nothing is %v", got)
	}
}

func TestChoicesWithoutEffectAreReported(t *testing.T) {
	for _, c := range []struct {
		choice Severities
		want   string
	}{
		{nil, ""},
		{Severities{NameDirectory: Error, UnknownKey: Ignore, YAMLSyntax: Error}, ""},
		{Severities{"made-up": Error}, "made-up"},
		{Severities{YAMLSyntax: Warning}, "always an error"},
		{Severities{UnknownKey: 7}, "no such severity"},
		{Severities{UnknownKey: -1}, "no such severity"},
	} {
		err := c.choice.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.choice, err, c.want)
		}
	}
}

func TestSeverityWords(t *testing.T) {
	for _, severity := range []Severity{Ignore, Warning, Error} {
		text, err := json.Marshal(severity)
		var back Severity
		if err != nil || json.Unmarshal(text, &back) != nil || back != severity {
			t.Errorf("%v became %s and then %v", severity, text, back)
		}
	}
	var s Severity
	if err := s.UnmarshalText([]byte("fatal")); err == nil {
		t.Error("an unknown word was taken")
	}
	if _, err := Severity(9).MarshalText(); err == nil {
		t.Error("an unknown severity was written")
	}
	if got := Severity(9).String(); got != "severity(9)" {
		t.Errorf("got %q", got)
	}
}

func TestProblemReadsAsAnError(t *testing.T) {
	p := Problem{Code: NameLength, Line: 3, Message: "too long"}
	if p.Error() != "line 3: too long" {
		t.Errorf("got %q", p.Error())
	}
	p.Line = 0
	if p.Error() != "too long" {
		t.Errorf("got %q", p.Error())
	}
}
