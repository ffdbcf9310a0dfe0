// Package engine says what databases need of a place that several servers share, such as a
// PostgreSQL or an etcd: a place that keeps records, and makes many changes of them in one step.
//
// Several servers without data of their own serve one set of databases that an engine keeps. What
// an operation means (increment, append, compare and set) stays in package db, once for all
// engines. An engine only reads records and writes groups of conditional changes. Package gather
// makes groups of operations; package mem is an engine in memory, for tests; package enginetest has
// the tests that every engine must pass.
//
// # Words
//
//	group     changes of records that an engine makes in one step, and a note that it has made them
//	lane      a number that one writer has: it writes one group after the other, never two at once
//	revision  a number that a record gets with each change, GroupID.Revision: it names the group
//	hold      a promise of the engine to a lane: nobody else changes these keys for a moment
//	horizon   a stamp up to which the engine's log is complete
//	fenced    refused, because another server holds the lease by now
//
// # One increment
//
// Two servers add 1 to a counter of 5 at the same time:
//
//	lane 7, group 3                            lane 9, group 1
//	Read "n": 5, revision 41
//	                                           Read "n": 5, revision 41
//	Write "n" = 6 if its revision is 41: won
//	                                           Write "n" = 6 if its revision is 41: lost
//	                                           Read "n": 6, revision 42
//	                                           Write "n" = 7 if its revision is 42: won
//
// Both read the same value, and neither increment is lost. A set needs no revision: its change has
// the condition Any and always wins.
//
// # An outcome that nobody knows
//
// A connection that breaks during a Write leaves a question: has the engine made the group? The
// note under the group's ID answers it. Settle asks for the note, and where there is none leaves a
// note that says "never", so that a group which is still on its way fails when it arrives. Without
// Settle a writer could only guess. To repeat an increment that was made adds twice. To repeat a
// set that was made is no better: the second one may overwrite what another client has set after
// the first.
//
// Notes are not kept for ever. A server that was suspended with its machine, and asks after hours,
// finds no note of a group that was made. Then the answer is not "never" but ErrForgotten, and
// callers are told that nobody knows.
//
// # Lanes and the past
//
// A revision stands for the value that a group has stored. A condition compares nothing else, so
// two groups with one revision would let a server overwrite a value that it has never read.
// Revisions differ as long as lanes do, and a counter of the engine gives out lanes. But engines
// are taken back to the past: by a restoration, by a failover to a standby that lacks the end, by a
// crash where commits do not wait for the disk. Such an engine has forgotten the lanes that it gave
// out last, and counts on from before them:
//
//	server A, lane 7                          server B
//	                      the engine is restored to before lane 7
//	                                          Lane: 7
//	group 12 stores "n" = 1: revision 7.12
//	                                          group 12 stores "n" = 101: revision 7.12
//	knows "n" = 1, revision 7.12
//	group 13: "n" = 2 if revision 7.12: won, and 100 are lost
//
// So the engine writes down whose each lane is, beside the records and in the same history, before
// anybody uses the lane. A writer is a random number that a server draws when it starts. The engine
// keeps these notes for ever, and refuses a second one for a lane. The step that makes a group asks
// whether its lane is the writer's. If not, nothing is made, the error is ErrDisowned, and the
// writer takes another lane.
//
// Therefore, in whatever the engine has been made of, all records with revisions of a lane are
// those of one writer: each of them was stored in a step that has seen the lane's note. A server
// never takes the same number twice, and its lane never numbers two groups alike. So a record with
// a revision of the lane has the value that this lane has given it, also after a restoration, and
// however long ago: the lane may take what it knows of its own groups for granted until a condition
// says otherwise.
//
// That is enough for revisions of the lane itself. A revision of somebody else, which was read
// before a restoration, may be given out again after it. Reads and groups therefore must meet the
// same history. An engine that goes back cuts all connections, so a group goes over a connection
// that is older than the read on which its conditions rest (Group.Epoch). A dump that is restored
// while servers run cuts none: there a group could win that has read before the restoration and is
// written after it, if by then somebody else has stored the same key under the same number of a
// lane that was given out again. Servers should be stopped for a dump, see docs/engines.md. Who
// held a revision for longer is outside: a client of memcached, with its cas unique. Restorations
// are rare, and such a client must have missed all changes of the record since; Renew, which
// belongs to every restoration, leaves out a thousand lanes for it.
//
// Terms of leases are counted too, and their numbers given out again. Therefore a term has a mark,
// a random number that its holder draws (Term.Mark), and whatever names a term compares it: a
// renewal, a guard, a claim. Else two servers would take one term for theirs, and end each other's
// claims.
//
// Rejected: to ask once for each connection whose a lane is. A dump can be restored, and the schema
// removed and set up again, below a connection that lives on.
//
// Rejected: to compare what identifies the engine's server, such as its timeline and when it
// started. Two restorations of one backup may have the same timeline; a machine that goes back to a
// snapshot of its memory has the same start; a crash loses commits that did not wait for the disk,
// and changes neither; and other databases have other names for it. Besides, a standby that lacks
// nothing would cost each lane its number and what it knows. Also rejected: numbers drawn at
// random. There are 2^20 lanes, so that a revision fits into 53 bits; of a thousand random ones two
// are alike.
//
// # Order
//
// A stamp is drawn after the records of a group are locked, and before the group can be seen. So
// the stamps of one key are in the order of its changes, whichever servers made them. Groups of
// different keys may become visible in another order than that of their stamps: stamp 80 is drawn,
// stamp 81 is drawn and committed, stamp 80 is committed. Who reads the log between the last two
// steps and goes on behind 81 has missed 80 for ever. Log.Read therefore ends at a horizon, which
// is 79 at that moment.
//
// # Why the interface is as it is
//
// No transaction that reads, thinks and writes. Each of its steps would be a round trip under
// locks, and not every engine has such transactions. Conditions on revisions do the same for a
// group of hundreds of operations in two round trips, and in one where nothing is read.
//
// A revision is not called version, which means the stamp and server ID of last-writer-wins.
//
// A group can look at records that it keeps as they are (Change.Keep). An operation that reads two
// records and changes one would otherwise be as if it had read the other one at another moment: of
// two people who are on call, each sees the other one and leaves.
//
// A change carries its updates as values of package ulog, several where operations met on one key,
// and not as encoded messages: the engine knows how it keeps a log, a message does not tell where
// it ends, and updates that come from a master have origins beside their messages.
//
// A clear is a part of a group, not a call of its own: a transaction may clear a database and then
// store records, and that is one step.
//
// A transaction (Tx) is a lock and one group. Its owner collects updates in memory, as on a single
// machine, and reads with Read and Scan, because nobody else can write meanwhile. So the lock is
// all that it needs of the engine until it commits.
//
// A hold only helps: it may be lost, and then the conditions decide as ever. An engine that cannot
// hold keys is as correct, and less fair to those who meet often on a key.
//
// What ends a claim has no Settle: it may be repeated, and has no effect then. A Take has its own
// Settle (Claims), because what it has made is a record, and no Result.
//
// A repeated Finish must know whether the first attempt has ended the claim. A claim that is
// missing does not prove that:
//
//	claim 7 of "job", acknowledged      in this history
//	the engine is taken back            "job" is a record again, and nobody has claimed it
//	Finish of claim 7: no such claim    "job" is there, and the next Take gets it
//
// Nor does it help that the term lasts: its lease was there before, and is renewed. So a Finish is
// a group of a lane of the engine's own, noted in the step that ends the claim, and all attempts
// have the same ID (Claimed.End). The note tells of the end as it tells Settle of any other group.
//
// Rejected: to keep a row for each claim that was finished. It would have to stay until the term
// ends, and a server lives for months.
//
// A claim belongs to a term of a lease, and not to a lane. A lane says nothing of whether its
// server lives. A term ends with its server and never comes back, so whoever finds claims of a term
// that has ended may give them back, also two at a time, and no lock has to keep a holder away that
// wakes up. For the same reason a Take need not lock its lease: where the lease ends in the middle,
// the claim is one of a term that has ended.
//
// Leases, claims and signals are interfaces of their own, so that an engine without one of them
// says so with nil, and nobody finds out by an error in the middle of a call.
package engine
