// Package replication streams the update log from a master to its followers (reference: kt-ulog-replication-tools section 2).
//
// A Source is the master's side: it serves a follower on a connection that asked for it. A Follower is the other side: it
// connects to a master, applies what comes to the server's databases and remembers in the RTS file how far it is. A
// server can be both, and two servers can follow each other: updates keep the ID of the server that made them, and neither
// side sends or takes back the other's own.
//
// # What a follower promises
//
// A position is the stamp in the master's log up to which everything is applied here. It moves on only over updates that are
// as safe here as the server's mode promises, and gets into the RTS file only after they are on the disk. Therefore
// neither a killed process nor a power cut makes a follower pass over an update. At most the updates of about the last second
// are fetched and applied again, which changes nothing; where the follower has an update log they are in it twice.
package replication
