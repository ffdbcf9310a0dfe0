package memstore

import (
	"gotycoon/db/memstore/slab"
	"gotycoon/db/store"
)

// scanBatch is the number of records visited under one lock. A scan of a whole table would keep its writer, and behind
// the writer its readers, waiting for a millisecond.
const scanBatch = 128

// tableLocker lets a scan lock the table it looks at.
type tableLocker interface {
	rlock(table int)
	runlock(table int)
}

// position is a place in an index's order, between two records or on one.
type position struct {
	table int
	hash  uint64
	key   []byte
	first bool // at the first record of the table; hash and key do not count
	at    bool // on the record with the key rather than behind it
}

// scan visits the records from a place of the order until visit returns false.
func (x *index) scan(l tableLocker, from store.Start, visit func(key, value []byte) bool) {
	p := position{first: true}
	if !from.Edge {
		hash := x.hash(from.Key)
		p = position{table: tableOf(hash), hash: hash, key: append([]byte(nil), from.Key...), at: from.Inclusive}
	}
	for p.table < tableCount && x.scanBatch(l, &p, visit) {
	}
}

// scanBatch visits some records of one table and moves the position behind them. It returns false when visit did.
func (x *index) scanBatch(l tableLocker, p *position, visit func(key, value []byte) bool) bool {
	l.rlock(p.table)
	defer l.runlock(p.table)
	t := &x.tables[p.table]
	i, s := t.next(x.slotAt(t, p))
	for n := 1; s != 0; n++ {
		key, value := x.record(slab.Addr(s & addrMask))
		if n == scanBatch { // the position's key is copied before visit can change anything
			p.hash, p.key = x.hash(key), append(p.key[:0], key...)
			p.first, p.at = false, false
			return visit(key, value)
		}
		if !visit(key, value) {
			return false
		}
		i, s = t.next(i + 1)
	}
	*p = position{table: p.table + 1, first: true, key: p.key}
	return true
}

// slotAt returns the slot where a position's records begin.
func (x *index) slotAt(t *table, p *position) int {
	if p.first {
		return 0
	}
	i, found := x.seek(t, p.hash, p.key)
	if found && !p.at {
		i++
	}
	return i
}
