package keymatch

import (
	"bytes"
	"cmp"
	"errors"

	"gotycoon/db/owed"
	"gotycoon/db/store"
)

// Database is what is searched. See the methods of db.DB.
type Database interface {
	Keys(h *owed.Heeding, from store.Start, visit func(key []byte) bool) error
	Bytewise() bool
	Seen(p *owed.Pending) error
}

// MatchPrefix returns at most max keys that begin with prefix (all where max is negative), keys of
// expired records included. memory is asked for the memory of the keys.
func MatchPrefix(d Database, heed owed.Heed, p *owed.Pending, prefix []byte, max int64, memory Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	if !d.Bytewise() {
		return filter(d, h, p, max, memory, func(key []byte) bool { return bytes.HasPrefix(key, prefix) })
	}
	found := keyList{memory: memory}
	err := d.Keys(h, store.Start{Key: prefix, Inclusive: true}, func(key []byte) bool {
		return bytes.HasPrefix(key, prefix) && int64(len(found.keys)) != max && found.add(key)
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.Seen(p)
}

// MatchRegex returns at most max keys in which a POSIX extended regular expression matches
// somewhere. It returns ErrRegex for a bad expression.
func MatchRegex(d Database, heed owed.Heed, p *owed.Pending, regex string, max int64, memory Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	match, err := Matcher(h, regex)
	if err != nil {
		return nil, err
	}
	return filter(d, h, p, max, memory, match)
}

// filter returns at most max keys that match.
func filter(d Database, h *owed.Heeding, p *owed.Pending, max int64, memory Memory, match func(key []byte) bool) ([][]byte, error) {
	found := keyList{memory: memory}
	err := d.Keys(h, store.Start{Edge: true}, func(key []byte) bool {
		return int64(len(found.keys)) != max && (!match(key) || found.add(key)) && h.Err() == nil
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.Seen(p)
}

// MatchSimilar returns the keys whose edit distance from origin is at most limit characters (bytes,
// or with utf the characters of UTF-8), nearest first, and at most max of them.
func MatchSimilar(d Database, heed owed.Heed, p *owed.Pending, origin []byte, limit int64, utf bool, max int64, memory Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	measure := Similarity(h, origin, utf, limit)
	top := NewNearest(max, h, memory)
	var lack error
	err := d.Keys(h, store.Start{Edge: true}, func(key []byte) bool {
		if n := measure(key); n != TooFar {
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
	return keys, d.Seen(p)
}

// keyList is the keys that an operation has found.
type keyList struct {
	memory Memory
	keys   [][]byte
	err    error // of memory
}

// add adds a copy of key, and reports whether there was memory for it.
func (l *keyList) add(key []byte) bool {
	if l.err = l.memory.Ask(key); l.err != nil {
		return false
	}
	l.keys = append(l.keys, bytes.Clone(key))
	return true
}
