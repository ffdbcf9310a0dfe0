package filestore

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// # The exact count
//
// The original's count command is exact, and so is ours, although a set never looks at the file:
// the lookup would cost a read of the disk for each set of a key that is not cached. The difficulty
// is that a blind set of the key k adds a record when k is new and none when k exists in the file.
//
// The rule: an overlay remembers the keys that it has seen for the first time (overlay.fresh).
// Count looks up which of them exist below the overlay, and adds those to overlay.below. Then
//
//	count = records in the file + live records in the overlay − fresh keys that exist below
//
// An example. The file has the records a and b. Updates: set b, set c, remove a.
//
//	overlay    live: b, c (2)    tombstone: a    fresh: b, c, a
//	Count      looks up b (there), c (not), a (there): below = 2, fresh = empty
//	           2 + 2 − 2 = 2, the records b and c
//
// After another "set d" only d is fresh. The next Count looks up one key and returns 2 + 3 − 2 = 3.
//
// Below the active overlay there are others: frozen overlays, and the runs of the file. None of
// them changes any more, so what the database has with all layers up to one of them is found out
// once, by a walk through the entries that were not counted yet, and is kept (overlay.total,
// fileRun.total). The bottom is the lowest layer: a merge keeps Meta.Count right, since it has each
// key's old value at hand. The active overlay counts on top of the number of the layer below it.
// After a clear everything below is hidden: fresh and below are emptied, and the number of live
// records is the count.
//
// A file of 64 million records may have runs of 14 million entries that nobody has counted: then
// the walk takes seconds. A person who watches gets an estimate instead, see Estimate.
//
// Looking keys up takes long and must not stop updates. So count takes the list of fresh keys under
// the overlay's lock, looks the keys up without the lock, and adds the result to below under the
// lock again. If a clear came in between, it has emptied below, and the result is thrown away. The
// count that is returned is that of the moment when the list was taken.
//
// Rejected: a lookup before each set (the disk's speed becomes that of a set), and an estimate from
// a sample (clients compare counts of two servers).

// Count returns the exact number of records at one instant of the call. It looks up the keys that
// were first written since the last freeze or call, and walks through runs that were not counted.
func (s *Store) Count() (int64, error) {
	u, err := s.usageWithin(math.MaxInt, true)
	if err == nil {
		s.desc.noteExact(u)
	}
	return u.count, err
}

// Size returns the key and value bytes of all records; of runs that were not counted an estimate.
func (s *Store) Size() int64 {
	u, err := s.usageWithin(math.MaxInt, false)
	if err != nil {
		return 0
	}
	return u.bytes
}

// usageWithin adds up the records of file and overlays. It looks up no more than about most bytes
// of fresh keys; if there are more, the result is not exact. Without exact it does not walk through
// runs.
func (s *Store) usageWithin(most int, exact bool) (sum usage, err error) {
	l, err := s.beginCount()
	if err != nil {
		return usage{}, err
	}
	defer l.end()
	m, err := readMeta(l.tx)
	if err != nil {
		return usage{}, err
	}
	if exact {
		sum, err = l.countRuns(&m)
	} else {
		sum, _ = l.runs.usage(&m)
	}
	if err != nil {
		return usage{}, fmt.Errorf("count the records of %s: %w", s.path, err)
	}
	lower := below{file: &l}
	for _, o := range slices.Backward(l.view.frozen()) {
		if m.Checkpoints >= o.flush { // the file of the transaction has it
			continue
		}
		if sum, err = o.countOn(&lower, sum, exact); err != nil {
			return usage{}, err
		}
		lower.overlays = append([]*overlay{o}, lower.overlays...)
	}
	return l.view.active().count(&lower, sum, most)
}

// usage returns what the file has; exact is false for an estimate.
func (l *runList) usage(m *Meta) (u usage, exact bool) {
	if len(l.runs) == 0 {
		return usage{m.Count, m.Bytes}, true
	}
	return l.runs[0].usage()
}

// beginCount is begin, but the active overlay of the view is not in the file of the transaction. If
// it was frozen and flushed between the two, what was counted of it before would count twice.
func (s *Store) beginCount() (layers, error) {
	for {
		l, err := s.begin()
		if err != nil || !l.overtaken(s) {
			return l, err
		}
		l.end()
	}
}

// overtaken reports whether the active overlay of the view has been frozen meanwhile.
func (l *layers) overtaken(s *Store) bool { return s.view.Load().active() != l.view.active() }

// countRuns returns what the file has. It begins at the newest layer whose total is known.
//
// During a merge the bottom has newer records than an older one of the merged runs, so such a run
// is no layer to count on: either the newest merged run is, or the bottom.
func (l *layers) countRuns(m *Meta) (usage, error) {
	all := l.runs.runs
	if sum, exact := l.runs.usage(m); exact {
		return sum, nil
	}
	newest := all[0]
	newest.counting.Lock()
	defer newest.counting.Unlock()
	sum, known := usage{m.Count, m.Bytes}, len(all)
	for i, r := range all {
		if u, exact := r.usage(); exact && r.Number() >= m.MergeRun {
			sum, known = u, i
			break
		}
	}
	if known == 0 { // somebody else has counted it meanwhile
		return sum, nil
	}
	lower := layers{tx: l.tx, runs: &runList{runs: all[known:], mergeRun: m.MergeRun, mergedTo: m.MergedTo}, bottom: l.bottom}
	// That a count looks a key up does not say that clients read it; and the system gives back no
	// page that a mirror has too.
	lower.bottom.mirror, lower.bottom.lookups = nil, new(lookups)
	w := l.watching()
	w.walks.Begin(&lower.bottom.lookups.tree, w.passages, l.bottom.tree, false)
	if l.bottom.packed != nil {
		w.walks.Begin(&lower.bottom.lookups.packed, w.passages, l.bottom.packed, false)
	}
	var u union
	for _, r := range all[:known] {
		u.add(l.runs.source(r, l.tx, store.Start{Edge: true}, l.watching()))
	}
	u.start()
	var failed error
	err := u.run(func(h *head) bool {
		value, found, err := lower.inFile(h.key)
		if found {
			sum.count--
			sum.bytes -= int64(len(h.key) + len(value))
		}
		if h.live() {
			sum.count++
			sum.bytes += int64(len(h.key) + len(h.value()))
		}
		failed = err
		return err == nil
	})
	lower.bottom.lookups.packed.Over()
	lower.bottom.lookups.tree.Over()
	if err = errors.Join(err, failed); err == nil {
		newest.noteTotal(sum)
	}
	return sum, err
}

// countOn returns what the database has with o and the layers below, which have sum. The result is
// kept. Without exact, the result for an overlay that was not counted is sum.
func (o *overlay) countOn(lower *below, sum usage, exact bool) (usage, error) {
	o.countMu.Lock()
	defer o.countMu.Unlock()
	switch {
	case o.total != nil:
		return *o.total, nil
	case !exact:
		return sum, nil
	case o.cleared.Load():
		sum, lower = usage{}, nil
	}
	var failed error
	o.scan(store.Start{Edge: true}, func(key, flagged []byte) bool {
		size, err := lower.size(key)
		if size >= 0 {
			sum.count--
			sum.bytes -= size
		}
		if flagged[0]&flagLive != 0 {
			sum.count++
			sum.bytes += int64(len(key) + len(flagged) - valueAt(flagged[0]))
		}
		failed = err
		return err == nil
	})
	if failed == nil {
		o.total = &sum
	}
	return sum, failed
}

// estimateKeys is how many keys a flush looks up at most in order to know about how many records
// the file has.
const estimateKeys = 1024

// estimate returns about what the database has with o and the layers below, which have sum: it
// looks up some of the fresh keys. exact reports whether these were all.
func (o *overlay) estimate(lower *below, sum usage) (u usage, exact bool, err error) {
	if !o.countMu.TryLock() { // somebody counts, and has taken the fresh keys
		return usage{sum.count + o.liveCount, sum.bytes + o.liveBytes}, false, nil
	}
	defer o.countMu.Unlock()
	if o.total != nil {
		return *o.total, true, nil
	}
	all := o.fresh.len()
	step, i, looked := all/estimateKeys+1, 0, 0
	var found usage
	err = o.fresh.each(func(key []byte) error {
		if i++; (i-1)%step != 0 {
			return nil
		}
		size, err := lower.size(key)
		if errors.Is(err, run.ErrDamaged) {
			return nil // the merge tells of it; no block of the file keeps updates out of the file
		}
		if looked++; size >= 0 && err == nil {
			found.count++
			found.bytes += size
		}
		return err
	})
	if err != nil {
		return usage{}, false, err
	}
	n, of := int64(all), int64(max(1, looked))
	return usage{
		max(0, sum.count+o.liveCount-o.below.count-found.count*n/of),
		max(0, sum.bytes+o.liveBytes-o.below.bytes-found.bytes*n/of),
	}, looked == all, nil
}

// below is the layers below an overlay; nil: hidden.
type below struct {
	overlays []*overlay // newest first
	file     *layers
}

// measured is a store.Reader that takes the size of a large value and copies nothing.
type measured struct{ size int }

// Large implements store.Reader.
func (m *measured) Large(size int) (wanted int, err error) {
	m.size = size
	return 0, nil
}

// size returns the key and value bytes that a key has in the layers; -1 where it is not there.
func (b *below) size(key []byte) (int64, error) {
	if b == nil {
		return -1, nil
	}
	for _, o := range b.overlays {
		var m measured
		value, st, _ := o.get(nil, key, &m)
		switch st {
		case live:
			return int64(len(key) + max(len(value), m.size)), nil
		case dead:
			return -1, nil
		}
	}
	value, found, err := b.file.inFile(key)
	if !found || err != nil {
		return -1, err
	}
	return int64(len(key) + len(value)), nil
}

// count returns the records in and below o, where sum is the records below. It looks up the fresh
// keys, but stops after about most bytes of keys. If it stops early, the result counts twice each
// key that is left over and exists below.
func (o *overlay) count(lower *below, sum usage, most int) (usage, error) {
	o.countMu.Lock()
	defer o.countMu.Unlock()
	o.mu.Lock()
	keys, rest := o.fresh.cut(most)
	o.fresh = rest
	cleared := o.cleared.Load()
	own, known := usage{o.liveCount, o.liveBytes}, o.below
	o.mu.Unlock()

	found, err := lower.usage(keys)
	o.mu.Lock()
	switch {
	case cleared != o.cleared.Load(): // what was found is void
	case err != nil: // the keys wait for the next count
		o.fresh = keys.join(o.fresh)
	default:
		o.below.count += found.count
		o.below.bytes += found.bytes
	}
	o.mu.Unlock()
	if cleared {
		return own, err
	}
	return usage{
		sum.count + own.count - known.count - found.count,
		sum.bytes + own.bytes - known.bytes - found.bytes,
	}, err
}

// usage adds up what the listed keys have in the layers.
func (b *below) usage(keys keyList) (u usage, err error) {
	err = keys.each(func(key []byte) error {
		size, err := b.size(key)
		if size >= 0 && err == nil {
			u.count++
			u.bytes += size
		}
		return err
	})
	return u, err
}

// estimateBytes is how many bytes of keys Estimate looks up at most.
const estimateBytes = 512 << 10

// Estimate returns a number of records for people who watch, and never takes long. The number is
// exact when all layers of the file were counted and few keys were written since the latest count.
// Otherwise it is the latest exact number, or what the latest flush has estimated. Each call looks
// some keys up, so after a burst of new keys a few calls bring the exact number back.
func (s *Store) Estimate() int64 {
	v := s.acquire()
	frozen, few := len(v.frozen()) > 0, v.active().fewFresh()
	v.release()
	if !frozen {
		if u, err := s.usageWithin(estimateBytes, false); err == nil && few {
			s.desc.noteExact(u)
			return u.count
		}
	}
	return s.desc.lastExact().count
}

// fewFresh reports whether a count has few keys to look up: half of what Estimate looks up, so that
// keys which come in between are looked up as well.
func (o *overlay) fewFresh() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fresh.size <= estimateBytes/2
}
