package db

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// claims is the records of one database that are claimed, and those that were given back although their new expiration time could
// not be stored. Who enters or removes a key holds its stripe.
type claims struct {
	all hiding // the store without the claimed records

	mu   sync.RWMutex // protects keys and late
	keys map[string]*Claim
	late map[string]int64 // records whose expiration time in the store does not count any more, see Claim.GiveBack; with that time
	n    atomic.Int64     // len(keys)+len(late), to be looked at first
}

func (c *claims) init(d *DB) {
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

// keeps reports whether a record is not to be collected, whatever its expiration time.
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

// show makes the record of a claim visible as it is in the store, but for ever.
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

// overwritten forgets a record that somebody has stored anew or removed. A claim of it then has a copy only.
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

// hiding is a store without its claimed records. Records in claims.late are in it for ever.
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

// Scan visits what is not claimed. It passes over claimed records in pieces, between which it asks.
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

// asKept returns the value of a record as it is to be seen: one in late is for ever.
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

// keeps reports whether a record must not be collected: the message that it holds is in the hands of a client, or has come back.
func (d *DB) keeps(key []byte) bool {
	w := d.watch.Load()
	return w != nil && w.claims.keeps(key)
}
