package remote

import (
	"cmp"
	"embed"
	"fmt"
	"strings"

	"github.com/punnet/punnet/bundle"
)

// maxLineBytes bounds a command. Dropbear ends the whole connection above 9,000 bytes.
const maxLineBytes = 8900

// The programs that run on a target. They are written for /bin/sh and joined to one line, since
// that is what every login shell passes on unchanged between single quotes: csh takes no line end
// there, fish reads two backslashes as one, and csh an exclamation mark before a word as history.
//
//go:embed script/*.sh
var scripts embed.FS

// The verbs of a script, and the pieces each is made of.
const (
	verbCheck       = "check"
	verbPublish     = "publish"
	verbList        = "list"
	verbPrune       = "prune"
	verbProbe       = "probe"
	verbCollections = "collections"
)

func pieces(verb string) []string {
	switch verb {
	case verbPublish:
		return []string{"base", "begin", "common", "write", "publish"}
	case verbList:
		return []string{"base", "begin", "common", "used", "list"}
	case verbPrune:
		return []string{"base", "begin", "common", "used", "write", "prune"}
	case verbProbe:
		return []string{"base", "begin", "facts", "common", "probe"}
	case verbCollections:
		return []string{"base", "collections"}
	}
	return []string{"base", "begin", "common", verb}
}

// script returns the program of a verb as one line. It is the same for every target and every call.
func script(verb string) string {
	var source strings.Builder
	for _, name := range pieces(verb) {
		text, err := scripts.ReadFile("script/" + name + ".sh")
		if err != nil {
			panic(err) // the file is part of this program
		}
		source.Write(text)
	}
	return join(source.String())
}

// join makes one line of a program: comments and indentation go, and a line end becomes a semicolon
// unless the line cannot be the end of a command.
func join(source string) string {
	var b strings.Builder
	open := true
	for l := range strings.Lines(source) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		if !open {
			b.WriteByte(';')
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(l)
		open = isOpen(l)
	}
	return b.String()
}

// isOpen reports whether a command goes on after the line.
func isOpen(l string) bool {
	for _, end := range []string{"{", "(", "|", "&&", ";;"} {
		if strings.HasSuffix(l, end) {
			return true
		}
	}
	last := l[strings.LastIndexAny(l, " ;")+1:]
	return last == "do" || last == "then" || last == "else" || last == "in" || strings.HasSuffix(l, "*)") && strings.Count(l, "(") == 0
}

// line returns the command that runs a verb on a cache. Its words are the checked Options.Dir, and
// what words, a constant of this package, integers and digests make.
func line(verb, nonce, dir string, words ...string) string {
	return command(verb, nonce, append([]string{dir}, words...)...)
}

// command returns the command that runs a verb. It is safe in any shell as long as its words are.
func command(verb, nonce string, words ...string) string {
	return fmt.Sprintf("exec /bin/sh -c '%s' punnet %s %s", script(verb), nonce, strings.Join(words, " "))
}

// pathWord makes a word of a command of a path, safe in any shell: every byte that could mean
// something to one becomes a dot and an octal number, as printf takes it after a backslash.
func pathWord(p string) string {
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, ".0%03o", c)
		}
	}
	return cmp.Or(b.String(), ".")
}

// batches cuts words so that each command stays within maxLineBytes.
func batches(verb, dir string, words []string) [][]string {
	room := maxLineBytes - len(line(verb, strings.Repeat("0", nonceLen), dir))
	var all [][]string
	for len(words) > 0 {
		n, size := 0, 0
		for n < len(words) && size+len(words[n])+1 <= room {
			size += len(words[n]) + 1
			n++
		}
		n = max(n, 1)
		all = append(all, words[:n])
		words = words[n:]
	}
	return all
}

func digestWords(digests []bundle.Digest) []string {
	words := make([]string, len(digests))
	for i, d := range digests {
		words[i] = d.String()
	}
	return words
}
