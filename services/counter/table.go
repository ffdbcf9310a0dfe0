package counter

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"gotycoon/client/wire/counter/frame"
)

const (
	maxStripes  = 1024 // mutexes of a table, at most
	counterCost = 64   // bytes that Stats counts for a counter, beside its name

	freeHoldings = 1024 // counters that a connection may hold without a charge to used
	holdingStep  = 1024 // beyond freeHoldings, room for this many counters is charged at once
	holdingCost  = 48   // bytes that are charged for each such counter
)

// table holds the counters: a hash table of fixed size, whose buckets are divided among stripes.
type table struct {
	seed    maphash.Seed
	stripes []stripe // each with the same number of buckets
	buckets uint64   // buckets of each stripe
	limit   int64    // of used

	period  atomic.Uint32 // number of the present interval
	created atomic.Uint64 // counters created since the start
	used    atomic.Int64  // bytes of counters, as Stats counts them, and of large holdings
}

// stripe is the part of a table that one mutex protects.
type stripe struct {
	mu     sync.Mutex
	chains []*counter // by bucket; nil until the stripe has its first counter
	_      [32]byte   // a cache line for each mutex
}

// counter is a named counter. The mutex of its stripe protects all fields but stripe and name.
type counter struct {
	next    *counter // in its bucket
	stripe  *stripe
	name    string
	current uint32 // consumption; no overflow: each acquire compares it with a maximum of 32 bits
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
	// high chooses the stripe, low the bucket
	high, low := bits.Mul64(hash, uint64(len(t.stripes)))
	bucket, _ := bits.Mul64(low, t.buckets)
	return &t.stripes[high], bucket
}

// find returns a counter, nil if there is none. The caller holds mu.
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

// acquire adds n to a counter and to h, unless the counter would exceed maximum. It creates the
// counter if there is none.
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

// create makes a counter, or returns nil if there is no memory for it. The caller holds s.mu.
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

// release takes n from a counter and from h, which must hold at least n of it.
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

// releaseAll gives everything that h holds back to the counters.
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

// roomFor reports whether h may hold the counter c. It charges large holdings to used: otherwise
// each of many connections could hold all counters of a full table, and so fill the memory.
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

// giveBack takes n from a counter. The caller holds the mutex of its stripe. In a new interval the
// maximum begins with the consumption before this release, since that was the consumption at the
// beginning of the interval.
func (t *table) giveBack(c *counter, n uint32) {
	if now := t.period.Load(); c.period != now {
		c.period, c.maximum = now, c.current
	}
	c.current -= n
}

// holding is what one connection has acquired. It belongs to the connection's goroutine.
//
// Its counters have a consumption above 0, so the collector does not remove them: the pointers stay
// valid.
type holding struct {
	amounts map[*counter]uint32 // never 0; nil until something is acquired
	paid    int                 // how many of its counters are charged to table.used
}

func (h *holding) add(c *counter, n uint32) {
	if h.amounts == nil {
		h.amounts = map[*counter]uint32{}
	}
	h.amounts[c] += n
}

// remove takes n away. It returns false if the holding has less than n, or nothing.
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
