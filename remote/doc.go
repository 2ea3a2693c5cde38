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
// verifies and renames. By SFTP, for accounts without a shell, the same steps are file operations.
package remote
