// Package testenv says what a test does when the machine lacks what the test needs.
package testenv

import (
	"os"
	"testing"
)

// Missing ends the test: what it needs is not on this machine. On a developer's machine that is a
// skip that says what to install; where CI=true it is a failure, because there a test that does not
// run is a promise that nobody checked.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("this machine lacks %s, and with CI=true nothing may be skipped", what)
	}
	t.Skipf("SKIPPED: this machine lacks %s; the promise in the test's name was not checked", what)
}
