package skill

import "slices"

// Code names a kind of problem. The words are part of the JSON output and of profiles, and stay.
type Code string

// The codes that leave no skill to load. Parse returns a nil skill with one of these.
const (
	FileTooLarge         Code = "file-too-large"
	NotUTF8              Code = "not-utf-8"
	NoFrontmatter        Code = "no-frontmatter"
	UnclosedFrontmatter  Code = "unclosed-frontmatter"
	YAMLSyntax           Code = "yaml-syntax"
	YAMLForbidden        Code = "yaml-forbidden"
	YAMLLimits           Code = "yaml-limits"
	NotMapping           Code = "not-a-mapping"
	DuplicateRequiredKey Code = "duplicate-required-key"
	NameMissing          Code = "name-missing"
	NameNotText          Code = "name-not-text"
	DescriptionMissing   Code = "description-missing"
	DescriptionNotText   Code = "description-not-text"
)

// The codes that come with a skill. How severe each is, a profile chooses.
const (
	NameCharacters       Code = "name-characters"
	NameLength           Code = "name-length"
	NameHyphens          Code = "name-hyphens"
	NameNotASCII         Code = "name-not-ascii"
	NameDirectory        Code = "name-directory"
	DescriptionLength    Code = "description-length"
	DescriptionHidden    Code = "description-hidden"
	CompatibilityLength  Code = "compatibility-length"
	CompatibilityNotText Code = "compatibility-not-text"
	LicenseNotText       Code = "license-not-text"
	AllowedToolsNotText  Code = "allowed-tools-not-text"
	MetadataNotFlat      Code = "metadata-not-flat"
	DuplicateKey         Code = "duplicate-key"
	UnknownKey           Code = "unknown-key"
	YAMLRepaired         Code = "yaml-repaired"
)

// CodeInfo says what a code means and how severe it is where no profile says otherwise.
type CodeInfo struct {
	Code    Code
	Default Severity // how severe it is by default
	Fatal   bool     // it leaves no skill to load, so that no profile can soften it
	Meaning string   // one line, for tables
}

// codes is never changed.
var codes = [...]CodeInfo{
	{FileTooLarge, Error, true, "the file is larger than 64 KiB"},
	{NotUTF8, Error, true, "the file is not UTF-8 text, or holds a NUL byte"},
	{NoFrontmatter, Error, true, "the first line is not ---"},
	{UnclosedFrontmatter, Error, true, "no second line --- closes the frontmatter"},
	{YAMLSyntax, Error, true, "the frontmatter is not YAML, nor is it with its values quoted"},
	{YAMLForbidden, Error, true, "the frontmatter uses an anchor, alias, merge key, explicit tag or document marker"},
	{YAMLLimits, Error, true, "the frontmatter is nested too deep or has too many parts"},
	{NotMapping, Error, true, "the frontmatter is not a mapping of keys to values"},
	{DuplicateRequiredKey, Error, true, "name or description is given twice"},
	{NameMissing, Error, true, "there is no name, or it is empty"},
	{NameNotText, Error, true, "the name is a list or mapping"},
	{DescriptionMissing, Error, true, "there is no description, or it is blank"},
	{DescriptionNotText, Error, true, "the description is a list or mapping"},

	{NameCharacters, Error, false, "the name has a character that is not a lower-case letter, a digit or a hyphen"},
	{NameLength, Error, false, "the name is longer than 64 code points"},
	{NameHyphens, Error, false, "the name starts or ends with a hyphen, or has two in a row"},
	{NameNotASCII, Warning, false, "the name has letters or digits outside a-z and 0-9"},
	{NameDirectory, Warning, false, "the name is not that of the skill's directory"},
	{DescriptionLength, Error, false, "the description is longer than 1,024 code points"},
	{DescriptionHidden, Error, false, "the description has control, bidirectional or tag characters"},
	{CompatibilityLength, Warning, false, "compatibility is empty or longer than 500 code points"},
	{CompatibilityNotText, Warning, false, "compatibility is a list or mapping"},
	{LicenseNotText, Warning, false, "license is a list or mapping"},
	{AllowedToolsNotText, Warning, false, "allowed-tools is a list or mapping"},
	{MetadataNotFlat, Warning, false, "metadata is not a flat mapping of text to text"},
	{DuplicateKey, Warning, false, "an optional key is given twice; the last one counts"},
	{UnknownKey, Warning, false, "a key the standard does not have"},
	{YAMLRepaired, Warning, false, "a value had to be quoted before the frontmatter could be read"},
}

// Codes returns every code, its default severity and its meaning, the fatal ones first. The defaults
// are those of the berry profile.
func Codes() []CodeInfo { return slices.Clone(codes[:]) }

// lookup finds what is known about a code.
func lookup(code Code) (CodeInfo, bool) {
	for _, info := range codes {
		if info.Code == code {
			return info, true
		}
	}
	return CodeInfo{}, false
}
