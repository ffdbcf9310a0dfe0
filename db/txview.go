package db

import (
	"bytes"
	"sync"

	"gotycoon/db/expr"
	"gotycoon/db/memstore"
	"gotycoon/db/ordered"
	"gotycoon/db/store"
	"gotycoon/ulog"
)

// txView is a store that shows another store with the updates of a transaction, which it keeps
// apart.
//
// The updates are in a tree in the database's order. A value in the tree begins with a byte that
// says whether the record is set or removed.
type txView struct {
	base    store.Store
	order   expr.Order
	ordered bool // base scans in the order of the keys

	mu     sync.RWMutex // readers see an update of both fields as one
	tree   store.Store
	hidden bool // a clear has removed what is in base
}

var _ store.Store = (*txView)(nil)

const (
	markRemoved = 0
	markSet     = 1
)

func newTxView(base store.Store, order expr.Order, isOrdered bool) *txView {
	return &txView{base: base, order: order, ordered: isOrdered, tree: ordered.New(memstore.NewTreeStore(), order)}
}

// cleared reports whether a clear is among the updates.
func (o *txView) cleared() bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.hidden
}

// Apply adds updates.
func (o *txView) Apply(_ ulog.Stamp, ups []ulog.Update) {
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

// updated returns the value that the updates give key. found is false where no update mentions the
// key.
func (o *txView) updated(dst, key []byte, r store.Reader) (value []byte, set, found bool, err error) {
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
func (o *txView) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
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

// Count returns the number of records. It looks up every key that has been updated.
func (o *txView) Count() (n int64, err error) {
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

// inBase reports whether base has a record that is visible.
func (o *txView) inBase(key []byte) (bool, error) {
	if o.hidden {
		return false, nil
	}
	_, found, err := o.base.Get(nil, key, &glance{})
	return found, err
}

// Size returns the bytes of both.
func (o *txView) Size() int64 { return o.base.Size() + o.tree.Size() }

// Close releases the updates; the store below does not belong to the view.
func (o *txView) Close() error { return o.tree.Close() }

// Scan visits the records of both stores: in the order of the keys where base has one, otherwise
// those that are in base first.
func (o *txView) Scan(from store.Start, visit func(key, value []byte) bool) error {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.hidden {
		return o.scanUpdates(from, visit)
	}
	if o.ordered {
		return o.scanMerged(from, visit)
	}
	return o.scanBehind(from, visit)
}

// scanUpdates visits the records that the updates set.
func (o *txView) scanUpdates(from store.Start, visit func(key, value []byte) bool) error {
	return o.tree.Scan(from, func(key, marked []byte) bool {
		return marked[0] != markSet || visit(key, marked[1:])
	})
}

// aheadRecords is how many updates are read ahead of a merge.
const aheadRecords = 64

// update is an updated record as a merge sees it.
type update struct {
	key, value []byte
	set        bool
}

// ahead reads the updates in pieces.
type ahead struct {
	o    *txView
	from store.Start
	read []update
	done bool
}

// first returns the next update, nil behind the last one.
func (a *ahead) first() *update {
	if len(a.read) == 0 && !a.done {
		a.fill()
	}
	if len(a.read) == 0 {
		return nil
	}
	return &a.read[0]
}

func (a *ahead) fill() {
	_ = a.o.tree.Scan(a.from, func(key, marked []byte) bool { // memory: no error
		a.read = append(a.read, update{bytes.Clone(key), bytes.Clone(marked[1:]), marked[0] == markSet})
		return len(a.read) < aheadRecords
	})
	if a.done = len(a.read) < aheadRecords; !a.done {
		a.from = store.Start{Key: a.read[len(a.read)-1].key, Backward: a.from.Backward}
	}
}

// take removes the first update and visits its record, if it has one.
func (a *ahead) take(visit func(key, value []byte) bool) bool {
	u := a.read[0]
	a.read = a.read[1:]
	return !u.set || visit(u.key, u.value)
}

// scanMerged visits both in the order of the keys.
func (o *txView) scanMerged(from store.Start, visit func(key, value []byte) bool) error {
	updates := &ahead{o: o, from: from}
	more := true
	err := o.base.Scan(from, func(key, value []byte) bool {
		for u := updates.first(); u != nil; u = updates.first() {
			side := ordered.Compare(o.order, u.key, key)
			if from.Backward {
				side = -side
			}
			if side > 0 {
				break
			}
			if more = updates.take(visit); side == 0 || !more {
				return more
			}
		}
		more = visit(key, value)
		return more
	})
	for err == nil && more && updates.first() != nil {
		more = updates.take(visit)
	}
	return err
}

// scanBehind visits the records of base in its order, and then the new ones.
func (o *txView) scanBehind(from store.Start, visit func(key, value []byte) bool) error {
	more, behind := true, store.Start{Edge: true}
	isNew := false
	if !from.Edge {
		was, err := o.inBase(from.Key)
		if err != nil {
			return err
		}
		_, _, updated, _ := o.updated(nil, from.Key, &glance{})
		isNew = updated && !was
	}
	if isNew {
		behind = from
	} else if err := o.base.Scan(from, func(key, value []byte) bool {
		updated, set, found, _ := o.updated(nil, key, nil)
		switch {
		case found && !set:
			return true
		case found:
			value = updated
		}
		more = visit(key, value)
		return more
	}); err != nil || !more {
		return err
	}
	return o.scanNew(behind, visit)
}

// scanNew visits the records that base does not have.
func (o *txView) scanNew(from store.Start, visit func(key, value []byte) bool) error {
	var failed error
	err := o.scanUpdates(from, func(key, value []byte) bool {
		was, err := o.inBase(key)
		failed = err
		return err == nil && (was || visit(key, value))
	})
	if err == nil {
		err = failed
	}
	return err
}
