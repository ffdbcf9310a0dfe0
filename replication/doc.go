// Package replication streams the update log from a master to its followers, with the messages of
// the original ("ulog replication" of Kyoto Tycoon) and an extension between servers of our kind.
//
// A Source is the master's side: it serves a follower on a connection that asked for updates with
// the request 0xB1. A Follower is the other side: it connects to a master, applies what comes to
// this server's databases, and remembers how far it is. A server can be both, and two servers can
// follow each other: an update keeps the ID of the server that made it, and neither side sends or
// takes back the other's own updates. Between servers of our kind an update also keeps the log and
// the stamp of its origin, so that it is stored once, on however many ways it comes.
//
// When the master's log no longer reaches back to the follower's position, the follower fetches
// copies of the databases and goes on in the log from the stamp of the first copy. An original
// master cannot give copies: then the follower stops and says so.
//
// # Positions of a follower
//
// Problem. A position is a stamp in the master's log. It says: every update up to here is in this
// server's databases. After a crash the follower asks for what comes behind its position. A
// position that is too new loses updates. One that is too old brings updates again, and an old
// update that is stored again replaces what clients have stored here since, and goes to the
// followers of this server a second time. So the position must always belong to exactly those
// updates that the crash has left.
//
// Rule. The position is stored three times, in this order:
//
//  1. In this server's update log, as a position record (ulog.Position) in the same group as the
//     updates that lead to it. The group has one checksum: after a crash both are there or neither.
//     A heartbeat of the master is acknowledged after the group is durable.
//  2. In the database file (Meta.Position), by the checkpoint that brings the updates into the
//     file, in the same transaction. The log is durable up to there before the checkpoint begins.
//  3. In the RTS file, for people and scripts. Before the file is changed, a position record is
//     made durable that has the file's present text and its next one (place.rts).
//
// At the start, the newer of log and file counts; package db compares them by the stamp of the
// position record in this server's own log. Then recall reads the RTS file. A text that the
// record knows was written by this program, and the record's position counts. Any other text was
// written by somebody who wants another position, and gets it, as from the original.
//
// Example. Everything up to 100 is here, the RTS file says 100, and the updates 110 and 120 come.
//
//	step                            a crash then leaves                     goes on at
//	110 and 120 are appended        log: position 100                       100, both come again
//	their group is durable          log: 110 120 position 120; file: 100    120, after a replay
//	a checkpoint                    file: 110 120 position 120              120
//	record "120, RTS 120 or 100"    not durable: RTS 100, known: 100        120
//	that record is durable          RTS 100, known: 120 and 100             120
//	the RTS file is written         RTS 120, known: 120 and 100             120
//	somebody writes 90 into it      RTS 90, known: 120 and 100              90
//
// "Known" are the texts of the RTS file in the newest position record. The file is smaller than a
// disk sector, so a power cut leaves its old or its new text.
//
// Several databases can be at several positions: each has its own file, and one that is being
// copied is at none. recall takes the smallest position and notes the others as parts of the place.
//
// Rejected: the position in the RTS file alone, as in the original. Two files cannot change
// together. Written before the updates are durable, the file promises 120 and a power cut takes 110
// and 120 away: they never come again. Written after them, the file still says 100, and both
// updates are stored and logged twice. Without step 3's record a lost write of the RTS file could
// not be told from an edit of a person. Databases in memory without an update log have nothing but
// the RTS file, and live with the second fault.
//
// # Rules
//
//   - A position never passes an update that is not safe here: it travels in the group of the
//     update, and reaches the file with the file's checkpoint.
//   - After a crash the data's own position counts, unless somebody edited the RTS file
//     (Follower.recall).
//   - No update goes round between servers: a follower keeps the newest stamp of every log of
//     origin, and drops what is not newer (pull.wants).
//   - A gap in the master's log is filled with a copy, or ends the replication. The log is followed
//     from the stamp of the copy's first part.
//   - A heartbeat is sent at the end of the log only, so it never names a stamp behind updates that
//     were removed or damaged.
//   - A master that lacks what its follower has from it is not followed as if nothing had happened
//     (parted.go); the follower's data are replaced only when somebody says so.
//   - A full copy loses nothing that is newer (lww=true): records and removals come with versions.
//   - An update that cannot be stored now is asked for again; only what can never be stored is left
//     out, with an error in the log.
//   - A database that was away lacks what came meanwhile, and gets it as a copy (place.lacks).
//   - Updates of the services' database pass leader.Role.Prepare and Replicate.
package replication
