package environment

import "testing"

func TestWhatAShellSaysIsBounded(t *testing.T) {
	var w bounded
	if n, err := w.Write(make([]byte, maxSaid)); n != maxSaid || err != nil || w.full {
		t.Fatalf("all that it may say: %d, %v", n, err)
	}
	if n, err := w.Write([]byte{'x'}); n != 0 || err == nil || !w.full || len(w.b) != maxSaid {
		t.Errorf("a byte more: %d, %v; %d are kept", n, err, len(w.b))
	}
}
