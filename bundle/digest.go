package bundle

import (
	"encoding/hex"
	"fmt"
)

// DigestLen is the length of a digest's text: 64 hexadecimal digits.
const DigestLen = 64

// Digest names a bundle: the SHA-256 of its manifest. It is comparable, and its zero value names
// nothing.
type Digest [DigestLen / 2]byte

// ParseDigest reads the 64 lower-case hexadecimal digits that String writes. Nothing else is
// accepted: a digest is also a directory's name, and one bundle has one name.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if err := parseHex(d[:], s); err != nil {
		return Digest{}, fmt.Errorf("digest %q: %w", s, err)
	}
	return d, nil
}

// String returns the digest as 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short returns the first twelve digits, enough for a person to tell two bundles apart.
func (d Digest) Short() string { return d.String()[:12] }

// IsZero reports whether d names nothing.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText returns the digest as String does.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote, as ParseDigest does.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// parseHex fills dst from exactly as many lower-case hexadecimal digits as it holds.
func parseHex(dst []byte, s string) error {
	if len(s) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("want %d hexadecimal digits, got %d characters", hex.EncodedLen(len(dst)), len(s))
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("character %d is not a lower-case hexadecimal digit", i+1)
		}
	}
	_, err := hex.Decode(dst, []byte(s))
	return err
}
