package testenv

import "testing"

// AsOther runs a test as the user who runs the tests: Windows has no user whom file modes do not
// bind.
func AsOther(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	test(t)
}
