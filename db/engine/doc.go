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
//	revision  a number that a record gets with each change; no two changes of a key have the same
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
// What ends a claim has no group: it has no effect when it is repeated, so there is nothing to
// settle. A Take has its own Settle (Claims), because what it has made is a record, and no Result.
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
