// Package election lets the members of a cluster agree on terms, on who leads a term, and on one
// small State. No data passes through it: updates are replicated by the update log. The caller
// decides when a leader may act as the primary.
//
// There are two electors. Raft (OpenRaft) needs nobody else: the members vote among themselves.
// Etcd (OpenEtcd) is for users who run an etcd already. One test suite tries both.
//
// # Why etcd's raft library
//
// go.etcd.io/raft/v3 is an algorithm without goroutines, clock, disk and network. A test can run a
// cluster in fake time, with every message under its control. Pre-votes, CheckQuorum, confirmed
// reads and changes of membership are part of it. Its only dependency, protobuf, was one of ours
// before. hashicorp/raft was weighed. Its leader counts its lease from the moment at which it
// receives the answers. A leader that SIGSTOP pauses after the answers have arrived and before it
// reads them believes, when it goes on, in half a second of lease that is over.
//
// # Leases
//
// A lease is what a primary needs to acknowledge an update without asking anybody: until the end of
// the lease no other member leads. Let E be the election timeout, ten ticks by default.
//
// The voters' promise: a voter that has processed a message of its leader at the time h of its own
// clock takes no part in an election before h + E. The voter drops votes and pre-votes that come
// in, and its own that would go out. A voter that was started at s has forgotten h, so it does the
// same until s + E; s is later than every h that it may have forgotten. The leader is a voter too:
// it promises the same until the end of the last lease that it took.
//
// The leader's reckoning: the leader notes t0 and asks for a confirmed read (ReadIndex). The read
// comes back when a majority has answered a heartbeat that was sent after t0, so every h of that
// majority lies after t0. Nobody can win an election without a vote of that majority, so nobody
// else leads before t0 + E. A voter that had voted for somebody before h has a higher term and
// would not have answered. The lease ends at t0 + D with
//
//	D = (E - tick) * 9/10         810 ms with a tick of 100 ms and ten ticks
//
// The factor is for clocks: D of the leader's clock is shorter than E of a voter's clock as long as
// one runs less than 11 % faster than the other; the tick comes on top. Quartz is good to 0.01 %.
//
// The promise is kept with times of the clock instead of raft's ticks. raft ignores votes for ten
// ticks as well, but the first of ten ticks may come at once. raft also forgets its leader in cases
// that the promise must outlive, such as an answer with a higher term. raft's rule is the second
// line.
//
// Because the leader takes t0 before it asks, a pause of the leader at any place makes its lease
// end early, never late. The lease is renewed every second tick, so with a healthy network more
// than half a second of it is always left.
//
// A virtual machine that is suspended as a whole, or a laptop that sleeps, has a monotonic clock
// that stands still. No lease can help there. The term in the log and in the stream of updates
// does: followers of a later term acknowledge nothing to a former primary.
//
// # Transfer of leadership
//
// A transfer must not wait for the voters' promise to end, so voters hear its votes (raft marks
// them with "CampaignTransfer") at once. Therefore a leader that begins a transfer in term T never
// has a lease in T again, not even after the transfer has failed: the vote of the transfer, which
// is for the term T+1, may still be on its way. A leader whose transfer failed steps down to T+1.
// It is elected again, if at all, for T+2 or later. A majority has then left T+1 behind, and a late
// vote for T+1 finds no majority. So a transfer that fails costs an election.
//
// # Witnesses
//
// A witness votes and keeps raft's log, which is small, and never leads in the sense of Leading. It
// does not campaign and is no target of a transfer. One case needs more. Take the members A and B
// and the witness W: A and W commit a State that B has not received, and A dies. W has the newer
// log, so it must refuse B its vote, and B can never win: nobody leads until A returns. So a
// witness that has refused a member for its older log campaigns in raft, brings that member up to
// date, and transfers the leadership to it. Meanwhile Leading and Lease of the witness say no, and
// Leader says unknown.
//
// # What is stored
//
// Raft keeps one file, see raft_disk.go. What a message is based on is on the disk before the
// message leaves. A write that fails is final: the elector stops, and Err says why.
//
// A member that lost its directory must not come back under its old number: it could vote twice in
// a term, or deny an entry that it had acknowledged. A member that hears that it once knew more
// than it does now stops with ErrLost. It hears so from a leader that it has answered in the
// leader's term, which is the case when a disk is replaced while the others go on. A leader that
// was elected after the loss cannot know. So remove a member whose disk is replaced, and add it
// again.
//
// # Etcd
//
// Three keys below PREFIX/CLUSTER/ hold everything:
//
//	leader   {term, name, life, to}     written when a term begins or is handed over
//	beat     name                       written by the leader five times per E
//	state    the State, and by          by tells apart two changes that make the same State
//
// Every change is a transaction that compares the revisions of keys. The leader beats and writes
// the State only while the leader key has the revision that it wrote. Another member takes over,
// with a term higher by one, only if neither leader nor beat have changed since it looked, and it
// looked at least E ago by its own clock. The leader notes t0 before it sends a beat; whoever sees
// the beat sees it after t0, so nobody takes over before t0 + E, and the lease ends at t0 + D with
// D = E * 9/10. E is 2.5 s by default.
//
// A key with an etcd lease, which etcd removes when its holder is silent, would save the beats. It
// is no ground for a lease of ours: etcd's leader renews leases from memory without asking the
// other etcds. A leader of etcd that is slow or cut off goes on to renew a lease while its
// successor counts it as silent (etcd's issue 15247; later versions ask, the 3.4 of today's
// distributions does not). The rule above needs of etcd only transactions, and no clock of an etcd.
// Its price are two small writes in a second. Let etcd compact its history, as always
// (--auto-compaction-retention).
//
// A transfer writes the other member's name into the leader key. That member need not wait,
// everybody else must; the former leader has given its lease up before.
//
// # Goroutines and locks
//
// Raft has no goroutine of its own. Receive, the ticks (Clock.AfterFunc) and the callers of Propose
// take Raft.mu and work under it, fsync included. Etcd has one goroutine, which beats or looks;
// Close ends it. No lock of Etcd is held while etcd is asked. What the methods return that never
// wait is shown on a board, an atomic pointer: Lease and Leading cost a load and never wait for a
// disk or for etcd.
package election
