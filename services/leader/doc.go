// Package leader decides which of several servers that replicate each other is the primary of the
// services. Only the primary changes quotas and gives out fencing tokens; where servers share a
// server number, only the primary gives out sequence numbers. All servers keep a copy of the
// records, which are in the services' database.
//
//	role, err := leader.Open(leader.Options{DB: catalog.Services(), SID: 1})
//	err = role.Attach(quotas)    // quotas.Lead and quotas.Yield are called when the role changes
//	err = role.Alone()           // there is no master; or, where there is a master,
//	err = role.CaughtUp()        // this server has received everything that the master had
//	term, err := role.Term()     // err says why this server is not the primary
//	err = role.Claim(false)      // makes this server the primary
//
// # Who leads the services
//
// The problem: two servers that take from the same quota at the same time grant more than there is,
// and what a server has granted cannot be taken back. Ordinary records can be merged after such a
// split (the last writer wins); amounts cannot. So one server alone may change them, and every
// server must be able to tell whether it is that server, also after a crash.
//
// The rule: a claim is a record "primary" 00 SID with a number, the term. A server becomes the
// primary by writing a claim whose term is one above the greatest term that it knows. The claim is
// on the disk before the server serves anything, and is replicated like any other record. Every
// server compares the claims that it knows: the greatest term wins. While two servers have the
// greatest term, nobody is the primary.
//
//	   Open
//	     |
//	     v
//	+---------+      the greatest claim is another server's,      +---------+
//	| waiting | ------------------------------------------------> | standby |
//	+---------+      or CaughtUp and there is no claim            +---------+
//	     |                                                         |       ^
//	     |  CaughtUp or Alone, and the greatest              Claim |       | a claim comes
//	     |  claim is this server's; Alone, and                     |       | that is as great,
//	     |  there is no claim at all; Claim                        v       | or greater
//	     |                                                        +---------+
//	     +------------------------------------------------------> | primary |
//	                                                              +---------+
//
// A server with a master waits after each start, also if it was the primary: until it has heard
// from the master (CaughtUp), another server may have been promoted. A primary that receives a
// claim stops serving before it stores the first update of the new primary (Prepare calls Yield).
// If it stored first, a quota call in flight could write the amount that it computed from its own
// state over the amount of the new primary.
//
// An example with the servers 1, 2 and 3 and a quota of 100:
//
//	1 claims term 1, grants 30; 2 and 3 have "70"    1 is the primary on all three servers
//	1 grants 20 more and loses power at once         "50" has reached nobody
//	2 is promoted                                    2 claims term 2, serves from 70
//	1 comes back, hears of term 2                    1 stays a standby, copies 2's records: 70
//	2 and 3 lose contact, 3 is promoted              3 claims term 3, serves; 2 still serves too
//	2 and 3 meet again                               2 yields: 3 is the primary
//
// The 20 units of the second line are granted, and the quota does not know of them: this is what
// asynchronous replication costs, and why a promotion is a decision. If 2 had been promoted with
// force as well before 2 and 3 met, both would have claimed term 3. When two such claims meet, both
// servers stop serving. A claim with force on either server then has term 4, which wins.
//
// Rejected: a standby claims by itself when it no longer reaches the primary. The network between
// the two may be cut while clients still reach both, and both would take from the same quota. A
// majority vote would prevent that, but needs three servers, and most installations have two. So an
// operator decides that the former primary is gone ('ktremotemgr tunerepl -primary'). The one
// exception is a server that has no master and knows of no claim: it claims by itself.
//
// # Updates of other servers
//
// Updates of the services' database that arrive from a master pass through Prepare and then
// Replicate. Their keys tell three kinds of records apart (records.go):
//
//   - Bounds: each has the ID of one server in its key. Only that server writes it. Of the value
//     here and the value in the update, the greater is kept.
//   - Claims: the greater value is kept as well. Prepare looks at them before Replicate stores
//     anything.
//   - All other records: the primary's. They are stored if the update was made by the primary, if
//     it belongs to a copy of the master's database, or if no server is known to be the primary.
//     The primary itself stores none of them.
//
// # Copies after a change of the primary
//
// A former primary may have made calls that the new primary never received, and may have sent them
// to some of the standbys. Nothing in the log of the new primary takes these calls back. So Prepare
// asks for a copy of the master's database (refresh) on each server for which the primary changes.
// Until the copy has come to its end (Partial), the records here are a mixture of the two, and
// Claim needs force.
//
// # Servers that have lost data
//
// A server may have lost its newest records: a backup was restored, or its disk was replaced. Peers
// then know more about this server than its own records do.
//
//   - A greater bound: the server raises its own bound above the peer's value, see AheadTokens.
//   - A greater claim: the server was the primary under a term whose records it no longer has. It
//     is not the primary by that claim, since it would serve old amounts, and it must not use the
//     term again. It keeps the term in "primary" 00 SID "/told" and waits to be promoted.
package leader
