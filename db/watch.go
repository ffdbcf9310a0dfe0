package db

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// versionSlots is the number of slots, a power of two. Two keys that share a slot share its number:
// a client that compares versions is then told of a change that did not happen, never the reverse.
// With a million slots that happens to one in a million updates of other keys.
const versionSlots = 1 << 20

// WatchOptions are what a database keeps while it is used, besides its records.
type WatchOptions struct {
	// numbers that change with every update of a key, see DB.Unique; 8 MiB
	Uniques bool
	Claims  bool // records can be claimed, see DB.Claim
	// called with the key of each record stored or given back; quick, must not use the database;
	// may be nil
	News func(key []byte)
	// called when a shared transaction has not been committed: what it had removed is back; as News
	Undone func()
}

// watch sees every update of a database, from whatever protocol, after the update has become
// visible and before its keys are unlocked.
type watch struct {
	opts   WatchOptions
	seed   maphash.Seed
	slots  []atomic.Uint64 // version of each slot; 0 means first
	first  uint64
	last   atomic.Uint64 // newest version given out
	claims claims
}

func (w *watch) slot(key []byte) *atomic.Uint64 {
	return &w.slots[maphash.Bytes(w.seed, key)%versionSlots]
}

// committed takes note of updates. version is the number that their keys get, 0 for a new number.
func (w *watch) committed(ups []ulog.Update, version uint64) {
	if w.slots != nil && version == 0 {
		version = w.last.Add(1)
	}
	for i := range ups {
		u := &ups[i]
		if w.slots != nil {
			w.slot(u.Key).Store(version)
		}
		w.claims.overwritten(u)
		if u.Op == ulog.OpSet && w.opts.News != nil {
			w.opts.News(u.Key)
		}
	}
}

// undone is called when a shared transaction has been aborted, before the keys are unlocked.
func (w *watch) undone() {
	if w != nil && w.opts.Undone != nil {
		w.opts.Undone()
	}
}

// claimed is a record that is claimed.
type claimed struct {
	key []byte
	xt  int64 // expiration time in the store
}

// claims is the records of one database that are claimed, and those that were given back although
// their new expiration time could not be stored. A caller that enters or removes a key holds its
// stripe.
type claims struct {
	all hiding // the store without the claimed records

	mu   sync.RWMutex // protects keys and late
	keys map[string]*claimed
	// records whose expiration time in the store does not count any more, see Claim.GiveBack; with
	// that time
	late map[string]int64
	n    atomic.Int64 // len(keys)+len(late), to be looked at first
}

func (c *claims) init(s store.Store) {
	c.keys, c.late = map[string]*claimed{}, map[string]int64{}
	c.all = hiding{s, c}
}

// get returns the claim of a key, nil for none.
func (c *claims) get(key []byte) *claimed {
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

func (c *claims) add(claim *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[string(claim.key)] = claim
	delete(c.late, string(claim.key))
	c.counted()
}

// show makes the record of a claim visible as it is in the store, but without an expiration time.
func (c *claims) show(claim *claimed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, string(claim.key))
	if claim.xt != record.MaxXT {
		c.late[string(claim.key)] = claim.xt
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
