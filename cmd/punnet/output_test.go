package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/display"
)

func TestJSONShowsNoHiddenCharacters(t *testing.T) {
	var out strings.Builder
	a := &app{system: system{stdout: &out}}
	in := "esc\x1b del\x7f csi\u009b bidi\u202e tag\U000e0041 <&> 技能"
	a.printJSON(map[string]string{"text": in})
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if display.Hidden(r) {
			t.Errorf("%q holds %q", out.String(), r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["text"] != in {
		t.Errorf("read back as %q, %v", back["text"], err)
	}
}

func TestAnswersForTerminalsKeepLinesAndTabsAndNothingElseHidden(t *testing.T) {
	in := "one\ttwo\x1b[31m\r\nthree \u202e\xff\n"
	if got, want := plainLines(in), "one\ttwo\\u{1b}[31m\\r\nthree \\u{202e}\\x{ff}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnswersAsJSONHaveASchemaVersionBesideTheirFields(t *testing.T) {
	for _, c := range []struct {
		data any
		want string
	}{
		{struct{}{}, `{"schemaVersion":1}`},
		{map[string]string{"text": "<b>\u202e"}, `{"schemaVersion":1,"text":"<b>\u202e"}`},
	} {
		var out strings.Builder
		a := &app{system: system{stdout: &out}, json: true}
		if err := a.answer(c.data, "text"); err != nil || out.String() != c.want+"\n" {
			t.Errorf("%v: %q, %v", c.data, out.String(), err)
		}
	}
	a := &app{json: true}
	if err := a.answer([]int{1}, ""); err == nil {
		t.Error("a list was printed as an object")
	}
}
