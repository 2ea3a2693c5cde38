package remote

import (
	"path"
	"strings"
	"time"
)

// The lines of probe's answer that are about the machine and the account, each at most once, in any
// order, those of programs that are not there left out:
//
//	now SECONDS                     the clock
//	system|user|homedir|shell|sh WORDS uname -sm; the account's name; HOME; SHELL; where /bin/sh leads
//	has PROGRAM...                  the programs that are there, of those that probe looks for
//	version PROGRAM WORDS           what it says of itself
//	free KIB, inodes COUNT          what the file system of the cache has left
//	writable                        the account can write to the cache's nearest directory
//	readonly PATH                   it cannot, and which that is

// facts is what a target said of itself, as far as it was read.
type facts struct {
	seen  map[string]bool
	words map[string]string // the lines whose value is only shown
	now   int64
	heard time.Time // when now came
	tools map[string]bool
	says  map[string]string // versions, by program
	free  int64             // bytes, -1 where it was not said
	nodes int64

	writable bool
	readonly string
}

func newFacts() *facts {
	return &facts{seen: make(map[string]bool), words: make(map[string]string), tools: make(map[string]bool),
		says: make(map[string]string), free: -1, nodes: -1}
}

// has reports whether a line that begins with word is about the machine.
func (f *facts) has(word string) bool {
	return f != nil && hasWord("now system user homedir shell sh has version free inodes writable readonly", word)
}

// take reads one line, and reports whether it may stand there.
func (f *facts) take(word, rest string) bool {
	key := word
	if word == "version" {
		key, rest, _ = strings.Cut(rest, " ")
		if !hasWord(versioned, key) || f.says[key] != "" {
			return false
		}
		f.says[key] = rest
		return rest != ""
	}
	if f.seen[key] {
		return false
	}
	f.seen[key] = true
	n := parseCount(rest)
	switch word {
	case "now":
		f.now, f.heard = n, time.Now()
		return n > 0
	case "has":
		for t := range strings.FieldsSeq(rest) {
			if !hasWord(probed, t) {
				return false
			}
			f.tools[t] = true
		}
		return true
	case "free", "inodes":
		// A file system of another kind has words of its own for what it does not count.
		if n < 0 {
			return true
		}
		if word == "free" {
			f.free = min(n, 1<<50) << 10
		} else {
			f.nodes = n
		}
		return true
	case "writable":
		f.writable = true
		return rest == "" && f.readonly == ""
	case "readonly":
		f.readonly = rest
		return path.IsAbs(rest) && checkPath(rest) == nil && !f.writable
	}
	f.words[word] = rest
	return rest != ""
}

// The programs that probe looks for, and those whose versions it asks for.
const (
	probed = "find sort sed id head tr ls cat date touch chmod mkdir rmdir mv rm sleep tar gzip " +
		"sha256sum shasum sha256 openssl zstd"
	versioned = "tar gzip zstd"
	// without are those whose absence the script tells before it has done anything.
	without = "find sort sed id tar gzip"
	// needed are the others that it cannot do without.
	needed = "head tr ls cat date touch chmod mkdir rmdir mv rm"
)

// hashes are the programs for a SHA-256, in the order in which the script looks for them.
func hashes() []string { return []string{"sha256sum", "shasum", "sha256", "openssl"} }

// hash returns the program that the script would use, or "".
func (f *facts) hash() string {
	for _, h := range hashes() {
		if f.tools[h] {
			return h
		}
	}
	return ""
}

// lacks returns those of the programs in words that are not there.
func (f *facts) lacks(words string) []string {
	var missing []string
	for t := range strings.FieldsSeq(words) {
		if !f.tools[t] {
			missing = append(missing, t)
		}
	}
	return missing
}
