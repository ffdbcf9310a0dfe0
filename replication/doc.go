// Package replication streams the update log from a master to its followers (reference: kt-ulog-replication-tools section 2).
//
// A Source is the master's side: it serves a follower on a connection that asked for it. A Follower is the other side: it
// connects to a master, applies what comes to the server's databases and remembers in the RTS file how far it is. A
// server can be both, and two servers can follow each other: updates keep the ID of the server that made them, and neither
// side sends or takes back the other's own.
//
// # What a follower promises
//
// A position is the stamp in the master's log up to which everything is applied here. It is remembered in the log, in one group with the
// updates that lead to it, and in a database file with its checkpoint: after a killed process or a power cut it is what belongs to the data that are
// left, so every update is stored and logged once. The RTS file mirrors it for people and scripts; who edits the file gets what he writes there.
// Databases in memory without an update log have the RTS file only.
//
// Updates keep the log and the stamp of their origin on their way through servers of this kind. What has been here on any way is not
// stored again.
//
// When the master's log no longer reaches back to the position, a follower fetches copies of the databases and goes on from the stamp of
// the first. An original master cannot give any: then it stops and says so.
package replication
