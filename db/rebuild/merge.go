package rebuild

import (
	"bytes"
	"container/heap"
)

const (
	spillBuffer = 1 << 20 // bytes of one write of a spill
	mergeMemory = 64 << 20
	minWindow   = 16 << 10
)

// merged is several sorted lists of updates as one. If several lists have an update of a key, the
// youngest update counts.
type merged struct {
	heap youngest
	each func(u *update, age int) // sees every update, of several of one key the youngest first; nil: nobody asks
}

// youngest is a heap of lists: first the list whose present update has the smallest key; of equal
// keys first the younger list.
type youngest []aged

// aged is updates with their age: a larger number is younger.
type aged struct {
	updates
	age int
}

func (h youngest) Len() int { return len(h) }

func (h youngest) Less(i, j int) bool {
	if n := bytes.Compare(h[i].current().key, h[j].current().key); n != 0 {
		return n < 0
	}
	return h[i].age > h[j].age
}

func (h youngest) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *youngest) Push(x any) { *h = append(*h, x.(aged)) }

// Pop implements heap.Interface.
func (h *youngest) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// merged returns everything that was added. It comes after finish.
func (s *sorter) merged() (*merged, error) {
	m := &merged{}
	window := max(mergeMemory/max(len(s.spills), 1), minWindow)
	for _, r := range s.spills {
		if r.number >= s.dropped {
			room := make([]byte, min(int64(window), max(r.end-r.off, 1)))
			m.heap = append(m.heap, aged{&fileSpill{f: s.f, spill: r, all: room}, r.number})
		}
	}
	for _, c := range s.held {
		if c.number >= s.dropped {
			m.heap = append(m.heap, aged{&heldChunk{chunk: c}, c.number})
		}
	}
	return m, m.begin()
}

// begin reads the first update of each list.
func (m *merged) begin() error {
	for i := 0; i < len(m.heap); {
		if err := m.heap[i].next(); err != nil {
			return err
		}
		if m.heap[i].current().end {
			m.heap = append(m.heap[:i], m.heap[i+1:]...)
			continue
		}
		i++
	}
	heap.Init(&m.heap)
	return nil
}

// current returns the present update, nil at the end.
func (m *merged) current() *update {
	if len(m.heap) == 0 {
		return nil
	}
	return m.heap[0].current()
}

// next moves on to the next key.
func (m *merged) next(scratch []byte) ([]byte, error) {
	key := append(scratch[:0], m.heap[0].current().key...)
	for len(m.heap) > 0 && bytes.Equal(m.heap[0].current().key, key) {
		if m.each != nil {
			m.each(m.heap[0].current(), m.heap[0].age)
		}
		if err := m.heap[0].next(); err != nil {
			return key, err
		}
		if m.heap[0].current().end {
			heap.Pop(&m.heap)
		} else {
			heap.Fix(&m.heap, 0)
		}
	}
	return key, nil
}

// merge writes what was set over the records of the base.
//
// If the checksum of the base's records is not the one in its description, a record of the base is
// damaged. merge adds the difference (Builder.doubt) to the checksum of the new file: a fresh
// checksum would hide the damage from Check.
func (b *Builder) merge() error {
	if err := b.sorter.finish(); err != nil {
		return err
	}
	m, err := b.sorter.merged()
	if err != nil {
		return err
	}
	w := mergeWriter{m: m, put: b.Append}
	if b.base != nil && !b.sorter.cleared {
		if err := b.base.Records(w.base); err != nil {
			return err
		}
		b.doubt = b.base.desc.Sum - b.base.Bottom().Sum
	}
	return w.rest()
}

// rest writes what is left of the updates.
func (w *mergeWriter) rest() error {
	for w.m.current() != nil {
		if err := w.take(); err != nil {
			return err
		}
	}
	return nil
}

type mergeWriter struct {
	m   *merged
	put func(key, value []byte) error
	key []byte // scratch
}

// base writes the updates of keys up to the key of a record of the base, and then the record,
// unless an update of the same key has replaced it. Records of the base come in the order of keys.
func (w *mergeWriter) base(key, value []byte) error {
	for {
		u := w.m.current()
		order := -1
		if u != nil {
			order = bytes.Compare(key, u.key)
		}
		if order < 0 {
			return w.put(key, value)
		}
		if err := w.take(); err != nil || order == 0 {
			return err
		}
	}
}

// take writes the present update.
func (w *mergeWriter) take() (err error) {
	if u := w.m.current(); !u.gone {
		err = w.put(u.key, u.value)
	}
	if err == nil {
		w.key, err = w.m.next(w.key)
	}
	return err
}
