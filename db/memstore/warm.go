package memstore

import (
	"runtime"

	"gotycoon/db/memstore/slab"
)

// # Many keys at a time
//
// A record among millions is in none of the processor's caches. The way to it is a chain of some
// five places in memory, each of which says where the next is: 100 ns a place, half a microsecond a
// record. The chains of different keys have nothing to do with each other, and a processor can wait
// for ten places at a time. But it sees far enough ahead only if little stands between the loads,
// and nothing whose outcome it would have to guess.
//
// So whoever has many keys first has them warmed: for all keys the first place is loaded, then for
// all keys the second, and so on. What warming has found is thrown away. The update or the read
// that follows takes the same way again and finds all of it in the caches. Only the leaves of a
// tree are kept for the puts that follow, each until it is freed.
//
// Nothing depends on warming but time: a key may have no record, and a record may change before it
// is read.
//
// An example, with two keys and chains of three places:
//
//	one by one   a1 wait a2 wait a3 wait b1 wait b2 wait b3 wait
//	warmed       a1 b1 wait a2 b2 wait a3 b3 wait, then a and b without a wait
//
// Rejected: to keep the places of records. The first insert of a bulk moves slots, and the rest of
// the bulk would have to find out. Rejected too: the processor's instruction for this purpose,
// which Go offers in assembly only. A load whose result is only added to a sum does the same.

const (
	warmKeys  = 128       // warmed together, so that all of it stays in the nearest caches
	warmLeast = 4         // with fewer, a tree's warming costs what it saves
	warmFrom  = 512 << 10 // bytes in a store below which all of it is in a cache anyway
	line      = 64        // bytes that the processor fetches at once
	warmMost  = 8 * line  // of one piece of memory; the processor itself foresees the rest
)

// worthwhile reports whether n keys of a store of a size should be warmed.
func worthwhile(n int, a *slab.Arena) bool { return n > 1 && a.Used() >= warmFrom }

// touch loads what comes behind the first line of b, which is not empty, and returns a sum of it.
func touch(b []byte) (sum uint64) {
	n := min(len(b), warmMost)
	for i := line; i < n; i += line {
		sum += uint64(b[i])
	}
	return sum + uint64(b[n-1])
}

// warm loads what get and put look at for some hashes, at most warmKeys; with whole, all of the
// records. The caller holds the locks that get needs.
//
//go:noinline
func (x *index) warm(hashes []uint64, whole bool) {
	var sum uint64
	for _, hash := range hashes {
		if t := &x.tables[tableOf(hash)]; len(t.slots) > 0 {
			sum += t.slot(t.home(fragOf(hash)))
		}
	}
	var room [warmKeys]slab.Addr
	found := room[:0]
	for _, hash := range hashes {
		if at := x.likely(hash); at != 0 {
			found = append(found, at)
			sum += uint64(x.arena.Bytes(at)[0])
		}
	}
	for _, at := range found {
		block := x.arena.Bytes(at)
		if x.links > 0 {
			sum += x.warmLink(link(x.arena, at, newer)) + x.warmLink(link(x.arena, at, older))
		}
		if whole {
			key, value, n := recordSizes(block[x.links:])
			sum += touch(block[:x.links+n+key+value])
		}
	}
	runtime.KeepAlive(sum) // so that the loads stay
}

func (x *index) warmLink(at slab.Addr) uint64 {
	if at == 0 {
		return 0
	}
	return uint64(x.arena.Bytes(at)[0])
}

// likely returns the first record with a hash's fragment, which is nearly always the one of the
// key, and 0 where there is none.
func (x *index) likely(hash uint64) slab.Addr {
	t := &x.tables[tableOf(hash)]
	if len(t.slots) == 0 {
		return 0
	}
	frag := fragOf(hash)
	if s := t.slot(t.first(frag)); s != 0 && s>>slab.AddrBits == frag {
		return slab.Addr(s & addrMask)
	}
	return 0
}

// Warm loads what Get looks at for some keys into the processor's caches.
func (t *Tree) Warm(keys [][]byte) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.warm(keys, nil)
}

// warm loads what find and put look at for some keys, and appends the leaves of the keys to leaves.
// The caller holds writer or mu.
func (t *Tree) warm(keys [][]byte, leaves []slab.Addr) []slab.Addr {
	if t.root == 0 || len(keys) < warmLeast || !worthwhile(len(keys), t.arena) {
		return leaves
	}
	return t.warmAll(keys, leaves)
}

// warmAll is warm without the question. It is a function of its own because of ways: to clear them
// takes a tenth of a microsecond, and to make room for them on a small stack another one.
//
//go:noinline
func (t *Tree) warmAll(keys [][]byte, leaves []slab.Addr) []slab.Addr {
	var ways [warmKeys]descent
	for len(keys) > 0 {
		n := min(len(keys), warmKeys)
		t.warmSome(keys[:n], ways[:n])
		for i := range ways[:n] {
			leaves = append(leaves, ways[i].at)
		}
		keys = keys[n:]
	}
	return leaves
}

// A descent is the way of one key to its record, as far as warming has come: in page, and there
// among n slots from slot on.
type descent struct {
	page    page
	slot, n int
	head    uint32
	at      slab.Addr // of the next page; at the end of the leaf
}

// warmSome is warm for at most warmKeys keys. All leaves have the same depth.
//
//go:noinline
func (t *Tree) warmSome(keys [][]byte, ways []descent) (sum uint64) {
	for i := range ways {
		ways[i].at = t.root
	}
	for level := pageAt(t.arena, t.root).level(); ; level-- {
		for i := range ways {
			ways[i].enter(t.arena, keys[i])
		}
		for narrow(ways) {
		}
		for i := range ways {
			sum += uint64(ways[i].end(t.arena, keys[i])[0])
		}
		if level == 0 {
			break
		}
		for i := range ways {
			ways[i].at = ways[i].page.child(t.arena, ways[i].slot)
		}
		for i := range ways {
			sum += uint64(t.arena.Bytes(ways[i].at)[0])
		}
	}
	for i := range ways {
		e := parseEntry(ways[i].page.entry(ways[i].slot))
		if e.size > line {
			sum += touch(e.body)
		}
		if apart := e.apart(); apart != 0 {
			sum += uint64(t.arena.Bytes(apart)[0])
		}
	}
	return sum
}

// enter begins the search in the next page, as page.firstHead does. The first slot of an inner page
// does not count.
func (d *descent) enter(a *slab.Arena, key []byte) {
	d.page = pageAt(a, d.at)
	d.slot = min(d.page.level(), 1)
	d.n = d.page.count() - d.slot
	d.head = headOf(key, d.page.prefix())
}

// narrow takes one step of each search, and reports whether there are more to come.
func narrow(ways []descent) (more bool) {
	for i := range ways {
		d := &ways[i]
		if d.n <= 1 {
			continue
		}
		half := d.n >> 1
		less := int((int64(d.page.head(d.slot+half-1)) - int64(d.head)) >> 63)
		d.slot += half & less
		d.n -= half
		more = true
	}
	return more
}

// end ends the search, and returns the page from the entry on that it has led to.
func (d *descent) end(a *slab.Arena, key []byte) []byte {
	p := d.page
	if d.n == 1 && p.head(d.slot) < d.head {
		d.slot++
	}
	switch n := p.count(); {
	case p.leaf():
		d.slot = min(d.slot, n-1)
	case d.slot < n && p.head(d.slot) == d.head:
		d.slot = p.childSlot(a, key)
	default:
		d.slot--
	}
	return p.entry(d.slot)
}
