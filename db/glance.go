package db

import (
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// LargeValue is the size from which on a Purse is asked.
const LargeValue = store.LargeValue

// glance reads the beginning of a large value, with all that is in front of it, and the value's size: enough to know whether there is a
// record.
type glance struct{ size int }

// glanced is how many bytes of a large value are copied at a glance: the expiration time, and marks in front of it.
const glanced = 64

var _ store.Reader = (*glance)(nil)

// Large implements store.Reader.
func (g *glance) Large(size int) (wanted int, err error) {
	g.size = size
	return glanced, nil
}

// exists reports whether there is a live record of key.
func (b *batch) exists(key []byte) (bool, error) {
	_, _, found, err := b.look(key)
	return found, err
}

// look returns the size of the live record of key without a copy of a large one.
func (b *batch) look(key []byte) (size int, xt int64, found bool, err error) {
	b.glance.size = 0
	value, xt, found, err := b.db.read(&b.glance, b.old[:0], key)
	if cap(value) > cap(b.old) {
		b.old = value[:0]
	}
	if b.glance.size > 0 {
		return b.glance.size - b.db.prefixSize(), xt, found, err
	}
	return len(value), xt, found, err
}

// prefixSize is the length of what is stored in front of a value.
func (d *DB) prefixSize() int {
	if d.Persistent() {
		return 0
	}
	return record.XTSize
}

// scratch reads a record into the batch's scratch, which lasts until the next read. The scratch that was too small is given back.
func (b *batch) scratch(p *Pending, key []byte) (value []byte, xt int64, found bool, err error) {
	before := p.Taken()
	value, xt, found, err = b.db.read(p, b.old[:0], key)
	if cap(value) > cap(b.old) {
		b.old = value[:0]
	}
	if n := p.Taken() - before; n > 0 {
		p.LetGo(b.held)
		b.held = n
	}
	return value, xt, found, err
}
