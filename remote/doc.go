// Package remote keeps bundles in a target's cache.
//
// A cache is a directory of copies, <cache>/<digest>/<name>/..., and nothing else: no index and no
// manifest, because a copy's digest is recomputed from the copy itself. A copy gets its name by one
// rename, after it was staged beside it as <cache>/.tmp-<random> and verified there, so whoever
// reads the cache sees the whole of a bundle or nothing.
//
// A target is a machine that the agent writes to, so a copy is verified on every use, in the same
// round trip that asks whether it is there. That finds accidents and edits. It does not prove
// anything about a target that lies: whoever controls the account controls the copy.
//
// There are two ways to a cache, with one result. By exec, one constant shell script asks, unpacks,
// verifies and renames; the answer of a target is parsed strictly and bounded, and no name in it
// becomes a path on this machine. By SFTP, for accounts without a shell, the same steps are file
// operations. A [Cache] finds out from the first answer which way the target allows, and keeps to it.
//
// # Round trips
//
// On a connection that is open, asking about any number of bundles takes two by exec, publishing a
// bundle of a few kilobytes three, whatever else is published with it. Only what lacks is sent: of a
// damaged copy what is damaged, and of a new version, where [Options].Older knows the one before,
// what changed.
//
// # Collections
//
// [Cache.Collections] asks what skills a target has, which takes two round trips by exec and about ten
// by SFTP for any number of them. One command walks all roots and answers in one stream, compressed
// where the target has gzip: the names, real paths and sizes, and of each SKILL.md what ends with its
// frontmatter. A shell cannot hold every byte and an awk not every line, so files with a NUL and names
// with a line end travel in hexadecimal, and what does not add up with a file's size is asked for once
// more, whole. Both ways give the same discovery.Listing.
//
// # Safety
//
// The cache belongs to the account and is private to it. Nobody else may be able to change it or a
// directory on the way to it, by name or by where links lead; [ErrUnsafe] says which one, and what
// mends it. Nothing outside the cache is changed, except that directories on the way are created.
package remote
