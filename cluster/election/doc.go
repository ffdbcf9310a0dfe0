// Package election lets the members of a cluster agree on terms, on who leads a term, and on one
// small State. No data passes through it: updates are replicated by the update log. The caller
// decides when a leader may act as the primary.
//
// There are two electors. Raft (OpenRaft) needs nobody else: the members vote among themselves.
// Etcd (OpenEtcd) is for users who run an etcd already. Both are tried by one test suite.
//
// # Why etcd's raft library
//
// go.etcd.io/raft/v3 is an algorithm without goroutines, clock, disk and network: a test can run a
// cluster in fake time, with every message under its control. Pre-votes, CheckQuorum, confirmed
// reads and changes of membership are there. Its only dependency was one of ours before.
// hashicorp/raft was weighed. Its leader counts its lease from the moment at which it receives the
// answers. A leader that SIGSTOP pauses after the answers have arrived and before it reads them
// believes, when it goes on, in half a second of lease that is over.
//
// # Leases
//
// A lease is what a primary needs to acknowledge an update without asking anybody: until its end
// no other member leads. Let E be the election timeout, ten ticks by default.
//
// The voters' promise: a voter that has processed a message of its leader at the time h of its own
// clock takes no part in an election before h + E. It drops votes and pre-votes, those that come in
// and its own that would go out. A voter that was started at s has forgotten h, so it does the same
// until s + E; s is later than every h that it may have forgotten. The leader is a voter too: it
// promises the same until the end of the last lease that it took.
//
// The leader's reckoning: it notes t0 and asks for a confirmed read (ReadIndex). The read comes back
// when a majority has answered a heartbeat that was sent after t0, so all h of that majority lie
// after t0. Nobody can win an election without one of that majority, so nobody else leads before
// t0 + E. A voter that had voted for somebody before h has a higher term and would not have
// answered. The lease ends at t0 + D with
//
//	D = (E - tick) * 9/10         810 ms with a tick of 100 ms and ten ticks
//
// The factor is for clocks: D of the leader's clock is shorter than E of a voter's as long as one
// runs less than 11 % faster than the other; the tick comes on top. Quartz is good to 0.01 %. The
// moments are not taken from raft's ticks: raft ignores votes for ten ticks as well, but the first
// of ten ticks may come at once, and raft forgets its leader in cases that the promise must
// outlive, such as an answer with a higher term. raft's rule is the second line.
//
// Because t0 is taken before the question, a pause of the leader at any place makes its lease end
// early, never late. The lease is renewed every second tick, so with a healthy network more than
// half a second of it is always left.
//
// A virtual machine that is suspended as a whole, or a laptop that sleeps, has a monotonic clock
// that stands still. No lease can help there; the term in the log and in the stream of updates
// does: followers of a later term acknowledge nothing to a former primary.
//
// # Transfer of leadership
//
// A transfer must not wait for the voters' promise to end, so its votes (marked with raft's
// "CampaignTransfer") are let through at once. Therefore a leader that begins a transfer never has a
// lease again in that term, not even after the transfer has failed: the vote of a transfer may still
// be on its way, and it is for the next term, T+1. A leader whose transfer failed steps down to T+1
// and is elected, if at all, for T+2 or later; a majority has then left T+1 behind, and a late vote
// for T+1 finds no majority. Trying again after a transfer that failed takes an election.
//
// # Witnesses
//
// A witness votes and keeps raft's log, which is small, and never leads in the sense of Leading. It
// does not campaign and is no target of a transfer. One case needs more. Members A and B and the
// witness W: A and W commit a State that B has not received, and A dies. W has the newer log, so it
// must refuse B its vote, and B can never win: silence until A returns. So a witness that has refused
// a member for its older log campaigns in raft, brings that member up to date, and transfers the
// leadership to it. Meanwhile Leading and Lease of the witness say no, and Leader says unknown.
//
// # What is stored
//
// Raft keeps one file, see raft_disk.go. What a message is based on is on the disk before the message
// leaves. A write that fails is final: the elector stops, and Err says why.
//
// A member that lost its directory must not come back under its old number: it could vote twice in
// a term, or deny an entry that it had acknowledged. A bootstrapped member that hears that it knew
// more than it does stops with ErrLost. That is certain when the leader has heard of it before in
// the leader's term, which is when a disk is replaced while the others go on; it is not when the
// leader changes between the loss and the start. So remove and add a member whose disk is replaced.
//
// # Goroutines and locks
//
// Raft has no goroutine of its own. Receive, the ticks (Clock.AfterFunc) and the callers of Propose
// take Raft.mu and work under it, fsync included. What the other methods return is published in an
// atomic pointer, so Lease and Leading cost a load and never wait for a disk.
package election
