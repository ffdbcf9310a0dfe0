package db

import (
	"bytes"
	"sync"
	"sync/atomic"

	"gotycoon/db/store"
	"gotycoon/ulog"
)

// Claim is a record that one client has taken and nobody else sees, until it is finished or given back.
//
// That it is claimed is known in memory only. In the store and in the log the record stays, so that after a crash it is there
// again: what has been taken and not finished is never lost.
type Claim struct {
	Key, Value []byte
	xt         int64
	db         *DB
}

// claims is the records of one database that are claimed. Who enters or removes a claim holds the stripe of its key.
type claims struct {
	all hiding // the store without the claimed records

	mu   sync.RWMutex // protects keys
	keys map[string]*Claim
	n    atomic.Int64 // len(keys), to be looked at first
}

func (c *claims) init(d *DB) {
	c.keys = map[string]*Claim{}
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

func (c *claims) add(key []byte, claim *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[string(key)] = claim
	c.n.Store(int64(len(c.keys)))
}

func (c *claims) drop(key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, string(key))
	c.n.Store(int64(len(c.keys)))
}

// overwritten ends the hiding of a record that somebody has stored anew or removed. The claim then has a copy only.
func (c *claims) overwritten(u *ulog.Update) {
	switch {
	case c.n.Load() == 0:
	case u.Op == ulog.OpClear:
		c.mu.Lock()
		clear(c.keys)
		c.n.Store(0)
		c.mu.Unlock()
	default:
		c.drop(u.Key)
	}
}

// hiding is a store without its claimed records.
type hiding struct {
	store.Store
	claims *claims
}

// Get finds what is not claimed.
func (h *hiding) Get(dst, key []byte) ([]byte, bool, error) {
	if h.claims.get(key) != nil {
		return dst, false, nil
	}
	return h.Store.Get(dst, key)
}

// Scan visits what is not claimed.
func (h *hiding) Scan(from store.Start, visit func(key, value []byte) bool) error {
	return h.Store.Scan(from, func(key, value []byte) bool {
		return h.claims.get(key) != nil || visit(key, value)
	})
}

// Count leaves out what is claimed.
func (h *hiding) Count() (int64, error) {
	n, err := h.Store.Count()
	return max(0, n-h.claims.n.Load()), err
}

// unclaimed is s without the claimed records.
func (d *DB) unclaimed(s store.Store) store.Store {
	w := d.watch.Load()
	if w == nil || !w.opts.Claims || w.claims.n.Load() == 0 {
		return s
	}
	if s == d.store {
		return &w.claims.all
	}
	return &hiding{s, &w.claims}
}

// Claim claims the first record whose key begins with prefix and is not before from. It returns ErrNoRecord when there is none, and
// in databases without an order. p is as for every operation. Needs WatchOptions.Claims.
func (d *DB) Claim(p *Pending, prefix, from []byte) (*Claim, error) {
	claim, err := d.claimFirst(prefix, from)
	if owed := d.oweAll(p); owed != nil {
		return claim, owed
	}
	return claim, err
}

func (d *DB) claimFirst(prefix, from []byte) (*Claim, error) {
	if d.refuses() {
		return nil, ErrReadOnly
	}
	if !d.expr.Kind.Ordered() {
		return nil, ErrNoRecord
	}
	if bytes.Compare(from, prefix) < 0 {
		from = prefix
	}
	for {
		key, err := d.firstLive(prefix, from)
		if err != nil {
			return nil, err
		}
		claim, err := d.claim(key)
		if claim != nil || err != nil {
			return claim, err
		}
		from = key // somebody was faster
	}
}

// firstLive returns the first key that Claim can take.
func (d *DB) firstLive(prefix, from []byte) (found []byte, err error) {
	now := d.seconds()
	start := store.Start{Key: from, Inclusive: true}
	if !d.bytewise() { // in another order they may be anywhere
		start = store.Start{Edge: true}
	}
	err = d.records().Scan(start, func(key, stored []byte) bool {
		if !bytes.HasPrefix(key, prefix) {
			return start.Edge
		}
		if xt, _, ok := d.split(stored); ok && !expired(xt, now) {
			found = bytes.Clone(key)
		}
		return found == nil
	})
	if err != nil {
		return nil, systemError(err)
	}
	if found == nil {
		return nil, ErrNoRecord
	}
	return found, nil
}

// claim claims the record of key, if it is still there and nobody else's.
func (d *DB) claim(key []byte) (*Claim, error) {
	stripe := d.lockKey(key)
	defer stripe.Unlock()
	value, xt, found, err := d.read(nil, key)
	if err != nil || !found {
		return nil, err
	}
	c := &Claim{Key: key, Value: value, xt: xt, db: d}
	d.watch.Load().claims.add(key, c)
	return c, nil
}

// holds tells whether the record in the store is still the claimed one. The key's stripe is locked.
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

// GiveBack makes the record visible again, under its old key and without an expiration time, also when somebody has removed or
// replaced it meanwhile.
func (c *Claim) GiveBack(p *Pending) error {
	quiet := false
	err := c.db.modify(p, c.Key, func(b *batch) error {
		if quiet = c.holds() && c.xt == MaxXT; quiet {
			c.db.watch.Load().claims.drop(c.Key)
			return nil
		}
		b.set(c.Key, c.Value, MaxXT)
		return nil
	})
	if news := c.db.watch.Load().opts.News; quiet && news != nil {
		news(c.Key)
	}
	return err
}
