//go:build !unix

package bundle

// umask does nothing: there is none here.
func umask(mask int) int { return mask }
