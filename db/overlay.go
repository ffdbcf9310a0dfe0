package db

import (
	"bytes"
	"sync"

	"gotycoon/db/expr"
	"gotycoon/db/memstore"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// overlay is a store that shows another one with the updates of a transaction, which it keeps apart.
//
// The updates are in a tree in the database's order. The value of a record begins with a byte that says whether the record is
// set or removed.
type overlay struct {
	base    store.Store
	order   expr.Order
	ordered bool // base scans in the order of the keys

	mu     sync.RWMutex // readers see an update of both fields as one
	tree   store.Store
	hidden bool // a clear has removed what is in base
}

var _ store.Store = (*overlay)(nil)

const (
	markRemoved = 0
	markSet     = 1
)

func newOverlay(d *DB) *overlay {
	order := d.expr.Params.RComp
	return &overlay{base: d.store, order: order, ordered: d.file != nil || d.expr.Kind.Ordered(),
		tree: newOrdered(memstore.NewTreeStore(), order)}
}

// records returns where operations find the records.
func (d *DB) records() store.Store {
	if over := d.over.Load(); over != nil {
		return d.unclaimed(over)
	}
	return d.unclaimed(d.store)
}

// cleared tells whether a clear is among the updates.
func (o *overlay) cleared() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.hidden
}

// Apply adds updates.
func (o *overlay) Apply(_ ulog.Stamp, ups []ulog.Update) {
	marked := make([]ulog.Update, 0, len(ups))
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, u := range ups {
		switch u.Op {
		case ulog.OpClear:
			o.hidden = true
		case ulog.OpRemove:
			u.Op, u.Value = ulog.OpSet, []byte{markRemoved}
		default:
			u.Value = append([]byte{markSet}, u.Value...)
		}
		marked = append(marked, u)
	}
	o.tree.Apply(0, marked)
}

// updated returns the value that the updates give key. found is false where they do not mention it.
func (o *overlay) updated(dst, key []byte, r store.Reader) (value []byte, set, found bool, err error) {
	at := len(dst)
	dst, found, err = o.tree.Get(dst, key, r)
	if !found || err != nil {
		return dst, false, found, err
	}
	if g, ok := r.(*glance); ok && g.size > 0 {
		g.size-- // the mark
	}
	set = dst[at] == markSet
	copy(dst[at:], dst[at+1:])
	return dst[:len(dst)-1], set, true, nil
}

// Get appends the value of key to dst.
func (o *overlay) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	value, set, found, err := o.updated(dst, key, r)
	switch {
	case err != nil:
		return dst, false, err
	case found && set:
		return value, true, nil
	case found || o.hidden:
		return dst, false, nil
	}
	return o.base.Get(dst, key, r)
}

// Count returns the number of records; it looks up every key that has been updated.
func (o *overlay) Count() (n int64, err error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if !o.hidden {
		if n, err = o.base.Count(); err != nil {
			return 0, err
		}
	}
	err = o.tree.Scan(store.Start{Edge: true}, func(key, marked []byte) bool {
		var was bool
		if was, err = o.inBase(key); err != nil {
			return false
		}
		switch is := marked[0] == markSet; {
		case is && !was:
			n++
		case was && !is:
			n--
		}
		return true
	})
	return n, err
}

// inBase tells whether base has a record that is visible.
func (o *overlay) inBase(key []byte) (bool, error) {
	if o.hidden {
		return false, nil
	}
	_, found, err := o.base.Get(nil, key, &glance{})
	return found, err
}

// Size returns the bytes of both.
func (o *overlay) Size() int64 { return o.base.Size() + o.tree.Size() }

// Close releases the updates; the other store is not the overlay's.
func (o *overlay) Close() error { return o.tree.Close() }

// collect adds the updates to a batch, a clear first.
func (o *overlay) collect(b *batch) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.hidden {
		b.add(ulog.OpClear, nil, nil)
	}
	return o.tree.Scan(store.Start{Edge: true}, func(key, marked []byte) bool {
		if marked[0] == markSet {
			b.add(ulog.OpSet, bytes.Clone(key), bytes.Clone(marked[1:]))
		} else {
			b.add(ulog.OpRemove, bytes.Clone(key), nil)
		}
		return true
	})
}
