package db

import (
	"bytes"
	"fmt"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Claim is a record that one client has taken and nobody else sees, until it is finished or given
// back.
//
// The claim itself is in memory only. In the store and in the log the record stays, so after a
// crash it is visible again: a message that was taken and not finished is never lost. An engine
// that servers share notes the claim, and whose it is (shared_claim.go).
type Claim struct {
	Key, Value []byte
	hidden     claimed
	db         *core
	shared     *engine.Claimed // where an engine keeps the database
}

// Claim claims the first record whose key begins with prefix and is not before from. It returns
// ErrNoRecord when there is none, and in databases without an order. heed ends a long way over
// records that have expired or are claimed. Needs WatchOptions.Claims.
func (d *DB) Claim(heed Heed, p *Pending, prefix, from []byte) (*Claim, error) {
	claim, err := d.claimFirst(heed, p, prefix, from)
	if owed := d.oweAll(p); owed != nil {
		return claim, owed
	}
	return claim, err
}

func (d *DB) claimFirst(heed Heed, p *Pending, prefix, from []byte) (*Claim, error) {
	if d.refuses() {
		return nil, d.refusal()
	}
	if !d.expr.Kind.Ordered() {
		return nil, dberr.ErrNoRecord
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	if d.shared != nil {
		c, err := d.shared.take(p, prefix, from)
		if err != nil {
			return nil, err
		}
		return &Claim{Key: c.Key.Key, Value: c.Value, db: &d.core, shared: c}, nil
	}
	for {
		key, err := d.firstLive(heed, prefix, from)
		if err != nil {
			return nil, err
		}
		claim, err := d.claim(p, key)
		if claim != nil || err != nil {
			return claim, err
		}
		from = key // somebody was faster
	}
}

// firstLive returns the first key that Claim can take. It looks at the store in pieces.
func (d *core) firstLive(heed Heed, prefix, from []byte) (found []byte, err error) {
	now := d.seconds()
	start := store.Start{Key: from, Inclusive: true, Ask: heed.Asking()}
	anywhere := !d.Bytewise() // in another order they may be anywhere
	start.Edge = anywhere
	for {
		var last []byte // of a piece
		seen, began := 0, time.Now()
		err := d.records().Scan(start, func(key, stored []byte) bool {
			named := bytes.HasPrefix(key, prefix)
			if xt, _, ok := d.Split(stored); named && ok && !record.Expired(xt, now) {
				found = bytes.Clone(key)
			} else if seen++; seen == scanRecords || seen%collectClock == 0 && time.Since(began) > maxLook {
				last = bytes.Clone(key)
			}
			return found == nil && last == nil && (named || anywhere)
		})
		switch {
		case err != nil:
			return nil, systemError(err)
		case found != nil:
			return found, nil
		case last == nil || !anywhere && !bytes.HasPrefix(last, prefix):
			return nil, dberr.ErrNoRecord
		}
		if err := heed.Now(); err != nil {
			return nil, err
		}
		start = store.Start{Key: last, Ask: start.Ask}
	}
}

// Clock returns the time by which keys of messages are made: that of the engine, where servers
// share one.
func (d *DB) Clock() time.Time {
	if d.shared != nil {
		return d.shared.engine.Clock()
	}
	return d.now()
}

// Claimable reports for each prefix whether there is a record that Claim would look at. It asks the
// engine that keeps the database, once for all of them.
func (d *DB) Claimable(prefixes [][]byte) ([]bool, error) { return d.shared.claimable(prefixes) }

// KeysBefore calls visit for the keys that begin with prefix and are before end, the last key
// first, until visit returns false. Claimed and expired records are among them. In a database whose
// keys are not in the order of their bytes it visits none.
//
// Keys before floor may be left out. PostgreSQL passes over all that was removed while anybody has
// an old snapshot, and in a queue that is everything on the way to its beginning.
func (d *DB) KeysBefore(end, floor, prefix []byte, visit func(key []byte) bool) error {
	if !d.Bytewise() {
		return nil
	}
	if bytes.Compare(floor, prefix) < 0 {
		floor = prefix
	}
	from := store.Start{Key: end, Backward: true, Bare: true}
	for more := true; more; {
		seen := 0
		var last []byte
		var scanned store.Store = d.store
		if over := d.over.Load(); over != nil {
			scanned = over
		} else if d.shared != nil {
			scanned = &floored{&sharedStore{d.shared}, floor}
		}
		err := scanned.Scan(from, func(key, _ []byte) bool {
			seen++
			last = append(last[:0], key...)
			more = bytes.HasPrefix(key, prefix) && visit(key)
			return more && seen < scanRecords
		})
		if err != nil {
			return systemError(err)
		}
		more = more && seen == scanRecords
		from.Key = last
	}
	return nil
}

// claim claims the record of key, if the record still exists and nobody else has claimed it.
func (d *DB) claim(p *Pending, key []byte) (*Claim, error) {
	stripe, err := d.lockKey(nil, key)
	if err != nil {
		return nil, err
	}
	defer stripe.Unlock()
	value, xt, found, err := d.read(p, nil, key)
	if err != nil || !found {
		return nil, err
	}
	claims := &d.watch.Load().claims
	if late, ok := claims.lateness(key); ok {
		xt = late
	}
	c := &Claim{Key: key, Value: value, hidden: claimed{key, xt}, db: &d.core}
	claims.add(&c.hidden)
	return c, nil
}

// holds reports whether the record in the store is still the claimed one. The key's stripe is
// locked.
func (c *Claim) holds() bool { return c.db.watch.Load().claims.get(c.Key) == &c.hidden }

// Finish removes the record for good. In an engine it returns ErrNoRecord when the claim has ended
// without the client: somebody else may have the record by now.
func (c *Claim) Finish(p *Pending) error {
	if c.shared != nil {
		return c.db.shared.finish(p, c.shared)
	}
	return c.db.modify(p, c.Key, how{}, func(b *batch) error {
		if c.holds() {
			b.remove(c.Key)
		}
		return nil
	})
}

// GiveBack makes the record visible again, under its old key and without an expiration time, also
// when somebody has removed or replaced it meanwhile.
//
// The caller cannot try again, so a record that is still in the store becomes visible in any case.
// Only its expiration time has to be written. Where that is refused (no room, a guarded server) the
// error says so: the old time does not count while the process lives, and counts again after a
// restart, unless the next claim of the record could write.
//
// In an engine a record that has the key by now stays, and the claimed one gets a key behind it.
// While the engine does not answer, the catalog goes on trying.
func (c *Claim) GiveBack(p *Pending) error {
	if c.shared != nil {
		c.db.shared.giveBack(p, c.shared)
		return nil
	}
	if c.hidden.xt == record.MaxXT && c.show() {
		return nil
	}
	err := c.db.modify(p, c.Key, how{}, func(b *batch) error {
		b.set(c.Key, c.Value, record.MaxXT)
		return nil
	})
	if err != nil && c.show() {
		return fmt.Errorf("the message %q is back, but would expire at its old time after a restart: %w", c.Key, err)
	}
	return err
}

// show ends the hiding of the record in the store. It returns false when the record in the store is
// not the claimed one any more.
func (c *Claim) show() bool {
	stripe, err := c.db.lockKey(nil, c.Key)
	if err != nil { // never without a client
		return false
	}
	w, held := c.db.watch.Load(), c.holds()
	if held {
		w.claims.show(&c.hidden)
	}
	stripe.Unlock()
	if held && w.opts.News != nil {
		w.opts.News(c.Key)
	}
	return held
}
