package profile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrNoPlace is the error of Locate where no place can be made of the environment.
var ErrNoPlace = errors.New("no place: none of the environment variables it depends on is set to an absolute path")

// Locate returns the first of places whose variables are all set. A place is an absolute path that
// may begin with a variable, $XDG_DATA_HOME/berry or $HOME/.local/share; a variable that is unset,
// empty or not absolute does not count, as the XDG base directory specification says of its own.
// getenv looks a variable up.
func Locate(places []string, getenv func(string) string) (string, error) {
	for _, p := range places {
		path, err := expand(p, getenv)
		if err != nil {
			return "", err
		}
		if path != "" {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w (%s)", ErrNoPlace, strings.Join(places, ", "))
}

// checkPlaces finds the first place that Locate could not make a path of in any environment.
func checkPlaces(places []string) error {
	for _, p := range places {
		if _, err := expand(p, func(string) string { return "" }); err != nil {
			return err
		}
	}
	return nil
}

// expand returns the path of one place, "" where its variable does not count.
func expand(place string, getenv func(string) string) (string, error) {
	rest, ok := strings.CutPrefix(place, "$")
	if !ok {
		if !filepath.IsAbs(place) {
			return "", fmt.Errorf("%q neither is absolute nor starts with a $VARIABLE", place)
		}
		return filepath.Clean(place), nil
	}
	name, tail, _ := strings.Cut(rest, "/")
	if name == "" || strings.ContainsAny(tail, "$") {
		return "", fmt.Errorf("%q: a place has one variable, at its start", place)
	}
	value := getenv(name)
	if !filepath.IsAbs(value) {
		return "", nil
	}
	return filepath.Join(value, filepath.FromSlash(tail)), nil
}
