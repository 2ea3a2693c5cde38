// Package environment is the machine and account that a conversation runs in: this machine, or a target
// over SSH.
//
// It answers what package session asks of an environment, over a transport.Conn and the cache that
// package remote keeps on the target.
//
// # Identity
//
// An environment is known by its machine and account and not by a name: the hash of the machine's own id
// (/etc/machine-id, or what takes its place on other systems), the account's number and the real path of
// its home. A name for the same account by another alias, address or way is the same environment. A machine
// without an id says its SSH server's host key in its place. One that says neither is known by the host key
// that it proved to have and the account's name; and where nobody saw the key, since the system's ssh or a
// shared connection leads there, by the target as it was named. Clones of one image that kept its id are
// taken for one machine, if account and home are the same too.
//
// The question is one small command, or a few reads by SFTP, and is asked once while an Environment is
// open. A conversation records the answer when it goes to a target. Later processes believe the record,
// and hold the target to it in a command that runs beside the one that publishes: so a prompt with
// everything in place takes two round trips, and never shows one machine what was loaded on another.
//
// # Round trips
//
// On a connection that is open and to an account that runs commands, a start or a move takes two round
// trips, and so do a catalog and a prompt with everything in place. A load asks for the catalog first:
// with a small bundle of the host's that is not there yet it takes five, with one that is there four. A
// skill of the environment is read by SFTP and takes nine, two more for each level of directories below
// the skill's, and three more when it is the first. Without commands a catalog takes about ten.
package environment
