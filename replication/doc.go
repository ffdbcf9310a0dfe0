// Package replication streams the update log from a master to its followers, with the messages of
// the original ("ulog replication" of Kyoto Tycoon) and an extension between servers of our kind.
//
// A Source is the master's side: it serves a follower on a connection that asked for updates with
// the request 0xB1. A Follower is the other side: it connects to a master, applies what comes to
// this server's databases, and remembers how far it is. A server can be both, and two servers can
// follow each other: an update keeps the ID of the server that made it. No server sends an update
// to the server that made it, and no server applies an update of its own that comes back. Between
// servers of our kind an update also keeps the log and the stamp of its origin, so that it is
// stored once, on however many ways it comes.
//
// When the master's log no longer reaches back to the follower's position, the follower fetches
// copies of the databases and goes on in the log from the stamp of the first copy. An original
// master cannot give copies: then the follower stops and says so.
//
// # Positions of a follower
//
// Problem. A position is a stamp in the master's log. It says: every update up to here is in this
// server's databases. After a crash the follower asks for the updates behind its position. A
// position that is too new loses updates. A position that is too old brings updates again: an old
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
// At the start, the newer of the positions 1 and 2 counts; package db compares them by the stamp of
// the position record in this server's own log. Then recall reads the RTS file. If the newest
// position record names the file's text (place.rts), this program has written the text, and the
// record's position counts. Any other text was written by somebody who wants another position: the
// follower goes on from there, as the original does.
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
// Several databases can be at several positions: each has its own file, and a database that is
// being copied has no position. recall takes the smallest position and notes the databases with
// other positions, or with none, as parts of the place.
//
// Rejected: the position in the RTS file alone, as in the original. Two files cannot change
// together. If the RTS file is written before the updates are durable, it promises 120 when a power
// cut takes 110 and 120 away: they never come again. If it is written afterwards, a crash in
// between leaves 100 in it, and both updates are stored and logged twice. Without step 3's record a
// lost write of the RTS file could not be told from a person's edit. Databases in memory without an
// update log have nothing but the RTS file, and live with the second fault.
//
// # Rules
//
//   - A position never passes an update that is not durable here: the position is in the same group
//     of the log as the update, and in the same transaction of the database file.
//   - After a crash the position that the databases remember counts, unless somebody has edited the
//     RTS file (Follower.recall).
//   - No update goes round between servers: for each log of origin a follower keeps the newest
//     stamp that it has received, and drops updates with this stamp or an older one (pull.wants).
//   - A gap in the master's log is filled by copies of the databases, or ends the replication.
//     After copies, the log is followed from the stamp of the first copy.
//   - A master sends a heartbeat only when it has sent all updates up to the end of its log
//     (stream.run). So no heartbeat has a stamp behind updates that were removed or damaged unsent.
//     How far apart heartbeats are, and when updates leave together, is in pace.go.
//   - A master may lack updates that its follower has from it. Then the follower does not apply the
//     master's further updates as if nothing had happened (parted.go), and only the decision of an
//     operator replaces newer data of the follower.
//   - In each log an update has a later stamp than in the log that it came from, whatever the
//     clocks say (ulog.Position.After). So what a new master has received and this server lacks
//     comes (meetLog).
//   - After a change of the master, the new one has to prove that it has what came from the former
//     one (succession.go).
//   - A full copy between databases with lww=true replaces nothing that is newer: records and
//     removals come with versions.
//   - An update that cannot be stored now is asked for again. Only an update that can never be
//     stored is left out, with an error in the log.
//   - A database that lacks updates up to the position, because it is new or was emptied, is copied
//     (lacks).
//   - Updates of the services' database pass leader.Role.Prepare and Replicate.
package replication
