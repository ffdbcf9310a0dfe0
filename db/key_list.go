package db

import "bytes"

// Memory is asked for memory before an operation takes it, and returns why there is none; the operation then returns that. nil: there is
// always some.
type Memory func(bytes int) error

// keyOverhead is what a key of a list takes beside its bytes: its slice, in a table that doubles when it grows, and the rounding of
// small blocks.
const keyOverhead = 72

// ask asks for the memory of a key.
func (m Memory) ask(key []byte) error {
	if m == nil {
		return nil
	}
	return m(keyOverhead + len(key))
}

// keyList is the keys that an operation has found.
type keyList struct {
	memory Memory
	keys   [][]byte
	err    error // of memory
}

// add adds a copy of key, and reports whether there was memory for it.
func (l *keyList) add(key []byte) bool {
	if l.err = l.memory.ask(key); l.err != nil {
		return false
	}
	l.keys = append(l.keys, bytes.Clone(key))
	return true
}
