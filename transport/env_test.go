package transport

import (
	"slices"
	"testing"

	"github.com/punnet/punnet/internal/sshconfig"
)

func TestTheVariablesThatAreSentAreTheOnesThatWereNamed(t *testing.T) {
	environ := []string{"LANG=C", "LC_ALL=de_DE", "LC_=x", "HOME=/h", "SECRET=s", "A1=1", "=odd", "EMPTY="}
	for name, c := range map[string]struct {
		send, set, want []string
	}{
		"nothing":   {},
		"names":     {send: []string{"LANG", "EMPTY", "MISSING"}, want: []string{"LANG=C", "EMPTY="}},
		"patterns":  {send: []string{"LC_*", "A?", "L*"}, want: []string{"LANG=C", "LC_ALL=de_DE", "LC_=x", "A1=1"}},
		"brackets":  {send: []string{"[AL]*", "A[0-9]"}}, // which are themselves to ssh
		"set":       {set: []string{"X=a b=c"}, want: []string{"X=a b=c"}},
		"set after": {send: []string{"LANG"}, set: []string{"LANG=other"}, want: []string{"LANG=C", "LANG=other"}},
	} {
		if got := sessionEnv(&sshconfig.Settings{SendEnv: c.send, SetEnv: c.set}, environ); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
