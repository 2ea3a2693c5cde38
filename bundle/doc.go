// Package bundle turns a skill directory into immutable, named content, and keeps it.
//
// # Format
//
// A bundle is a tree of directories and regular files, nothing else. It has one top directory,
// named as the skill's directory is: release/SKILL.md, release/scripts/run.sh. A symbolic link
// inside the skill is followed and stored as what it points to. A link that leaves the skill, is
// absolute, dangles, cycles or needs more than [MaxLinkHops] hops, and any device, FIFO or socket,
// rejects the skill before a byte of content is read. The skill's own directory may be a link, to
// anywhere: the tree it names is the bundle, and the name is the link's.
//
// An element of a path is at most [MaxNameBytes] bytes of valid UTF-8 without control,
// bidirectional, tag or backslash characters, and is unique among its siblings under NFC
// normalisation and full case folding, so that the tree means the same on every file system.
//
// # Manifest and digest
//
// The manifest has one line for each directory, the top one included, and each file:
//
//	d ./release
//	f <sha256 of the content>  ./release/SKILL.md
//	x <sha256 of the content>  ./release/scripts/run.sh
//
// The lines are sorted by their bytes and each ends with LF. f is a file of mode 0600, x one of
// mode 0700; a source file with any execute bit is x, and on a host without execute bits a file
// that starts with #! is. Owners, times, sizes, set-id bits and extended attributes are not part of
// a bundle. The digest is the SHA-256 of the manifest in lower-case hexadecimal. It names the
// bundle everywhere and can be recomputed from a copy with find, sha256sum and sort; it does not
// depend on how the bundle travelled.
//
// # Counting
//
// An entry is a file or directory beneath the skill directory, after links are resolved;
// release/a/f has two levels. [Limits] are checked when a file is seen, and again while it is read.
//
// # Packed
//
// A packed bundle is a GNU tar of the same entries in the order of their paths, below a directory
// named by the digest, without owners and with every time 1980-01-01 00:00 UTC, compressed with
// gzip or zstd. The bytes of the tar name nothing: only the manifest does.
//
// # Store
//
// A [Store] holds each bundle as <digest>/<name>/... beside <digest>/manifest, all of it private to
// the user. A bundle appears under its digest by one rename, after its content has been synced, or
// not at all.
package bundle
