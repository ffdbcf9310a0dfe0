package db

import (
	"bytes"
	"cmp"
	"errors"

	"gotycoon/db/expr"
	"gotycoon/db/keymatch"
	"gotycoon/db/owed"
	"gotycoon/db/store"
)

const (
	scanRecords = 512      // keys copied out of the store at a time
	scanBytes   = 64 << 10 // and their size
)

// keyWork is what a key costs at least in the steps of a Heeding: 32 keys that have to be read from a disk may take some milliseconds.
const keyWork = owed.HeedSteps / 32

// keys calls visit for every key from a place on, in the database's order, until visit returns false. The store is
// read in pieces, so that nothing is held while visit runs.
func (d *DB) keys(h *owed.Heeding, from store.Start, visit func(key []byte) bool) error {
	var room []byte
	var ends []int
	from.Ask = h.Asking()
	for {
		if !h.Now() {
			return h.Err()
		}
		room, ends = room[:0], ends[:0]
		more := false
		err := d.records().Scan(from, func(key, _ []byte) bool {
			if more = len(ends) == scanRecords || len(room) >= scanBytes; more {
				return false
			}
			room = append(room, key...)
			ends = append(ends, len(room))
			return true
		})
		if err != nil {
			return systemError(err)
		}
		begin := 0
		for _, end := range ends {
			if !h.Work(keyWork+len(room[begin:end])) || !visit(room[begin:end]) {
				return h.Err()
			}
			from.Key, begin = room[begin:end], end
		}
		if !more {
			return nil
		}
		from = store.Start{Key: bytes.Clone(from.Key), Ask: from.Ask}
	}
}

// MatchPrefix returns at most max keys that begin with prefix (all where max is negative), expired ones included. memory is asked
// for the memory that they take.
func (d *DB) MatchPrefix(heed Heed, p *Pending, prefix []byte, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	if !d.bytewise() {
		return d.filter(h, p, max, memory, func(key []byte) bool { return bytes.HasPrefix(key, prefix) })
	}
	found := keyList{memory: memory}
	err := d.keys(h, store.Start{Key: prefix, Inclusive: true}, func(key []byte) bool {
		return bytes.HasPrefix(key, prefix) && int64(len(found.keys)) != max && found.add(key)
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.oweAll(p)
}

// bytewise tells whether keys that begin alike stand together.
func (d *DB) bytewise() bool {
	return d.file != nil && d.expr.Params.RComp == expr.Lexical ||
		d.expr.Kind.Ordered() && d.expr.Params.RComp == expr.Lexical
}

// MatchRegex returns at most max keys that match a POSIX extended regular expression somewhere. It returns ErrRegex
// for a bad expression.
func (d *DB) MatchRegex(heed Heed, p *Pending, regex string, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	match, err := keymatch.Matcher(h, regex)
	if err != nil {
		return nil, err
	}
	return d.filter(h, p, max, memory, match)
}

// filter returns at most max keys that match.
func (d *DB) filter(h *owed.Heeding, p *Pending, max int64, memory keymatch.Memory, match func(key []byte) bool) ([][]byte, error) {
	found := keyList{memory: memory}
	err := d.keys(h, store.Start{Edge: true}, func(key []byte) bool {
		return int64(len(found.keys)) != max && (!match(key) || found.add(key)) && h.Err() == nil
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.oweAll(p)
}

// MatchSimilar returns the keys that at most limit characters set apart from origin (bytes, or with utf those of UTF-8),
// nearest first, and of these at most max.
func (d *DB) MatchSimilar(heed Heed, p *Pending, origin []byte, limit int64, utf bool, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	measure := keymatch.Similarity(h, origin, utf, limit)
	top := keymatch.NewNearest(max, h, memory)
	var lack error
	err := d.keys(h, store.Start{Edge: true}, func(key []byte) bool {
		if n := measure(key); n != keymatch.TooFar {
			lack = top.Add(n, key)
		}
		return lack == nil
	})
	if err = errors.Join(err, lack); err != nil {
		return nil, err
	}
	keys := top.Keys()
	if err := h.Err(); err != nil {
		return nil, err
	}
	return keys, d.oweAll(p)
}
