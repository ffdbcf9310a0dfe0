package db

import (
	"bytes"

	"gotycoon/db/expr"
	"gotycoon/db/store"
)

// Scan visits the records of both: in the order of the keys where base has one, else those that are in base first.
func (o *overlay) Scan(from store.Start, visit func(key, value []byte) bool) error {
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
func (o *overlay) scanUpdates(from store.Start, visit func(key, value []byte) bool) error {
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
	o    *overlay
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
func (o *overlay) scanMerged(from store.Start, visit func(key, value []byte) bool) error {
	updates := &ahead{o: o, from: from}
	more := true
	err := o.base.Scan(from, func(key, value []byte) bool {
		for u := updates.first(); u != nil; u = updates.first() {
			side := compareKeys(o.order, u.key, key)
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
func (o *overlay) scanBehind(from store.Start, visit func(key, value []byte) bool) error {
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
func (o *overlay) scanNew(from store.Start, visit func(key, value []byte) bool) error {
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

// compareKeys returns where key a stands from key b: before it (negative), behind it, or is the same.
func compareKeys(o expr.Order, a, b []byte) int {
	switch o {
	case expr.LexicalDesc:
		return -bytes.Compare(a, b)
	case expr.Decimal:
		return bytes.Compare(appendDecimal(nil, a), appendDecimal(nil, b))
	case expr.DecimalDesc:
		return -bytes.Compare(appendDecimal(nil, a), appendDecimal(nil, b))
	}
	return bytes.Compare(a, b)
}
