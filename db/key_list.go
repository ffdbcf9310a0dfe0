package db

import (
	"bytes"
	"gotycoon/db/keymatch"
)

// keyList is the keys that an operation has found.
type keyList struct {
	memory keymatch.Memory
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
