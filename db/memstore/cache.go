package memstore

import (
	"sync"
	"sync/atomic"

	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// cacheSlots is the number of parts of a Cache. Each part has an LRU list of its own. Clients can
// see the number in how many records a capacity allows: a slot may hold capcnt/16+1 records, as in
// the original.
const cacheSlots = 16

// indexShare is what a record is assumed to cost in the index, for the capacity in bytes.
const indexShare = 13

// CacheOptions are the options of NewCache. A value of 0 or less means no limit.
type CacheOptions struct {
	CapCount int64 // capcnt: records; each slot may hold CapCount/16+1
	CapSize  int64 // capsiz: bytes of records and index; each slot may hold a sixteenth
}

// A Cache is a Hash with a capacity. When a set exceeds it, the least recently used records of the
// same slot are dropped; Get and set count as use. The record just set is never dropped.
type Cache struct {
	writer  sync.Mutex // held over a change; guards plan and freezes
	plan    plan
	freezes freezes
	count   atomic.Int64

	capCount int64 // of a slot
	capSize  int64

	slots [cacheSlots]cacheSlot
	index *index // a slot's lock guards its share of the tables; all together guard index.arena
}

// A cacheSlot is the part of a Cache with the same first four bits of the hash.
type cacheSlot struct {
	mu    sync.Mutex // guards the fields below, the slot's tables and the links of its records
	used  lru
	count int64
	bytes int64
}

var _ store.Preparer = (*Cache)(nil)

// NewCache returns an empty Cache.
func NewCache(o CacheOptions) *Cache {
	c := &Cache{index: newIndex(linkBytes)}
	c.freezes.init(&c.writer, c.index.place)
	if o.CapCount > 0 {
		c.capCount = o.CapCount/cacheSlots + 1
	}
	if o.CapSize > 0 {
		c.capSize = max(1, o.CapSize/cacheSlots)
	}
	return c
}

// slotOf returns the slot for a table.
func (c *Cache) slotOf(table int) *cacheSlot { return &c.slots[table/(tableCount/cacheSlots)] }

// Get appends the value of key to dst and notes that the record was used. The error is that of r.
func (c *Cache) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	dst, large, pin, found := c.getOrPin(dst, key)
	if pin != nil {
		defer pin.Release()
		dst, err = store.Append(dst, large, r)
	}
	return dst, found, err
}

// getOrPin works as Tree.Look does.
func (c *Cache) getOrPin(dst, key []byte) (got, large []byte, pin *slab.Pin, found bool) {
	hash := c.index.hash(key)
	s := c.slotOf(tableOf(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	at := c.index.get(hash, key)
	if at == 0 {
		return dst, nil, nil, false
	}
	s.used.touch(c.index.arena, at)
	_, v := c.index.record(at)
	if pin = pinLarge(c.index.arena, at, v); pin != nil {
		return dst, v, pin, true
	}
	return append(dst, v...), nil, nil, true
}

// Prepare copies the large values of updates that are about to be applied into records, so that
// Apply need not copy them under its locks.
func (c *Cache) Prepare(ups []update.Update) { c.plan.copyLarge(c.index.links, ups) }

// Forget frees what Prepare has made for updates that are not applied after all.
func (c *Cache) Forget(ups []update.Update) { c.plan.prepared.Forget(ups) }

// Apply makes the updates visible all at once: it holds the locks of all slots that they touch.
func (c *Cache) Apply(_ update.Stamp, ups []update.Update) {
	c.writer.Lock()
	defer c.writer.Unlock()
	c.plan.prepare(c.index, ups)
	kept := c.freezes.prepare(&c.plan, c.index)
	cleared := c.run(c.plan.slots())
	if cleared != nil && !kept {
		cleared.Release()
	}
	c.plan.finish(c.index)
}

// Freeze returns the store as it is at an instant. The error is always nil.
func (c *Cache) Freeze(instant func(take func())) (store.Frozen, error) {
	return c.freezes.freeze(instant, c, c.count.Load), nil
}

// run carries the plan out under the locks of the slots. After a clear it returns the old arena.
func (c *Cache) run(touched slotSet) (cleared *slab.Arena) {
	c.lock(touched)
	defer c.unlock(touched)
	if c.plan.fresh != nil {
		cleared = c.index.reset(c.plan.fresh)
		c.count.Store(0)
		for i := range c.slots {
			s := &c.slots[i]
			s.used, s.count, s.bytes = lru{}, 0, 0
		}
	}
	for i := range c.plan.steps {
		c.step(&c.plan.steps[i])
	}
	return cleared
}

// step carries one update out. The caller holds the lock of its slot.
func (c *Cache) step(st *step) {
	s := c.slotOf(tableOf(st.hash))
	if st.at == 0 {
		c.unlink(s, c.index.remove(st.hash, st.key))
		return
	}
	c.unlink(s, c.index.put(st.hash, st.key, st.at))
	s.used.add(c.index.arena, st.at)
	c.account(s, 1, st.at)
	for s.used.oldest != st.at && c.full(s) {
		c.evict(s)
	}
}

// unlink takes a record out of its slot that the index does not refer to any more. The address 0
// stands for no record.
func (c *Cache) unlink(s *cacheSlot, at slab.Addr) {
	if at == 0 {
		return
	}
	s.used.drop(c.index.arena, at)
	c.account(s, -1, at)
	c.plan.old = append(c.plan.old, at)
}

// account adds a record to the sums, or takes it out of them.
func (c *Cache) account(s *cacheSlot, sign int64, at slab.Addr) {
	c.count.Add(sign)
	s.count += sign
	s.bytes += sign * (c.index.blockSize(at) + indexShare)
}

func (c *Cache) full(s *cacheSlot) bool {
	return c.capCount > 0 && s.count > c.capCount || c.capSize > 0 && s.bytes > c.capSize
}

// evict drops the least recently used record of a slot.
func (c *Cache) evict(s *cacheSlot) {
	key, value := c.index.record(s.used.oldest)
	c.freezes.save(key, value, true)
	c.unlink(s, c.index.remove(c.index.hash(key), key))
}

// Scan visits the records from a place of the order, which does not count as use. It holds one
// slot's lock at a time, and for at most scanBatch records. It cannot go backward.
func (c *Cache) Scan(from store.Start, visit func(key, value []byte) bool) error {
	c.index.scan(c, from, visit)
	return nil
}

func (c *Cache) rlock(table int) { c.slotOf(table).mu.Lock() }

func (c *Cache) runlock(table int) { c.slotOf(table).mu.Unlock() }

// Count returns the number of records. The error is always nil.
func (c *Cache) Count() (int64, error) { return c.count.Load(), nil }

// Size returns the bytes of memory that records and index occupy.
func (c *Cache) Size() int64 { return c.arena().Used() }

// Mapped returns the bytes taken from the operating system. Pages that were never touched cost
// nothing.
func (c *Cache) Mapped() int64 { return c.arena().Mapped() }

func (c *Cache) arena() *slab.Arena {
	c.slots[0].mu.Lock()
	defer c.slots[0].mu.Unlock()
	return c.index.arena
}

// Close gives all memory back. The error is always nil.
func (c *Cache) Close() error {
	c.Apply(0, []update.Update{{Op: update.OpClear}})
	c.arena().Wait()
	return nil
}

// slotSet is a set of slot numbers.
type slotSet uint16

// slots returns the slots that a plan touches.
func (p *plan) slots() slotSet {
	if p.fresh != nil {
		return 1<<cacheSlots - 1
	}
	var set slotSet
	for i := range p.steps {
		set |= 1 << (tableOf(p.steps[i].hash) / (tableCount / cacheSlots))
	}
	return set
}

// lock locks slots in ascending order.
func (c *Cache) lock(set slotSet) {
	for i := range c.slots {
		if set&(1<<i) != 0 {
			c.slots[i].mu.Lock()
		}
	}
}

func (c *Cache) unlock(set slotSet) {
	for i := range c.slots {
		if set&(1<<i) != 0 {
			c.slots[i].mu.Unlock()
		}
	}
}

// A record of a Cache begins with the addresses of the next newer and the next older record of its
// slot, 5 bytes each, little-endian.
const (
	linkSize  = slab.AddrBits / 8
	linkBytes = 2 * linkSize

	newer = 0
	older = linkSize
)

// An lru is a list of records in the order of their last use.
type lru struct{ newest, oldest slab.Addr }

// add makes a record that is in no list the newest.
func (l *lru) add(a *slab.Arena, at slab.Addr) {
	setLink(a, at, newer, 0)
	setLink(a, at, older, l.newest)
	if l.newest != 0 {
		setLink(a, l.newest, newer, at)
	} else {
		l.oldest = at
	}
	l.newest = at
}

// drop takes a record out of the list.
func (l *lru) drop(a *slab.Arena, at slab.Addr) {
	n, o := link(a, at, newer), link(a, at, older)
	if n != 0 {
		setLink(a, n, older, o)
	} else {
		l.newest = o
	}
	if o != 0 {
		setLink(a, o, newer, n)
	} else {
		l.oldest = n
	}
}

// touch makes a record of the list the newest.
func (l *lru) touch(a *slab.Arena, at slab.Addr) {
	if l.newest != at {
		l.drop(a, at)
		l.add(a, at)
	}
}

func link(a *slab.Arena, at slab.Addr, which int) slab.Addr {
	return getAddr(a.Bytes(at)[which:])
}

func setLink(a *slab.Arena, at slab.Addr, which int, to slab.Addr) {
	putAddr(a.Bytes(at)[which:], to)
}
