package memstore

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// HashOptions are the options of NewHash. There are none: the number of buckets that a user gives
// is not needed.
type HashOptions struct{}

// A Hash is a store without a useful order. The order of the records does not change as long as the
// Hash lives. So a Scan that continues from a key meets each record exactly once, if the record
// exists all the time.
type Hash struct {
	writer  sync.Mutex // held over a change; guards plan, touched and freezes
	plan    plan
	touched tableSet // by the plan
	freezes freezes
	count   atomic.Int64

	locks [tableCount]sync.RWMutex // lock i guards table i; all together guard index.arena
	index *index
}

var (
	_ store.Preparer = (*Hash)(nil)
	_ store.Warmer   = (*Hash)(nil)
)

// NewHash returns an empty Hash.
func NewHash(HashOptions) *Hash {
	h := &Hash{index: newIndex(0)}
	h.freezes.init(&h.writer, h.index.place)
	return h
}

// Get appends the value of key to dst. The error is that of r.
func (h *Hash) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	dst, large, pin, found := h.getOrPin(dst, key)
	if pin != nil {
		defer pin.Release()
		dst, err = store.Append(dst, large, r)
	}
	return dst, found, err
}

// getOrPin works as Tree.Look does.
func (h *Hash) getOrPin(dst, key []byte) (got, large []byte, pin *slab.Pin, found bool) {
	hash := h.index.hash(key)
	lock := &h.locks[tableOf(hash)]
	lock.RLock()
	defer lock.RUnlock()
	at := h.index.get(hash, key)
	if at == 0 {
		return dst, nil, nil, false
	}
	_, v := h.index.record(at)
	if pin = pinLarge(h.index.arena, at, v); pin != nil {
		return dst, v, pin, true
	}
	return append(dst, v...), nil, nil, true
}

// Warm implements store.Warmer.
func (h *Hash) Warm(keys [][]byte) {
	for len(keys) > 0 {
		n := min(len(keys), warmKeys)
		h.warm(keys[:n])
		keys = keys[n:]
	}
}

func (h *Hash) warm(keys [][]byte) {
	var room [warmKeys]uint64
	var touched tableSet
	hashes := room[:len(keys)]
	for i, key := range keys {
		hashes[i] = h.index.hash(key)
		touched.add(tableOf(hashes[i]))
	}
	touched.each(h.rlock)
	defer touched.each(h.runlock)
	if worthwhile(len(keys), h.index.arena) {
		h.index.warm(hashes, true)
	}
}

// Prepare copies the large values of updates that are about to be applied into records, so that
// Apply need not copy them under its locks.
func (h *Hash) Prepare(ups []update.Update) { h.plan.copyLarge(h.index.links, ups) }

// Forget frees what Prepare has made for updates that are not applied after all.
func (h *Hash) Forget(ups []update.Update) { h.plan.prepared.Forget(ups) }

// Apply makes the updates visible all at once: it holds the locks of all tables that they touch.
func (h *Hash) Apply(_ update.Stamp, ups []update.Update) {
	h.writer.Lock()
	defer h.writer.Unlock()
	h.plan.prepare(h.index, ups)
	h.touched.of(&h.plan)
	h.plan.warm(h.index) // only the owner of writer changes tables and records
	kept := h.freezes.prepare(&h.plan, h.index)
	cleared := h.run()
	if cleared != nil && !kept {
		cleared.Release()
	}
	h.plan.finish(h.index)
}

// Freeze returns the store as it is at an instant. The error is always nil.
func (h *Hash) Freeze(instant func(take func())) (store.Frozen, error) {
	return h.freezes.freeze(instant, h, h.count.Load), nil
}

// run carries the plan out under the locks of the touched tables. After a clear it returns the old
// arena.
func (h *Hash) run() (cleared *slab.Arena) {
	if h.plan.fresh == nil && len(h.plan.steps) == 1 {
		h.runOne(&h.plan.steps[0])
		return nil
	}
	h.touched.each(func(i int) { h.locks[i].Lock() })
	defer h.touched.each(func(i int) { h.locks[i].Unlock() })
	if h.plan.fresh != nil {
		cleared = h.index.reset(h.plan.fresh)
		h.count.Store(0)
	}
	for i := range h.plan.steps {
		h.step(&h.plan.steps[i])
	}
	return cleared
}

// runOne is run for a plan of one step.
func (h *Hash) runOne(s *step) {
	lock := &h.locks[tableOf(s.hash)]
	lock.Lock()
	defer lock.Unlock()
	h.step(s)
}

// step carries one update out. The caller holds the lock of its table.
func (h *Hash) step(s *step) {
	var old slab.Addr
	if s.at != 0 {
		if old = h.index.put(s.hash, s.key, s.at); old == 0 {
			h.count.Add(1)
		}
	} else if old = h.index.remove(s.hash, s.key); old != 0 {
		h.count.Add(-1)
	}
	if old != 0 {
		h.plan.old = append(h.plan.old, old)
	}
}

// Scan visits the records from a place of the order. It holds one table's lock at a time, and for
// at most scanBatch records. It cannot go backward.
func (h *Hash) Scan(from store.Start, visit func(key, value []byte) bool) error {
	h.index.scan(h, from, visit)
	return nil
}

func (h *Hash) rlock(table int)   { h.locks[table].RLock() }
func (h *Hash) runlock(table int) { h.locks[table].RUnlock() }

// Count returns the number of records. The error is always nil.
func (h *Hash) Count() (int64, error) { return h.count.Load(), nil }

// Size returns the bytes of memory that records and index occupy.
func (h *Hash) Size() int64 { return h.arena().Used() }

// Mapped returns the bytes taken from the operating system. Pages that were never touched cost
// nothing.
func (h *Hash) Mapped() int64 { return h.arena().Mapped() }

func (h *Hash) arena() *slab.Arena {
	h.locks[0].RLock()
	defer h.locks[0].RUnlock()
	return h.index.arena
}

// Close gives all memory back. The error is always nil.
func (h *Hash) Close() error {
	h.Apply(0, []update.Update{{Op: update.OpClear}})
	h.arena().Wait()
	return nil
}

// tableSet is a set of table numbers.
type tableSet [tableCount / 64]uint64

// of makes s the tables that a plan touches.
func (s *tableSet) of(p *plan) {
	var word uint64
	if p.fresh != nil {
		word = ^word // all
	}
	for i := range s {
		s[i] = word
	}
	for i := range p.steps {
		s.add(tableOf(p.steps[i].hash))
	}
}

func (s *tableSet) add(table int) { s[table/64] |= 1 << (table % 64) }

// each calls f for the members in ascending order.
func (s *tableSet) each(f func(table int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			f(i*64 + bits.TrailingZeros64(word))
		}
	}
}
