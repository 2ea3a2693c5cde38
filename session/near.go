package session

import (
	"cmp"
	"slices"

	"github.com/punnet/punnet/internal/display"
)

// maxNear is how many names are suggested for one that was not found.
const maxNear = 3

// nearest returns the names that one that was not found is a slip of, nearest first, fit to be shown.
func nearest(want string, names []string) []string {
	if len(want) > 4*64 {
		return nil // no name is so long
	}
	type near struct {
		name string
		far  int
	}
	var found []near
	for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if far := distance([]rune(want), []rune(n)); far <= max(1, len([]rune(n))/3) {
			found = append(found, near{display.Prompt(n), far})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.far, b.far) })
	var out []string
	for _, n := range found[:min(maxNear, len(found))] {
		out = append(out, n.name)
	}
	return out
}

// distance is how many characters must be put in, taken out or changed to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
