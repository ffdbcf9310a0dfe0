package db

import (
	"hash/maphash"
	"sync/atomic"

	"gotycoon/db/record"
	"gotycoon/ulog"
)

// versionSlots is the number of slots, a power of two. Two keys that share a slot share its number:
// a client that compares versions is then told of a change that did not happen, never the reverse.
// With a million slots that happens to one in a million updates of other keys.
const versionSlots = 1 << 20

// versionBits is the size of a version. Programs that keep a version as a floating-point number do
// not round it.
const versionBits = 53

// WatchOptions are what a database keeps while it is used, besides its records.
type WatchOptions struct {
	// numbers that change with every update of a key, see DB.Version; 8 MiB
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

// Watch begins to keep what the options ask for. It is called at most once, before anybody else
// uses the database.
func (d *DB) Watch(o WatchOptions) {
	w := &watch{opts: o, seed: maphash.MakeSeed(), first: uint64(d.now().UnixMicro())}
	w.last.Store(w.first)
	if o.Uniques {
		w.slots = make([]atomic.Uint64, versionSlots)
	}
	w.claims.init(&d.core)
	d.watch.Store(w)
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

// Unique returns a number that changes with every update of the key, by whatever protocol, and with
// every restart. To learn the number of a value, ask for the number first. Needs
// WatchOptions.Uniques.
//
// The number is not stored: a table in memory has the number of the last update for each hash of a
// key. Numbers begin with the microseconds of the start, and so are greater than all of the process
// before.
func (d *DB) Unique(key []byte) uint64 {
	w := d.watch.Load()
	n := w.slot(key).Load()
	if n == 0 {
		n = w.first
	}
	return d.mixed(n)
}

// mixed adds the number of clears and undone transactions, which change every number. The result is
// never 0.
func (d *core) mixed(n uint64) uint64 {
	const spread = 0x9e3779b97f4a7c15
	n = (n + d.generation.Load()*spread) & (1<<versionBits - 1)
	return max(n, 1)
}

// AcceptUnique is Accept; it returns the number (see Unique) that the record has afterwards.
func (d *DB) AcceptUnique(p *Pending, key []byte, visit record.Visitor) (version uint64, err error) {
	return d.withUnique(p, key, func(b *batch) error { return b.accept(key, visit) })
}

// DecideUnique is AcceptUnique for a decision that needs to know only whether there is a record:
// the value is not read.
func (d *DB) DecideUnique(p *Pending, key []byte, decide func(found bool) record.Verdict) (version uint64, err error) {
	return d.withUnique(p, key, func(b *batch) error {
		_, xt, found, err := b.look(key)
		if err == nil {
			b.obey(key, xt, found, decide(found))
		}
		return err
	})
}

// withUnique is modify; it returns the number that the record has afterwards.
func (d *DB) withUnique(p *Pending, key []byte, body func(b *batch) error) (version uint64, err error) {
	w := d.watch.Load()
	err = d.modify(p, key, func(b *batch) error {
		if err := body(b); err != nil {
			return err
		}
		if len(b.ups) == 0 {
			version = d.Unique(key)
			return nil
		}
		b.version = w.last.Add(1)
		version = d.mixed(b.version)
		return nil
	})
	return version, err
}
