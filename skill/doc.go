// Package skill reads the SKILL.md format: bytes in, a skill and its problems out. It opens no file
// and knows no directory but the name it is told.
//
// # The format
//
// A file begins, after at most one UTF-8 byte order mark, with a line that is exactly "---". White
// space and a carriage return may follow the dashes; nothing may stand before them. The next such
// line closes the frontmatter, and what follows it is the Markdown body. A fence is a whole line:
// three dashes inside a value end nothing. Lines end in LF or CRLF.
//
// The frontmatter is one YAML mapping. The Agent Skills standard names six keys:
//
//	name           required; 1 to 64 letters, digits and single hyphens, lower-case
//	description    required; 1 to 1,024 code points
//	license        text
//	compatibility  text, 1 to 500 code points
//	metadata       a flat mapping of text to text
//	allowed-tools  text; it grants nothing
//
// A value is the text the author wrote, decoded from YAML's quoting and nothing more, so that a
// version of 1.0 stays "1.0". The file is never written back: its bytes are what is shipped and shown.
//
// # What is refused
//
// Frontmatter comes from strangers, so the YAML is plain: no anchor, alias, merge key, explicit tag or
// second document, nothing nested more than 8 collections deep, at most 1,000 nodes. It is read into
// yaml.Node and walked here, because decoding into a Go map can take half a minute and 4 GB on a small
// hostile file.
//
// Text that is not YAML is read once more with the top-level values that fail on their own put in
// quotes. That mends most files found in the wild, "description: Use when: asked" among them, and is
// told as a warning.
//
// # Problems
//
// What is wrong with a file is a Problem with a stable Code. Some codes mean that there is no skill to
// be had and are errors always. How severe the others are is the caller's choice: see Severities.
package skill
