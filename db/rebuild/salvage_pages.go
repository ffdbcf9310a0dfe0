package rebuild

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"

	"gotycoon/db/filestore"
)

// leaf visits the records of a page that can be used.
func (s *salvager) leaf(p page, in span, visit func(key, value []byte) error, note bool) error {
	low, bad := in.low, 0
	flush := func(high []byte) {
		if bad > 0 && note {
			s.lose(s.damage(p.id, "%d records cannot be read", bad), &span{low, high})
		}
		bad = 0
	}
	for i := range p.elements() {
		e, ok := p.usable(i)
		if !ok {
			bad++
			continue
		}
		flush(e.key)
		if note && !in.holds(e.key) {
			s.lose(s.damage(p.id, "the key %q does not belong here; it is kept", e.key[1:]), nil)
		} else if note && i > 0 && bytes.Compare(e.key, low) <= 0 {
			s.lose(s.damage(p.id, "the key %q is not in order; it is kept", e.key[1:]), nil)
		}
		low = e.key
		if err := visit(e.key[1:], e.value); err != nil {
			return err
		}
	}
	flush(in.high)
	return nil
}

// usable returns an element whose data ends where the data of the next one begins.
func (p page) usable(i int) (element, bool) {
	e, ok := p.at(i)
	if !ok || e.flags != 0 || len(e.key) == 0 || e.key[0] != filestore.KeyPrefix || e.isFilter() {
		return e, false
	}
	if i+1 < int(p.count) {
		if next, ok := p.begins(i + 1); !ok || next != e.to {
			return e, false
		}
	}
	return e, len(e.key) <= filestore.MaxKeySize+1
}

// begins returns where an element says that its data is.
func (p page) begins(i int) (int, bool) {
	at := headSize + elementSize*i
	if at+elementSize > len(p.raw) {
		return 0, false
	}
	return at + int(binary.NativeEndian.Uint32(p.raw[at+4:])), true
}

// orphans looks for records, and for entries of runs, in the pages that nothing leads to.
func (s *salvager) orphans() error {
	var buf []byte
	for id := uint64(2); id < s.end; id++ {
		s.progress(1)
		if s.reached.has(id) || s.freeOK && s.free.has(id) {
			continue
		}
		p, b, err := s.read(id, flagLeaf, buf)
		buf = b
		if err != nil {
			continue
		}
		switch {
		case p.ofRun():
			s.adopt(p)
		case p.ofPacked():
			err = s.packedOrphan(p)
		default:
			err = s.leaf(p, span{}, s.orphanRecord, false)
		}
		if err != nil {
			return err
		}
		id += uint64(p.overflow)
	}
	return nil
}

// orphanRecord hands out a record of a page that nothing leads to, if its key is missing.
func (s *salvager) orphanRecord(key, value []byte) error {
	if !s.missing(append([]byte{filestore.KeyPrefix}, key...)) {
		return nil
	}
	s.Orphans++
	if !s.freeOK {
		s.Doubtful++
	}
	return s.record(key, value)
}

// missing reports whether a key is one of those that may be missing.
func (s *salvager) missing(key []byte) bool {
	i := sort.Search(len(s.lost), func(i int) bool { return less(key, s.lost[i].low) })
	return i > 0 && s.lost[i-1].holds(key)
}

// joined returns ranges of keys in order, none touching another.
func joined(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return bytes.Compare(a.low, b.low) })
	var out []span
	for _, in := range list {
		if n := len(out); n > 0 && (out[n-1].high == nil || !less(out[n-1].high, in.low)) {
			last := &out[n-1]
			if last.high != nil && (in.high == nil || less(last.high, in.high)) {
				last.high = in.high
			}
			continue
		}
		out = append(out, in)
	}
	return out
}
