package metrics

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Hot counts how often keys are asked for, in bounded memory. It is the algorithm "Space-Saving"
// (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
// Streams, 2005): there is room for hotKeys keys. A key for which there is no room takes the place
// of the one with the fewest requests, and begins with the count of that one:
//
//	room for 3   a:9 b:5 c:2     then comes d      a:9 b:5 d:3, of which 2 may be others'
//
// So a count is never too low. It is too high by Over at most, which is less than the number of all
// requests divided by hotKeys; and no key with more requests than that is missing.
//
// One lock guards the counts. A request that finds it taken is left out, so no request waits for
// another one: the counts are a sample where many processors serve requests at once.
type Hot struct {
	chosen
	meter *Meter

	mu     sync.Mutex // guards the fields below
	places map[hotName]*hotPlace
	least  hotHeap
	seen   uint64

	left atomic.Uint64 // requests that found the lock taken
}

// hotKeys is how many keys a Hot has room for. A longer key than longestHot is counted by its
// beginning, so that the memory is bounded: below 400 KiB.
const (
	hotKeys    = 1024
	longestHot = 256
)

// HotKey is a key with its requests.
type HotKey struct {
	Database string
	Key      string
	Count    uint64 // requests, at most
	Over     uint64 // so many of them may be of other keys
	Long     bool   // Key is the beginning of one key or several
}

// NewHot begins to count.
func (m *Meter) NewHot(f Filter) *Hot {
	h := &Hot{chosen: chosen{Filter: f}, meter: m, places: make(map[hotName]*hotPlace, hotKeys)}
	m.attach(h)
	return h
}

// Close ends the counting. The counts stay.
func (h *Hot) Close() { h.meter.detach(h) }

// Top returns the keys with the most requests, at most n, and the number of requests that were
// counted and that were left out. A bulk counts once for each of its keys.
func (h *Hot) Top(n int) (keys []HotKey, seen, left uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.least {
		keys = append(keys, HotKey{Database: p.name.database, Key: p.name.key, Count: p.count, Over: p.over, Long: len(p.name.key) == longestHot})
	}
	slices.SortFunc(keys, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Database, b.Database), strings.Compare(a.Key, b.Key))
	})
	return keys[:min(n, len(keys))], h.seen, h.left.Load()
}

// see implements watch. Only records of databases are counted, not locks or counters.
func (h *Hot) see(d *Detail, peer string) {
	if !d.Bulk && d.Database != "" && h.fits(d, peer) {
		h.add(d.Database, d.Key)
	}
}

// count implements watch.
func (h *Hot) count(d *Detail, peer string, keys iter.Seq[[]byte]) {
	if d.Database == "" || !h.fits(d, peer) {
		return
	}
	for key := range keys {
		h.add(d.Database, key)
	}
}

// add counts a request for a key.
func (h *Hot) add(database string, key []byte) {
	if len(key) == 0 || !h.hasPrefix(key) || !h.turn() {
		return
	}
	if !h.mu.TryLock() {
		h.left.Add(1)
		return
	}
	defer h.mu.Unlock()
	h.seen++
	key = key[:min(len(key), longestHot)]
	if p := h.places[hotName{database, string(key)}]; p != nil { // makes no copy of the key
		p.count++
		heap.Fix(&h.least, p.at)
		return
	}
	name := hotName{database, string(key)}
	if len(h.least) < hotKeys {
		p := &hotPlace{name: name, count: 1}
		h.places[name] = p
		heap.Push(&h.least, p)
		return
	}
	p := h.least[0]
	delete(h.places, p.name)
	p.name, p.over = name, p.count
	p.count++
	h.places[name] = p
	heap.Fix(&h.least, 0)
}

type hotName struct{ database, key string }

// hotPlace is the place of a key.
type hotPlace struct {
	name        hotName
	count, over uint64
	at          int // in the heap
}

// hotHeap has the place with the fewest requests first.
type hotHeap []*hotPlace

// Len implements heap.Interface.
func (h hotHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h hotHeap) Less(i, j int) bool { return h[i].count < h[j].count }

// Swap implements heap.Interface.
func (h hotHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *hotHeap) Push(x any) {
	p := x.(*hotPlace)
	p.at = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface. Places are never given back, so it is not called.
func (h *hotHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
