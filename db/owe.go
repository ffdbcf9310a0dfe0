package db

import "gotycoon/ulog"

// What a reply may tell.
//
// # The problem
//
// An update is visible to everybody as soon as it is in memory, but it is acknowledged only when
// its log has made it safe: written, or synced with SyncEach. Between the two, a reader can see a
// value that a crash or a failed fsync takes away again. A reader that is answered at once acts on
// a value that never was ("order 1 is paid").
//
// # The rule
//
// No reply leaves before everything that the reply is based on is safe. That includes replies about
// what is not there, and replies of updates that change nothing: an Add that fails tells that there
// is a record.
//
// Each stripe of keys has the stamp of the last commit that touched one of its keys, and the
// database has the stamp of its last commit, for scans and as a shortcut. The order of the steps
// makes the rule exact:
//
//	commit, under commitMu   append to the log → stamps of database and stripes → Apply
//	reader                   read the store → stamps → compare with Log.Acked
//
// A reader that sees a value sees the stamp of its commit, or a later one. Nearly always Acked has
// reached that stamp, and the reader owes nothing: that costs two atomic loads and no hash.
// Otherwise the stamp is added to the reader's Pending, and netio.(*Conn).Flush waits for it as for
// an update of the connection's own. After a log has failed the wait fails, and no reply leaves.
//
// Example. Client 1 sets k, stamp 90, and its fsync takes 10 ms. Client 2 reads k meanwhile: the
// stripe of k says 90, Acked is 85, so the reply to client 2 waits for 90. Client 3 reads j in
// another stripe, whose stamp is 40: it is answered at once.
//
// # Other servers
//
// Where answers wait for followers (-sync-replicas), a reader waits for what they have confirmed
// too: otherwise it would act on a value that a failover loses. That holds for updates of this
// server's clients. What came from a master is the master's to confirm; a follower without
// followers of its own, which has the same options as its master because it may take over one day,
// would otherwise never answer a reader. So the database also has the stamp of its newest update of
// a client, and followers must have what the reader may have seen up to there:
//
//	stamps of the log    70 client   80 master   90 master
//	a reader of 90       waits for the log up to 90, and for followers up to 70
//
// A restart forgets which updates the followers have confirmed. A client that asks for followers
// itself (REPLICAS) waits until they have all that the log had at the start. Other readers are
// answered from the database as it is: if they waited, a master that starts while its followers are
// away would answer no reader at all, not even about what was confirmed years ago. In a cluster the
// primary serves nobody before the followers have what it began with (cluster/lead.go).
//
// # What was rejected
//
// Waiting for the end of the log would make each reader wait for an fsync under load. Hiding an
// update until it is safe would make the next update of the same key wait for the disk, and
// increments of one counter would run at the speed of fsync.
//
// Two keys of one stripe share a stamp, so a reader sometimes waits for an update of another key;
// it never waits too little. In a transaction readers see the collected updates, which nobody has
// promised yet; what they see of the database below is owed.

// owe adds to p what a reply about the record of key must wait for. The caller has read the record
// before. Without p, owe waits.
func (d *core) owe(p *Pending, key []byte) error {
	if !d.ahead(p) {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	return d.oweStamp(p, d.stripes.of(key).stamp())
}

// oweKeys is owe for several keys.
func (d *core) oweKeys(p *Pending, keys [][]byte) error {
	if !d.ahead(p) {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	at := ulog.Stamp(0)
	for _, key := range keys {
		at = max(at, d.stripes.of(key).stamp())
	}
	return d.oweStamp(p, at)
}

// oweAll is owe for what a scan has seen, or has not.
func (d *core) oweAll(p *Pending) error {
	if !d.ahead(p) {
		return nil
	}
	if d.base != nil {
		return d.base.oweAll(p)
	}
	return d.oweStamp(p, ulog.Stamp(d.last.Load()))
}

// Seen adds to p what a reply must wait for that is based on anything in the database as it is now.
// It is for services that keep a copy of their records in memory. Without p it waits.
func (d *DB) Seen(p *Pending) error { return d.oweAll(p) }

// ahead reports whether the database has updates that the client of p may not be told of yet.
func (d *core) ahead(p *Pending) bool {
	if d.base != nil {
		d = d.base
	}
	return d.log != nil && !d.safe(p, ulog.Stamp(d.last.Load()))
}

// safe reports whether the client of p may be told of everything up to a stamp.
func (d *core) safe(p *Pending, at ulog.Stamp) bool {
	return at <= d.log.Acked() && p.Confirmed(d.log, d.toConfirm(p, at), d.Replicas())
}

// toConfirm returns up to where other servers must have what a client has seen who has seen
// everything up to a stamp: the newest update of a client here, or all where the client asks.
func (d *core) toConfirm(p *Pending, at ulog.Stamp) ulog.Stamp {
	if p.Asks() {
		return max(at, d.begun)
	}
	return min(at, ulog.Stamp(d.clients.Load()))
}

func (d *core) oweStamp(p *Pending, at ulog.Stamp) error {
	if d.safe(p, at) {
		return nil
	}
	if p == nil {
		return systemError(d.log.Wait(at))
	}
	p.Add(d.log, at, d.toConfirm(p, at), d.Replicas())
	return nil
}

// oweBatch adds what the reply to an operation that has logged nothing must wait for: the reply may
// tell of the records of all keys that the batch has locked. An update that was logged has a
// greater stamp than all of them.
func (b *batch) oweBatch(p *Pending) {
	d := b.db
	if !d.ahead(p) {
		return
	}
	if p == nil {
		p = b.ownPending()
	}
	switch {
	case d.base != nil:
		_ = d.base.oweAll(p) // with p it does not wait
	case b.stripe != nil:
		_ = d.oweStamp(p, b.stripe.stamp())
	default:
		_ = d.oweStamp(p, d.stripes.newest(&b.keys))
	}
}
