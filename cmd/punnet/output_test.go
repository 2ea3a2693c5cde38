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
