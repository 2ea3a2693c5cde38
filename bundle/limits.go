package bundle

import "fmt"

// The limits of a bundle, as the berry harness documents them, and of its names.
const (
	MaxEntries = 512      // files and directories beneath the skill directory
	MaxLevels  = 16       // path elements beneath the skill directory
	MaxBytes   = 32 << 20 // bytes of content, all files together

	MaxNameBytes = 255 // bytes of one path element: the limit of every common file system
	MaxLinkHops  = 8   // links followed to resolve one: what os.Root itself follows

	// SkillFile is the file that makes a directory a skill.
	SkillFile = "SKILL.md"
	// MaxSkillFileBytes bounds how much of a SKILL.md is kept in memory; whether a longer one is
	// still a skill is for whoever parses it to say.
	MaxSkillFileBytes = 64 << 10
)

// Limits bound a bundle. A zero field takes the default named beside it.
type Limits struct {
	Entries   int   // files and directories beneath the skill directory; MaxEntries
	Levels    int   // path elements beneath the skill directory; MaxLevels
	Bytes     int64 // bytes of content, all files together; MaxBytes
	Files     int   // files; as many as Entries allows
	FileBytes int64 // bytes of one file; as many as Bytes allows
}

func (l Limits) withDefaults() Limits {
	if l.Entries == 0 {
		l.Entries = MaxEntries
	}
	if l.Levels == 0 {
		l.Levels = MaxLevels
	}
	if l.Bytes == 0 {
		l.Bytes = MaxBytes
	}
	if l.Files == 0 {
		l.Files = l.Entries
	}
	if l.FileBytes == 0 {
		l.FileBytes = l.Bytes
	}
	return l
}

// Rules say what a harness takes into a bundle. The zero value takes whole directories within the
// default limits, follows links that stay inside, and leaves nothing out.
type Rules struct {
	Limits

	// LeaveOut holds names of files and directories that are left out wherever they stand, and
	// reported: version control and other by-products. Matched exactly.
	LeaveOut []string

	// NoLinks follows no link: a link is left out and reported, and one that is the skill's
	// directory or its SKILL.md rejects the skill.
	NoLinks bool

	// TextOnly leaves out and reports files that are not UTF-8 text.
	TextOnly bool

	// LeaveOutExcess leaves out and reports files beyond Levels, Bytes, Files and FileBytes, where
	// otherwise they reject the skill. The files that still fit, in the order of their paths'
	// bytes, are kept; SKILL.md always is. Entries rejects in either case.
	LeaveOutExcess bool
}

// formatBytes writes a size the way limits are spoken of: in the largest unit that divides it.
func formatBytes(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
