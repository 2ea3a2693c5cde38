// Package session is what one conversation has loaded and trusts.
//
// A conversation is a tree of events: where it began and moved, what was loaded and unloaded. What holds
// at an event is a function of the events on the way to it from the beginning and of nothing else, so a
// restart, a fork and a rewind are reading, not repair. A loaded event holds the instructions as they
// were, byte for byte, and for a skill of the host the digest of the bundle that its files are in.
// Whatever becomes of the skill, the conversation has what it loaded.
//
// # What holds
//
// An environment is a machine and account that conversations run in. A skill of the host is active in
// every one; any other belongs to the environment where it was loaded, is paused elsewhere and resumes
// on return. Then it stands before the host's of its name, which is shadowed. Active, shadowed and
// paused are all that is loaded, and each loaded skill is one of them. Loading a name replaces what is
// active under it, and unloading it leaves nothing of it active. The working directory decides what is
// found, never what is loaded.
//
// Trust is a setting and no history: the last word about a repository, its root's real path in one
// environment, holds at every event. Outside a repository it is about the working directory.
//
// # Captures
//
// A profile that limits a session's captured text has everything captured when the conversation starts:
// each skill becomes a bundle of the store, the catalog is that of the start for good, and the load tool
// answers with the instructions themselves.
//
// # The journal
//
// [Files] keeps a conversation as a file of JSON lines, <id>.jsonl: a header, then events, in the order
// in which they were recorded. It is only ever added to, under a lock, and synced before an event counts.
// What a crash left of a last line is ignored, and cut off before the next one. Anything else that is
// not understood is [ErrDamaged], and nothing is guessed. Any number of processes may use one
// conversation: each reads what others added before it adds.
package session
