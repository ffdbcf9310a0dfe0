package counter

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"gotycoon/counter/frame"
)

const (
	maxStripes  = 1024 // locks of a table, at most
	counterCost = 64   // what Stats says that a counter takes, in bytes beside its name

	freeHoldings = 1024 // counters that a connection has without any count in used
	holdingStep  = 1024 // so many more are counted at once
	holdingCost  = 48   // bytes
)

// table holds the counters: a hash table of fixed size whose buckets share a number of locks.
type table struct {
	seed    maphash.Seed
	stripes []stripe
	buckets uint64 // in a stripe
	limit   int64  // largest value of used

	period  atomic.Uint32 // the number of the current interval
	created atomic.Uint64 // counters ever
	used    atomic.Int64  // bytes as Stats counts them, and those of large holdings
}

// stripe is the part of a table that one lock protects.
type stripe struct {
	mu     sync.Mutex
	chains []*counter // a bucket each; nil until the stripe has its first counter
	_      [32]byte   // a cache line for each lock
}

// counter is a named counter. The lock of its stripe protects all but stripe and name.
type counter struct {
	next    *counter // in its bucket
	stripe  *stripe
	name    string
	current uint32 // consumption; each maximum that it was compared with has 32 bits
	maximum uint32 // largest consumption in the interval period
	period  uint32 // interval of the latest change
}

func newTable(buckets int, limit int64) *table {
	stripes := min(buckets, maxStripes)
	return &table{
		seed:    maphash.MakeSeed(),
		stripes: make([]stripe, stripes),
		buckets: uint64((buckets + stripes - 1) / stripes),
		limit:   limit,
	}
}

// locate returns the stripe of a name and its bucket there.
func (t *table) locate(name []byte) (*stripe, uint64) {
	hash := maphash.Bytes(t.seed, name)
	high, low := bits.Mul64(hash, uint64(len(t.stripes))) // hash / 2^64 of them; what is left chooses the bucket
	bucket, _ := bits.Mul64(low, t.buckets)
	return &t.stripes[high], bucket
}

// find returns a counter, nil where there is none. The caller holds mu.
func (s *stripe) find(bucket uint64, name []byte) *counter {
	if s.chains == nil {
		return nil
	}
	c := s.chains[bucket]
	for c != nil && c.name != string(name) {
		c = c.next
	}
	return c
}

// get returns the consumption of a counter.
func (t *table) get(name []byte) (uint32, frame.Status) {
	s, bucket := t.locate(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(bucket, name)
	if c == nil {
		return 0, frame.NotFound
	}
	return c.current, frame.OK
}

// acquire adds n to a counter, which is made if there is none, unless it would be over maximum. It is given to h.
func (t *table) acquire(h *holding, name []byte, n, maximum uint32) frame.Status {
	s, bucket := t.locate(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(bucket, name)
	if c == nil {
		if c = t.create(s, bucket, name); c == nil {
			return frame.OutOfMemory
		}
	}
	if uint64(c.current)+uint64(n) > uint64(maximum) {
		return frame.NotAvailable
	}
	if !t.roomFor(h, c) {
		return frame.OutOfMemory
	}
	c.current += n
	if now := t.period.Load(); c.period != now {
		c.period, c.maximum = now, c.current
	}
	c.maximum = max(c.maximum, c.current)
	h.add(c, n)
	return frame.OK
}

// create makes a counter, or returns nil when there is no room for it. The caller holds s.mu.
func (t *table) create(s *stripe, bucket uint64, name []byte) *counter {
	cost := counterCost + int64(len(name))
	if t.used.Add(cost) > t.limit {
		t.used.Add(-cost)
		return nil
	}
	if s.chains == nil {
		s.chains = make([]*counter, t.buckets)
	}
	t.created.Add(1)
	c := &counter{next: s.chains[bucket], stripe: s, name: string(name), period: t.period.Load()}
	s.chains[bucket] = c
	return c
}

// release takes n from a counter and from h, which must have as much of it.
func (t *table) release(h *holding, name []byte, n uint32) frame.Status {
	s, bucket := t.locate(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.find(bucket, name)
	if c == nil {
		return frame.NotFound
	}
	if !h.remove(c, n) {
		return frame.NotAcquired
	}
	t.giveBack(c, n)
	return frame.OK
}

// releaseAll takes all that h has from its counters.
func (t *table) releaseAll(h *holding) {
	for c, n := range h.amounts {
		c.stripe.mu.Lock()
		t.giveBack(c, n)
		c.stripe.mu.Unlock()
	}
	h.amounts = nil
	t.used.Add(-int64(h.paid) * holdingCost)
	h.paid = 0
}

// roomFor tells whether h may have another counter. A table whose counters have their limit could else fill the memory, once for each connection.
func (t *table) roomFor(h *holding, c *counter) bool {
	if len(h.amounts) < freeHoldings+h.paid || h.amounts[c] > 0 {
		return true
	}
	if t.used.Add(holdingStep*holdingCost) > t.limit {
		t.used.Add(-holdingStep * holdingCost)
		return false
	}
	h.paid += holdingStep
	return true
}

// giveBack takes n from a counter. The caller holds the lock of its stripe. The maximum of a new interval is what there
// was at its beginning.
func (t *table) giveBack(c *counter, n uint32) {
	if now := t.period.Load(); c.period != now {
		c.period, c.maximum = now, c.current
	}
	c.current -= n
}

// holding is what one connection has acquired. It belongs to the connection's goroutine.
//
// A counter that is in it has a consumption, so that it is not collected and the pointer stays that of the name.
type holding struct {
	amounts map[*counter]uint32 // never 0; nil until something is acquired
	paid    int                 // how many of them count in table.used
}

func (h *holding) add(c *counter, n uint32) {
	if h.amounts == nil {
		h.amounts = map[*counter]uint32{}
	}
	h.amounts[c] += n
}

// remove takes n away, or returns false when there is not as much, or nothing at all.
func (h *holding) remove(c *counter, n uint32) bool {
	have := h.amounts[c]
	switch {
	case have == 0 || n > have:
		return false
	case n == have:
		delete(h.amounts, c)
	default:
		h.amounts[c] = have - n
	}
	return true
}
