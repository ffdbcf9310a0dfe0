package db

import (
	"context"
	"errors"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/ulog"
)

// whole carries out an operation on several keys in one step.
func (s *shared) whole(p *Pending, keys [][]byte, h how, body func(b *batch) error) error {
	b := s.db.newBatch()
	defer b.free()
	b.owed = p
	op := gather.Operation{Keys: make([]engine.Key, len(keys)), Blind: h.blind, Size: h.bytes}
	for i, key := range keys {
		op.Keys[i] = s.key(key)
	}
	_, err := s.carryOut(p, b, op, true, body)
	return err
}

// setAll stores the records that put adds to a batch, one for each key, and returns how many: with
// atomic all or none, otherwise each by itself. Then an error leaves out the failed record, and
// others behind it may have been stored.
func (s *shared) setAll(p *Pending, keys [][]byte, bytes int, atomic bool, put func(b *batch)) (stored int, err error) {
	if atomic {
		err := s.whole(p, keys, how{blind: true, bytes: bytes}, func(b *batch) error {
			put(b)
			return nil
		})
		if err != nil {
			return 0, err
		}
		return len(keys), nil
	}
	b := s.db.newBatch()
	defer b.free()
	b.owed = p
	put(b)
	if err := s.storable(b); err != nil {
		return 0, err
	}
	made := make([]bool, len(keys))
	err = s.each(p, keys, b.ups, nil, made)
	var news []ulog.Update
	for i, is := range made {
		if is {
			stored++
			news = append(news, b.ups[i])
		}
	}
	if w := s.db.watch.Load(); w != nil {
		w.committed(news, 0)
	}
	return stored, err
}

// removeEach removes records, each by itself, and returns how many there were.
func (s *shared) removeEach(p *Pending, keys [][]byte) (removed int, err error) {
	found, made := make([]bool, len(keys)), make([]bool, len(keys))
	err = s.each(p, keys, nil, func(i int, v *gather.View) {
		_, found[i] = v.Read(s.key(keys[i]))
		v.Remove(s.key(keys[i]))
	}, made)
	for i := range keys {
		if found[i] && made[i] {
			removed++
		}
	}
	return removed, err
}

// each carries out an operation for each key by itself, and notes which were made: an update, or
// change where it is not nil. It returns the first error.
func (s *shared) each(p *Pending, keys [][]byte, ups []ulog.Update, change func(i int, v *gather.View), made []bool) (first error) {
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 && first == nil {
		if err := s.admit(p); err != nil {
			return err
		}
		ops, names := make([]gather.Operation, len(todo)), make([]engine.Key, len(todo))
		for n, i := range todo {
			names[n] = s.key(keys[i])
			ops[n] = gather.Operation{Keys: names[n : n+1 : n+1], Blind: change == nil}
			if change == nil {
				ops[n].Updates, ops[n].Size = ups[i:i+1:i+1], len(ups[i].Value)
			}
		}
		body := func(n int, v *gather.View) error {
			switch {
			case !p.MayGoOn():
				return errAgain
			case change == nil:
				v.Apply(&ups[todo[n]])
			default:
				change(todo[n], v)
			}
			return nil
		}
		if change == nil && (p == nil || p.Rights == nil) {
			body = nil
		}
		var again []int
		s.groups.DoAll(context.Background(), ops, body, func(n int, _ gather.Outcome, err error) {
			switch {
			case errors.Is(err, errAgain):
				again = append(again, todo[n])
			case err != nil && first == nil:
				first = engineError(err)
			case err == nil:
				made[todo[n]] = true
			}
		})
		todo = again
	}
	return first
}

// replicate stores updates of another server in one step, together with the position f.
func (s *shared) replicate(b *batch, f *ulog.Position) error {
	op := gather.Operation{Keys: make([]engine.Key, len(b.ups)), Blind: true, Updates: b.ups, Position: f}
	for i := range b.ups {
		op.Keys[i] = s.key(b.ups[i].Key)
		op.Size += len(b.ups[i].Value)
	}
	return s.make(op, b.ups)
}
