package skill

// FileName is the one name a skill's file has, exactly so.
const FileName = "SKILL.md"

// The limits of a SKILL.md. Names, descriptions and compatibility are counted in Unicode code points,
// as the standard's reference reader counts them.
const (
	// MaxFileBytes is the largest SKILL.md that is read, in bytes. The standard has no such limit;
	// both built-in profiles promise this one.
	MaxFileBytes = 64 << 10

	// MaxNameRunes is the standard's limit for a name.
	MaxNameRunes = 64

	// MaxDescriptionRunes is the standard's limit for a description, white space at its ends included.
	MaxDescriptionRunes = 1024

	// MaxCompatibilityRunes is the standard's limit for compatibility.
	MaxCompatibilityRunes = 500
)

// The limits of the YAML, all ours: far more than six keys and their metadata have use for, and small
// enough that the worst 64 KiB known takes some 25 ms (BenchmarkParseBrackets).
const (
	// maxYAMLDepth is how many lists and mappings may stand one inside another, the outermost included.
	maxYAMLDepth = 8

	// maxYAMLNodes is how many keys, values, lists and mappings there may be in all.
	maxYAMLNodes = 1000

	// maxYAMLLines is how many lines the frontmatter may have between its fences.
	maxYAMLLines = 4096
)

// Skill is what a SKILL.md says about itself.
type Skill struct {
	// Name is the skill's name in NFKC form, without white space around it. It is a label chosen by
	// the author and never a path element: names with slashes are published, and a caller that softens
	// NameCharacters lets them through.
	Name string

	// Description is the text as written, of at least one character that is not white space.
	Description string

	// License, Compatibility and AllowedTools are the texts as written, "" where the key is absent, null
	// or not text. AllowedTools grants nothing.
	License, Compatibility, AllowedTools string

	// Metadata has the entries of metadata whose value is text, as written; nil where there is none.
	Metadata map[string]string

	// Body is the Markdown after the frontmatter: the rest of the parsed bytes, not a copy of them.
	Body []byte
}

// Parse reads data, a whole SKILL.md, and returns the skill in it and everything found wrong with it,
// in the order of the file's lines. The skill is nil when there is none to be had, and one of the
// problems then is an error under any Severities; otherwise it is for the caller's Severities to say
// whether a problem keeps the skill out.
//
// dir is the name of the directory the file lies in, which should be the skill's; "" leaves that
// unchecked. A caller that reads the file should stop at MaxFileBytes + 1 bytes: Parse refuses those.
//
// Parse does no I/O, keeps no state and does not change data.
func Parse(data []byte, dir string) (*Skill, []Problem) {
	if p := checkText(data); p != nil {
		return nil, []Problem{*p}
	}
	text, body, p := split(data)
	if p != nil {
		return nil, []Problem{*p}
	}
	root, problems := decode(text)
	r := reader{problems: problems}
	var s *Skill
	if root != nil {
		s = r.read(root, dir)
	}
	if s != nil {
		s.Body = body
	}
	sortByLine(r.problems)
	return s, r.problems
}
