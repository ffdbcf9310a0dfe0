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
//	reader                   read the store → stamps → compare with Pending.Safe
//
// Safe is Log.Acked, and where answers wait for other servers (-sync-replicas) the smaller of that
// and of what they have confirmed: otherwise a reader would act on a value that a failover loses.
// A reader that sees a value sees the stamp of its commit, or a later one. Nearly always Safe has
// reached that stamp, and the reader owes nothing: that costs two atomic loads and no hash.
// Otherwise the stamp is added to the reader's Pending, and netio.(*Conn).Flush waits for it as for
// an update of the connection's own. After a log has failed the wait fails, and no reply leaves.
//
// Example. Client 1 sets k, stamp 90, and its fsync takes 10 ms. Client 2 reads k meanwhile: the
// stripe of k says 90, Safe is 85, so the reply to client 2 waits for 90. Client 3 reads j in
// another stripe, whose stamp is 40: it is answered at once.
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
	return d.log != nil && ulog.Stamp(d.last.Load()) > p.Safe(d.log, d.Replicas())
}

func (d *core) oweStamp(p *Pending, at ulog.Stamp) error {
	if at <= p.Safe(d.log, d.Replicas()) {
		return nil
	}
	if p == nil {
		return systemError(d.log.Wait(at))
	}
	p.Add(d.log, at, d.Replicas())
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
