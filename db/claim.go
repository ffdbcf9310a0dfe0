package db

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/db/dberr"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Claim is a record that one client has taken and nobody else sees, until it is finished or given
// back.
//
// The claim itself is in memory only. In the store and in the log the record stays, so after a
// crash it is visible again: a message that was taken and not finished is never lost.
type Claim struct {
	Key, Value []byte
	xt         int64 // expiration time in the store
	db         *core
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
		return nil, dberr.ErrReadOnly
	}
	if !d.expr.Kind.Ordered() {
		return nil, dberr.ErrNoRecord
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
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

// KeysBefore calls visit for the keys that begin with prefix and are before end, the last key
// first, until visit returns false. Claimed and expired records are among them. In a database whose
// keys are not in the order of their bytes it visits none.
func (d *DB) KeysBefore(end, prefix []byte, visit func(key []byte) bool) error {
	if !d.Bytewise() {
		return nil
	}
	from := store.Start{Key: end, Backward: true}
	for more := true; more; {
		seen := 0
		var last []byte
		var scanned store.Store = d.store
		if over := d.over.Load(); over != nil {
			scanned = over
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
	c := &Claim{Key: key, Value: value, xt: xt, db: &d.core}
	claims.add(key, c)
	return c, nil
}

// holds reports whether the record in the store is still the claimed one. The key's stripe is
// locked.
func (c *Claim) holds() bool { return c.db.watch.Load().claims.get(c.Key) == c }

// Finish removes the record for good.
func (c *Claim) Finish(p *Pending) error {
	return c.db.modify(p, c.Key, func(b *batch) error {
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
func (c *Claim) GiveBack(p *Pending) error {
	if c.xt == record.MaxXT && c.show() {
		return nil
	}
	err := c.db.modify(p, c.Key, func(b *batch) error {
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
		w.claims.show(c)
	}
	stripe.Unlock()
	if held && w.opts.News != nil {
		w.opts.News(c.Key)
	}
	return held
}

// claims is the records of one database that are claimed, and those that were given back although
// their new expiration time could not be stored. A caller that enters or removes a key holds its
// stripe.
type claims struct {
	all hiding // the store without the claimed records

	mu   sync.RWMutex // protects keys and late
	keys map[string]*Claim
	// records whose expiration time in the store does not count any more, see Claim.GiveBack; with
	// that time
	late map[string]int64
	n    atomic.Int64 // len(keys)+len(late), to be looked at first
}

func (c *claims) init(d *core) {
	c.keys, c.late = map[string]*Claim{}, map[string]int64{}
	c.all = hiding{d.store, c}
}

// get returns the claim of a key, nil for none.
func (c *claims) get(key []byte) *Claim {
	if c.n.Load() == 0 {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.keys[string(key)]
}

// lateness returns the expiration time that the store has of a record in late.
func (c *claims) lateness(key []byte) (xt int64, late bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	xt, late = c.late[string(key)]
	return xt, late
}

// keeps reports whether a record must not be collected, whatever its expiration time.
func (c *claims) keeps(key []byte) bool {
	if c.n.Load() == 0 {
		return false
	}
	_, late := c.lateness(key)
	return late || c.get(key) != nil
}

func (c *claims) add(key []byte, claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[string(key)] = claim
	delete(c.late, string(key))
	c.counted()
}

// show makes the record of a claim visible as it is in the store, but without an expiration time.
func (c *claims) show(claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, string(claim.Key))
	if claim.xt != record.MaxXT {
		c.late[string(claim.Key)] = claim.xt
	}
	c.counted()
}

// counted is called at the end of every change, under mu.
func (c *claims) counted() { c.n.Store(int64(len(c.keys) + len(c.late))) }

// overwritten forgets a record that was stored anew or removed. A claim of the record keeps only
// its own copy.
func (c *claims) overwritten(u *ulog.Update) {
	if c.n.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.Op == ulog.OpClear {
		clear(c.keys)
		clear(c.late)
	} else {
		delete(c.keys, string(u.Key))
		delete(c.late, string(u.Key))
	}
	c.counted()
}

// hiding is a store without its claimed records. Records in claims.late do not expire in it.
type hiding struct {
	store.Store
	claims *claims
}

// Get finds what is not claimed.
func (h *hiding) Get(dst, key []byte, r store.Reader) ([]byte, bool, error) {
	if h.claims.get(key) != nil {
		return dst, false, nil
	}
	at := len(dst)
	dst, found, err := h.Store.Get(dst, key, r)
	if _, late := h.claims.lateness(key); late && found && err == nil {
		record.SetForever(dst[at:])
	}
	return dst, found, err
}

// Scan visits the records that are not claimed. It passes over claimed records in pieces, between
// which it asks whether to go on.
func (h *hiding) Scan(from store.Start, visit func(key, value []byte) bool) error {
	for {
		var last []byte // of a piece
		hidden := 0
		err := h.Store.Scan(from, func(key, value []byte) bool {
			if h.claims.get(key) == nil {
				hidden = 0
				return visit(key, h.claims.asKept(key, value))
			}
			if hidden++; hidden == store.AskEvery {
				last = bytes.Clone(key)
			}
			return last == nil
		})
		if err != nil || last == nil {
			return err
		}
		if from.Ask != nil {
			if err := from.Ask(); err != nil {
				return err
			}
		}
		from = store.Start{Key: last, Backward: from.Backward, Ask: from.Ask}
	}
}

// asKept returns the value of a record as clients see it: a record in late does not expire.
func (c *claims) asKept(key, value []byte) []byte {
	if _, late := c.lateness(key); late {
		value = slices.Clone(value)
		record.SetForever(value)
	}
	return value
}

// Count leaves out what is claimed.
func (h *hiding) Count() (int64, error) {
	n, err := h.Store.Count()
	h.claims.mu.RLock()
	defer h.claims.mu.RUnlock()
	return max(0, n-int64(len(h.claims.keys))), err
}

// unclaimed returns s without the claimed records.
func (d *core) unclaimed(s store.Store) store.Store {
	w := d.watch.Load()
	if w == nil || !w.opts.Claims || w.claims.n.Load() == 0 {
		return s
	}
	if s == d.store {
		return &w.claims.all
	}
	return &hiding{s, &w.claims}
}

// keeps reports whether a record must not be collected: a client has claimed the message that it
// holds, or has given the message back.
func (d *core) keeps(key []byte) bool {
	w := d.watch.Load()
	return w != nil && w.claims.keeps(key)
}
