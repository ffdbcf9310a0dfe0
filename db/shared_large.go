package db

import (
	"context"
	"slices"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
)

// Large values, and many of them. The engine leaves them out at first and says how large they are
// (gather.Read), so that room for them can be asked for before they come.

const (
	fetchBytes = 4 << 20 // values of a request for many
	// how often the records of one moment are looked for: each time values change that are on their
	// way, but they must change faster than they are read
	fetchTries = 50
)

// errRestless is the answer to who wants large values of one moment that change all the time.
var errRestless error = &dberr.Error{Code: dberr.SystemError, Err: dberr.ErrEngine,
	Message: "the records change faster than they can be read as of one moment: ask for fewer of them, or not for one moment"}

// key names a record of the database.
func (s *shared) key(key []byte) engine.Key { return engine.Key{DB: s.db.index, Key: key} }

// appendStored appends the stored form of a record, or what r wants of it.
func (s *shared) appendStored(dst []byte, rec *engine.Record, r store.Reader) ([]byte, error) {
	value, prefix := rec.Value, s.db.prefixSize()
	if size := prefix + len(value); r != nil && size >= store.LargeValue && cap(dst)-len(dst) < size {
		wanted, err := r.Large(size)
		if err != nil {
			return dst, err
		}
		value = value[:max(0, wanted-prefix)]
	}
	return pieces.Append(s.appendXT(dst, rec.XT), value), nil
}

// appendXT appends what stands before a value in its stored form.
func (s *shared) appendXT(dst []byte, xt int64) []byte {
	if s.db.persistent() {
		return dst
	}
	return record.AppendXT(dst, xt)
}

// one appends the stored form of a record to dst, or what r wants of it; nil: there is no record.
func (s *shared) one(dst, key []byte, r store.Reader) ([]byte, *engine.Record, error) {
	names := []engine.Key{s.key(key)}
	recs, err := s.groups.Read(context.Background(), names)
	asked, wanted, prefix := 0, 0, s.db.prefixSize()
	for err == nil && len(recs) > 0 && recs[0].Left > 0 { // it may have grown
		if size := prefix + recs[0].Left; r != nil && cap(dst)-len(dst) < size && size > asked {
			more, err := r.Large(size - asked)
			if err != nil {
				return dst, nil, err
			}
			if asked, wanted = size, wanted+more; wanted == 0 {
				break
			}
		}
		recs, err = s.groups.ReadLarge(context.Background(), names, recs[0].Left)
	}
	if err != nil || len(recs) == 0 {
		return dst, nil, engineError(err)
	}
	if asked == 0 {
		dst, err = s.appendStored(dst, &recs[0], r)
		return dst, &recs[0], err
	}
	value := recs[0].Value[:max(0, min(wanted-prefix, len(recs[0].Value)))]
	return pieces.Append(s.appendXT(dst, recs[0].XT), value), &recs[0], nil
}

// bare reads records, large ones without their values, for who puts the values there: other callers
// may get the same slice.
func (s *shared) bare(names []engine.Key) ([]engine.Record, error) {
	recs, err := s.groups.Read(context.Background(), names)
	if slices.ContainsFunc(recs, func(r engine.Record) bool { return r.Left > 0 }) {
		recs = slices.Clone(recs)
	}
	return recs, engineError(err)
}

// fetch reads values that were left out of some records, for which it asks p for room. A record
// that is not there any more has the revision 0 then; one that has grown may still be without its
// value.
func (s *shared) fetch(p *Pending, recs []engine.Record, which []int) error {
	bytes, most := 0, 0
	names := make([]engine.Key, len(which))
	for i, n := range which {
		names[i], bytes, most = recs[n].Key, bytes+recs[n].Left, max(most, recs[n].Left)
	}
	if _, err := p.Large(bytes); err != nil {
		return systemError(err)
	}
	found, err := s.groups.ReadLarge(context.Background(), names, most)
	if err != nil {
		return engineError(err)
	}
	for _, n := range which {
		i, ok := slices.BinarySearchFunc(found, recs[n].Key, func(r engine.Record, k engine.Key) int { return engine.Compare(r.Key, k) })
		if !ok {
			recs[n].Left, recs[n].Revision = 0, 0
			continue
		}
		found[i].Key = recs[n].Key // the other one may keep the memory of its value alive
		recs[n] = found[i]
	}
	return nil
}

// next returns which of some records a request can have whose values were left out: the first one
// in any case.
func next(recs []engine.Record, order []int) (which []int) {
	most, seen := 0, map[int]bool{}
	for _, n := range order {
		if n < 0 || recs[n].Left == 0 || seen[n] {
			continue
		}
		seen[n] = true
		if most = max(most, recs[n].Left); len(which) > 0 && most*(len(which)+1) > fetchBytes {
			break
		}
		which = append(which, n)
	}
	return which
}

// complete reads the values that were left out of records of one moment, and all records again
// where one of them has changed meanwhile.
func (s *shared) complete(p *Pending, names []engine.Key, recs []engine.Record) ([]engine.Record, error) {
	for range fetchTries {
		order := make([]int, len(recs))
		for i := range order {
			order[i] = i
		}
		changed := false
		for i := 0; i < len(recs); i++ {
			for recs[i].Left > 0 && !changed {
				which := next(recs, order[i:])
				were := make([]uint64, len(which))
				for j, n := range which {
					were[j] = recs[n].Revision
				}
				if err := s.fetch(p, recs, which); err != nil {
					return nil, err
				}
				for j, n := range which {
					changed = changed || recs[n].Revision != were[j]
				}
			}
		}
		if !changed {
			return recs, nil
		}
		again, err := s.bare(names)
		if err != nil {
			return nil, err
		}
		for i := range again { // values that have not changed need not come again
			n, ok := slices.BinarySearchFunc(recs, again[i].Key, func(r engine.Record, k engine.Key) int { return engine.Compare(r.Key, k) })
			if ok && again[i].Left > 0 && recs[n].Left == 0 && recs[n].Revision == again[i].Revision {
				again[i] = recs[n]
			}
		}
		recs = again
	}
	return nil, errRestless
}

// read calls visit for each of the keys that has a record; with atomic they are of one moment.
func (s *shared) read(p *Pending, keys [][]byte, atomic bool, visit func(i int, value []byte, xt int64)) error {
	names := make([]engine.Key, len(keys))
	for i, key := range keys {
		names[i] = s.key(key)
	}
	recs, err := s.bare(names)
	if err != nil {
		return err
	}
	before := p.Taken()
	defer func() { p.GiveBack(before) }()
	if atomic {
		if recs, err = s.complete(p, names, recs); err != nil {
			return err
		}
	}
	places := make([]int, len(names)) // -1: there is no record
	for i := range names {
		n, found := slices.BinarySearchFunc(recs, names[i], func(r engine.Record, k engine.Key) int { return engine.Compare(r.Key, k) })
		if !found {
			n = -1
		}
		places[i] = n
	}
	now := s.db.seconds()
	var here []int // whose values were fetched
	for i, n := range places {
		if n < 0 || engine.Expired(recs[n].XT, now) {
			continue
		}
		for recs[n].Left > 0 {
			for _, old := range here {
				if r := &recs[old]; r.Left == 0 && r.Revision != 0 { // its key may come again
					r.Left, r.Value = len(r.Value), nil
				}
			}
			p.GiveBack(before)
			here = next(recs, places[i:])
			if err := s.fetch(p, recs, here); err != nil {
				return err
			}
		}
		if recs[n].Revision == 0 { // removed meanwhile
			continue
		}
		visit(i, recs[n].Value, recs[n].XT)
	}
	return nil
}

// largeScans is how many scans of a server may have a value in hand that was left out of its page:
// nobody can be asked for room. Snapshots have a limit of their own.
const largeScans = 2

// source is where the pages of a scan come from.
type source struct {
	read  func(context.Context, engine.Scan) (engine.Page, error)
	large chan struct{} // room for who has a large value in hand; nil: for everybody
}

// page reads a page.
func (s *shared) page(from source, scan engine.Scan) (engine.Page, error) {
	page, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (engine.Page, error) { return from.read(ctx, scan) })
	return page, engineError(err)
}

// visitLarge visits a record whose value was left out of its page, unless it was removed meanwhile.
func (s *shared) visitLarge(r *engine.Record, from source, visit func(key, value []byte) bool) (on bool, err error) {
	if from.large != nil {
		from.large <- struct{}{}
		defer func() { <-from.large }()
	}
	page, err := s.page(from, engine.Scan{DB: r.DB, Key: r.Key.Key, Inclusive: true, Limit: 1})
	if err != nil || len(page.Records) == 0 || engine.Compare(page.Records[0].Key, r.Key) != 0 {
		return true, err
	}
	stored, _ := s.appendStored(nil, &page.Records[0], nil)
	return visit(r.Key.Key, stored), nil
}
