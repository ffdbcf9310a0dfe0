package paging

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	longScan = 64  // leaves that a scan has passed when it is long
	ahead    = 64  // leaves that are looked at and asked for at a time
	keep     = 512 // pages behind the cursor that are not given back yet, see passage.push
	batch    = 256 // pages that are given back at a time
	parked   = 128 // scans of a kind that are remembered between two of their calls
)

// A passage is a scan that has passed several leaves.
type passage struct {
	of       *Passages
	at       uint64 // page at which the scan stopped
	backward bool
	passed   int // pages

	leaf   span     // the present leaf
	coming []uint64 // leaves that come next, in their order
	lent   []span   // pages that the scan has brought into memory, the oldest first
	size   uint64   // pages in lent

	watched []span // pages that were not in memory, which the scan may bring or not, see settle

	way  descent
	room []byte // scratch
}

// long reports whether the scan looks ahead and gives back.
func (p *passage) long() bool { return p.passed >= longScan }

// Passages are the scans of a file that may go on in another call.
//
// Most scans are short and never go on; a long one may have a thousand of them between two of its
// calls. So long scans have room of their own. They do not share it with short ones in either
// direction: long scans that nobody goes on with would otherwise keep new ones from becoming long.
type Passages struct {
	// Asked counts the pages that scans have asked the system for, and then wait for; nil: nobody
	// wants to know.
	Asked *atomic.Uint64

	mu     sync.Mutex    // guards parked
	parked [2][]*passage // the long ones, the short ones; the one that stopped last at the end
}

// find returns the scan that has stopped at a page; nil: there is none.
func (s *Passages) find(page uint64, backward bool) *passage {
	for i, list := range s.parked {
		at := slices.IndexFunc(list, func(p *passage) bool { return p.at == page && p.backward == backward })
		if at >= 0 {
			p := list[at]
			s.parked[i] = slices.Delete(list, at, at+1)
			return p
		}
	}
	return nil
}

// ending returns the scan that has stopped at a page and is at its end there.
func (s *Passages) ending(page uint64, backward bool) *passage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(page, backward)
}

// take returns the scan that goes from a page to another one, or a new one. The scan has stopped at
// the first of the two, or at the second: a call may have looked at a record that the next call
// begins before. entered reports the latter: the scan has passed that page already, and passes it
// no second time. Otherwise a short scan that is repeated would become a long one.
func (s *Passages) take(from, to uint64, backward bool) (p *passage, entered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.find(from, backward); p != nil {
		return p, false
	}
	if p = s.find(to, backward); p != nil {
		return p, true
	}
	return &passage{of: s, backward: backward}, false
}

// park remembers a scan, in place of one of its kind that nobody went on with for long.
func (s *Passages) park(p *passage) {
	clear(p.way.way[:cap(p.way.way)])
	p.way.way, p.way.file = p.way.way[:0], file{} // no address outlasts the transaction
	kind := 0
	if !p.long() {
		kind = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.parked[kind]
	if len(list) == parked {
		list = slices.Delete(list, 0, 1)
	}
	s.parked[kind] = append(list, p)
}

// before is called before a lookup that may read a leaf.
func (p *passage) before(f file, leaf uint64) {
	if p.passed++; p.long() {
		p.watch(f, span{leaf, 1})
	}
}

// enter is called when the scan comes to a page. key is the name of the element there.
func (p *passage) enter(f file, root, page uint64, key []byte) {
	if p.passed++; !p.long() {
		return
	}
	if page >= p.leaf.page && page < p.leaf.end() { // it goes on in the same leaf
		return
	}
	p.settle(f)
	p.way.file = f
	if i := slices.Index(p.coming, page); i >= 0 {
		p.coming = slices.Delete(p.coming, 0, i+1)
		p.leaf = span{page, 1}
	} else {
		p.coming = p.coming[:0]
		found, ok := p.way.seek(root, key, 0)
		if !ok {
			return
		}
		p.leaf = span{found, 1}
	}
	p.wholeLeaf(f)
	if len(p.coming) == 0 {
		p.look(f, root, key)
	}
}

// wholeLeaf looks at the pages of a leaf behind the first. They are not asked for when there are
// many: a scan for keys does not read large values.
func (p *passage) wholeLeaf(f file) {
	more := f.overflow(p.leaf.page)
	behind := span{p.leaf.page + 1, more}
	switch {
	case more == 0:
	case more <= askAtMost:
		p.lend(f, behind)
	default:
		p.watch(f, behind)
	}
	p.leaf.n += more
}

// look finds out which leaves come next, and asks for those that are not in memory.
func (p *passage) look(f file, root uint64, key []byte) {
	if _, ok := p.way.seek(root, key, 0); !ok {
		return
	}
	for len(p.coming) < ahead {
		leaf, ok := p.way.next(p.backward, func(branch uint64) { p.lend(f, span{branch, 1}) })
		if !ok {
			break
		}
		p.coming = append(p.coming, leaf)
	}
	sorted := slices.Clone(p.coming)
	slices.Sort(sorted)
	for i := 0; i < len(sorted); {
		s := span{sorted[i], 1}
		for i++; i < len(sorted) && sorted[i] <= s.end(); i++ {
			s.n = sorted[i] + 1 - s.page
		}
		p.lend(f, s)
	}
}

const (
	lookAtMost = 1 << 14 // pages are looked at with one call of the system
	askAtMost  = 16      // pages of a leaf are asked for before they are touched
)

// lend asks the system for those of some pages that are not in memory, and remembers them.
func (p *passage) lend(f file, all span) {
	p.absent(f, all, func(s span) {
		willNeed(f.bytes(s))
		if p.of.Asked != nil {
			p.of.Asked.Add(s.n)
		}
		p.push(s)
	})
}

// watch notes which of some pages are not in memory.
func (p *passage) watch(f file, all span) {
	p.absent(f, all, func(s span) { p.watched = append(p.watched, s) })
}

// settle remembers those of the watched pages that are in memory now: the scan has brought them.
func (p *passage) settle(f file) {
	for _, s := range p.watched {
		if s.end() > f.pages() {
			continue
		}
		at := s.page
		brought := func(end uint64) {
			if end > at {
				p.push(span{at, end - at})
			}
		}
		p.absent(f, s, func(a span) {
			brought(a.page)
			at = a.end()
		})
		brought(s.end())
	}
	p.watched = p.watched[:0]
}

// absent visits those of some pages that are not in memory, in their order.
func (p *passage) absent(f file, all span, visit func(s span)) {
	for all.n > 0 {
		part := span{all.page, min(all.n, lookAtMost)}
		all = span{part.end(), all.n - part.n}
		p.room = slices.Grow(p.room[:0], int(part.n))[:part.n]
		eachAbsent(f, part, p.room, visit)
	}
}

// push remembers pages that the scan has brought into memory. They stay there until it has brought
// keep others: whoever walks through keys in pieces, and reads the record of each key after the
// piece, finds the pages of a piece in memory.
func (p *passage) push(s span) {
	p.size += s.n
	if n := len(p.lent); n > 0 && p.lent[n-1].end() == s.page {
		p.lent[n-1].n += s.n
		return
	}
	p.lent = append(p.lent, s)
}

// giveBack gives the oldest pages back until the scan has at most most of them. It does nothing
// before they are a batch more.
func (p *passage) giveBack(f file, most uint64) {
	if p.size <= most {
		return
	}
	n, given := 0, uint64(0)
	for n < len(p.lent) && p.size-given > most-min(most, batch) {
		given += p.lent[n].n
		n++
	}
	back := p.lent[:n]
	slices.SortFunc(back, func(a, b span) int { return cmp.Compare(a.page, b.page) })
	for i := 0; i < n; {
		s := back[i]
		for i++; i < n && back[i].page <= s.end(); i++ {
			s.n = max(s.end(), back[i].end()) - s.page
		}
		if s.end() <= f.pages() {
			pageOut(f.bytes(s))
		}
	}
	p.size -= given
	p.lent = slices.Delete(p.lent, 0, n)
}
