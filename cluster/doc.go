// Package cluster makes one of several servers the primary, by vote, and loses nothing that was
// acknowledged when the primary changes.
//
//	node, err := cluster.Open(cluster.Options{Name: "a:1978", Dir: dir, Data: data, …})
//	node.Start()
//	node.Accept(name, conn)     a connection that another member has opened
//	err := node.Serving()       nil: this member may answer as the primary
//	err := node.Do(ctx, order)  switch over, add, remove
//	node.Close()
//
// # Who does what
//
// The members elect a leader, and agree on a small State (package election). No data goes that way:
// updates are written to the primary's update log and replicated from there (package replication),
// and an update is acknowledged when the number of followers that the State says have it
// (replication.Quorum). This package connects the two: it decides that the leader, or the member
// that has more than the leader, becomes the primary of a term, from which position the term
// begins, and what becomes of members whose data do not belong to the history. What it does with
// data it does by the interface Data, which package server implements.
//
// # What holds
//
//   - An acknowledged update is part of every later term. Seals are the reason (seal.go): before a
//     term begins, so many members have ended the past for themselves that one of them has the
//     update, and the one that has most is the primary (choose.go).
//   - Two members never answer as the primary at the same time. The primary has a lease
//     (election.Elector.Lease), which is looked at after a request was served and before its answer
//     leaves (Node.Answers, called by netio). Nobody leads before the lease of the former leader
//     has ended, and only a leader becomes the primary.
//   - What a client has read on the primary is in every later term. Before a primary answers, the
//     first update of its term is on as many followers as the rule says, and so is everything older
//     (lead.go). Later updates are not read before they are confirmed (db/owe.go).
//   - A term has one primary, and a primary is it without a break: when it steps down, its epoch
//     ends, and no connection of that epoch, of a client or of a follower, is answered any more.
//     The first message of a stream says the term, so a follower never mixes terms
//     (replication.Election).
//   - A primary serves records and services, or nothing (ready.go).
//   - Nothing is thrown away: what a member alone had is put aside as a log before its databases
//     become copies (Node.rewind).
//
// # Positions
//
// Each member has an update log of its own, with stamps of its own. The position of a member in the
// cluster's history is the newest term of which it has an update, and the stamp of that update in
// the log of the term's primary (history.go). A follower remembers for each log the newest update
// that it has, in the same group of its log as the update (replication.place), so positions are
// exact after a crash.
//
// A member that got its data by a copy has the difference between the copy and its former data in
// its log, instead of single updates. Nobody can follow that part of its log: the appointment says
// where single updates begin (election.Appointment.Base), and a member that is further behind gets
// a copy as well. The model in model_test.go has found this, and that stamps do not tell which
// updates are known where clocks differ (history.had).
//
// # What was rejected
//
// Raft for the data: every update would be written to two logs, and the update log, which is the
// write-ahead log of the databases, is what followers of all ages know how to read. Votes only for
// the member that has most: a member whose raft log is older could have more data, and with three
// members, of which one is gone, neither of the others would ever be elected. So anybody may lead,
// and then hands the leadership to whoever has most.
//
// # Goroutines and locks
//
// Node.run looks at the State after each change; it alone takes over and follows. Seals come by
// calls of other members. Whatever uses the data in a way that may wait for the disk holds the
// token Node.work, of which there is one. Node.mu is held over each change of the role, and nobody
// waits for the disk or the network under it: see "Slow and hung disks" in disk.go. Node.watch
// waits for neither, so a member steps down whatever its other goroutines wait for. Serving,
// Answers, Epoch and Term take no lock. The locks: Node.ordering → Node.work → Node.mu → what the
// methods of Data take that touch only memory. The elector is asked under Node.mu and never waits
// then, except in Propose and Transfer, which are called without it.
package cluster
