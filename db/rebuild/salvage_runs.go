package rebuild

import (
	"bytes"
	"fmt"
	"slices"

	"gotycoon/db/filestore"
	"gotycoon/db/filestore/run"
)

// # What is saved of runs
//
// Salvage first looks through all runs and notes what cannot be read. A block has a checksum, so a
// block is whole or lost. Then the runs are handed out over the tree, the oldest first. Where a
// block is lost, the older values of its keys come through, and so do records that it removed; the
// report says of which keys.
//
// Pages of a run to which nothing leads are used when the list of free pages shows that they belong
// to the present state of the file, and when their keys are missing from exactly one run: entries
// do not say from which run they are, and an old value in the wrong place would replace a newer
// one.
//
// While runs are merged, the records below have what the runs up to Meta.MergeRun say of the keys
// up to Meta.MergedTo. Such an entry is not handed out: newer entries of the key may have been
// dropped.
//
// An example: the branch of run 8 with the keys "d" up to "m" is lost. Three pages in use have
// blocks within these keys, and no other run misses such keys: the pages belong to run 8. If run 9
// misses the keys "k" up to "p", a page with the keys "k" and "l" is passed over.
//
// A run that seems to be sound and unfinished may be a finished one that is reached through a wrong
// page number. Then pages of it are left over, or were free: Salvage looks for both.

// A savedRun is a run of a damaged file.
type savedRun struct {
	runBucket
	tally            // of the pages that the run leads to
	begun   bool     // its first page was looked at, where the info stands
	lost    []span   // keys in its bucket that may be missing
	gaps    []span   // keys whose entries may be missing, behind BlockKey or LargeKey
	prev    []byte   // key of the last block so far, in the bucket
	merged  []byte   // see runBucket.behind
	certain bool     // the run was finished, with an info or without
	adopted []uint64 // pages of its own to which nothing leads

	given run.Info // what was handed out
	asked map[uint64]bool
}

// counts reports whether a run is handed out. If the beginning of a run is lost, nobody knows
// whether the run was finished: its entries are better than none.
func (r *savedRun) counts() bool {
	return r.finished || r.certain || r.misses([]byte{run.InfoKey})
}

// misses reports whether a key of the bucket may be among those that are missing.
func (r *savedRun) misses(key []byte) bool {
	return slices.ContainsFunc(r.lost, func(in span) bool { return in.holds(key) })
}

// hides reports whether the entry of a key may be missing. A block is named after its last key, so
// the keys of a lost block begin behind the block before it.
func (r *savedRun) hides(kind byte, key []byte) bool {
	at := append([]byte{kind}, key...)
	return slices.ContainsFunc(r.gaps, func(in span) bool { return in.holds(at) })
}

// gap returns the keys whose entries are missing with a range of the bucket.
func (r *savedRun) gap(in span) span {
	if in.touches(runBlocks) && (r.prev == nil || less(r.prev, in.low)) {
		in.low = r.prev
	}
	if r.merged == nil || !in.touches(runBlocks) && !in.touches(runLarge) {
		return in
	}
	kind := byte(run.BlockKey)
	if !in.touches(runBlocks) {
		kind = run.LargeKey
	}
	if behind := slices.Concat([]byte{kind}, r.merged, []byte{0}); less(in.low, behind) {
		in.low = behind
	}
	return in
}

// complete reports whether nothing of the run is missing that would count.
func (r *savedRun) complete() bool {
	want := r.tally.info
	want.About, want.AboutBytes = 0, 0
	if r.finished && r.given == want {
		return true
	}
	return len(r.gaps) > 0 && !slices.ContainsFunc(r.gaps, func(in span) bool { return in.high == nil || less(in.low, in.high) })
}

// findRuns looks through all runs and notes what cannot be read.
func (s *salvager) findRuns() error {
	if s.all.page == 0 {
		return nil
	}
	w := s.runWalker(func(d *Damage, in span) {
		s.RunsHurt = true
		s.loseNewer(d, span{})
	})
	w.leaf = func(p page, in span) error {
		if err := p.tidy(s.all, in); err != nil {
			s.RunsHurt = true
			s.loseNewer(s.damage(p.id, "%s", err.What), span{})
		}
		for i := range p.elements() {
			e, ok := p.at(i)
			r, isRun := e.asRun()
			if !ok {
				continue // tidy has told
			}
			if !isRun {
				s.RunsHurt = true
				s.loseNewer(s.damage(p.id, "holds something that is no run"), span{})
				continue
			}
			if err := s.findRun(r); err != nil {
				return err
			}
		}
		return nil
	}
	return w.bucket(s.all)
}

// runWalker returns a walker that tells lose of pages that are bad.
func (s *salvager) runWalker(lose func(d *Damage, in span)) walker {
	w := walker{pages: &s.pages, bad: func(d *Damage, in span) error { lose(d, in); return nil }}
	w.seen = func(p page) error {
		for i := uint64(0); i <= uint64(p.overflow); i++ {
			if s.freeOK && s.free.has(p.id+i) {
				s.RunsHurt = true
				s.loseNewer(s.damage(p.id, "is used by a run, and listed as free"), span{})
				break
			}
		}
		return s.mark(p)
	}
	return w
}

// findRun looks through a run.
func (s *salvager) findRun(b runBucket) error {
	r := &savedRun{runBucket: b, tally: tally{pages: &s.pages, number: b.number, persistent: s.Meta.Persistent}}
	r.certain = b.number <= s.Meta.MergeRun
	r.merged = b.behind(&s.Meta)
	s.runs = append(s.runs, r)
	lose := func(d *Damage, in span) {
		in = span{bytes.Clone(in.low), bytes.Clone(in.high)}
		r.lost = append(r.lost, in)
		if in = r.gap(in); r.begun && !r.counts() {
			in = noKeys // nobody misses what an unfinished run has
		}
		r.gaps = append(r.gaps, in)
		s.loseNewer(d, ofKeys(in))
	}
	w := s.runWalker(lose)
	w.leaf = func(p page, in span) error {
		if err := p.tidy(b.bucket, in); err != nil {
			err.Page, err.Offset = p.id, int64(p.id)*s.pageSize
			lose(err, in)
		}
		low := in.low
		for i := range p.elements() {
			e, ok := p.at(i)
			if !ok || len(e.key) == 0 {
				continue // tidy has told
			}
			if d := r.element(e); d != nil {
				lose(d, span{low, append(bytes.Clone(e.key), 0)})
			}
			if low = e.key; e.key[0] == run.BlockKey {
				r.prev = append([]byte(nil), e.key...)
			}
		}
		r.begun = true
		return nil
	}
	if err := w.bucket(b.bucket); err != nil {
		return err
	}
	if !r.counts() {
		s.unfinished++
	}
	if !r.finished || len(r.lost) > 0 {
		return nil
	}
	for _, wrong := range r.verdict() {
		s.lose(&Damage{Whole: true, What: wrong}, nil)
	}
	return nil
}

// ofKeys returns the range of keys whose entries a range of the bucket of a run has; an empty range
// has none.
func ofKeys(in span) span {
	if in.high != nil && !less(in.low, in.high) {
		return noKeys
	}
	for _, part := range []span{runBlocks, runLarge} {
		if part.touches(in) {
			if less(in.low, part.low) {
				in.low = nil
			}
			if in.high != nil && !less(in.high, part.high) {
				in.high = nil
			}
			return in
		}
	}
	return noKeys
}

// tidy returns what is wrong with a page of a bucket as a whole.
func (p page) tidy(b bucket, in span) *Damage {
	if p.count == 0 && b.root != 0 {
		return &Damage{What: "a page without entries"}
	}
	d, _ := p.records(in, func(element) error { return nil }).(*Damage) // as it was made
	return d
}

// elements returns how many elements a page has room for, of those that it says it has.
func (p page) elements() int { return min(int(p.count), (len(p.raw)-headSize)/elementSize) }

// ofRun reports whether a page that nothing leads to has entries of a run.
func (p page) ofRun() bool {
	for i := range p.elements() {
		e, ok := p.at(i)
		if !ok || e.flags != 0 || len(e.key) == 0 {
			continue
		}
		if k := e.key[0]; k == run.InfoKey || k == run.BlockKey || k == run.LargeKey || e.isFilter() {
			return true
		}
	}
	return false
}

// isFilter tells the filter of a run from the record with the empty key.
func (e element) isFilter() bool {
	if len(e.key) != 1 || e.key[0] != run.FilterKey {
		return false
	}
	_, ok := run.DecodeFilter(e.value)
	return ok
}

// adopt gives a page that nothing leads to, to the run that it belongs to.
func (s *salvager) adopt(p page) {
	var owner *savedRun
	owners := 0
	for _, r := range s.runs {
		if len(r.lost) > 0 && r.lacksAll(p) {
			owner = r
			owners++
		}
	}
	if owners != 1 || !s.freeOK || s.noTree {
		s.PassedOver++
		return
	}
	owner.adopted = append(owner.adopted, p.id)
	for i := range p.elements() {
		if e, ok := p.at(i); ok && len(e.key) == 1 && e.key[0] == run.InfoKey {
			_ = owner.element(e) // the info that it could not be read was noted with the page above
		}
	}
}

// lacksAll reports whether a run lacks all entries of a page.
func (r *savedRun) lacksAll(p page) bool {
	for i := range p.elements() {
		if e, ok := p.at(i); !ok || !r.misses(e.key) {
			return false
		}
	}
	return true
}

// giveRuns hands out the runs, the oldest first.
func (s *salvager) giveRuns() error {
	for _, r := range s.runs {
		if !r.counts() {
			continue
		}
		if err := s.giveRun(r); err != nil {
			return err
		}
		if !r.complete() {
			s.RunsHurt = true
		}
		if r.finished || r.certain {
			s.Runs++
		} else {
			s.Doubtful += r.given.Entries
			s.lose(&Damage{Whole: true, What: fmt.Sprintf("nobody knows whether run %d was finished: its updates are taken", r.tally.number)}, nil)
		}
		s.Entries += r.given.Entries
	}
	return nil
}

// giveRun hands out the entries of a run: those of blocks first, because a value outside a block
// counts only if a block asks for it. Blocks stand in front of such values.
func (s *salvager) giveRun(r *savedRun) error {
	r.asked = map[uint64]bool{}
	if err := s.giveAdopted(r, run.BlockKey); err != nil {
		return err
	}
	w := walker{pages: &s.pages, bad: func(*Damage, span) error { return nil }, seen: s.mark}
	w.leaf = func(p page, _ span) error {
		if err := s.givePage(r, p, run.BlockKey); err != nil {
			return err
		}
		return s.givePage(r, p, run.LargeKey)
	}
	if err := w.bucket(r.bucket); err != nil {
		return err
	}
	return s.giveAdopted(r, run.LargeKey)
}

// giveAdopted hands out what pages have to which nothing leads.
func (s *salvager) giveAdopted(r *savedRun, kind byte) error {
	before := r.given.Entries
	for _, id := range r.adopted {
		p, _, err := s.read(id, flagLeaf, nil)
		if err != nil {
			continue
		}
		if err := s.givePage(r, p, kind); err != nil {
			return err
		}
	}
	s.Orphans += r.given.Entries - before
	return nil
}

// givePage hands out the elements of a page that are of one kind.
func (s *salvager) givePage(r *savedRun, p page, kind byte) error {
	for i := range p.elements() {
		e, ok := p.at(i)
		if !ok || e.flags != 0 || len(e.key) == 0 || e.key[0] != kind {
			continue
		}
		give := s.giveBlock
		if kind == run.LargeKey {
			give = s.giveLarge
		}
		if err := give(r, e); err != nil {
			return err
		}
	}
	return nil
}

// giveBlock hands out the entries of a block whose checksum is right.
func (s *salvager) giveBlock(r *savedRun, e element) error {
	b, err := run.OpenBlock(e.value)
	if err != nil {
		return nil // was told
	}
	for i := range b.Len() {
		key, flagged, err := b.Entry(i)
		if err != nil {
			break
		}
		if len(flagged) == 0 {
			r.asked[run.Hash(key)] = true
			continue
		}
		if err := s.give(r, key, flagged); err != nil {
			return err
		}
	}
	return nil
}

// giveLarge hands out a value that stands outside its block, if a block asks for it, or if the
// block that would ask for it may be lost.
func (s *salvager) giveLarge(r *savedRun, e element) error {
	key, hash := e.key[1:], run.Hash(e.key[1:])
	if !r.asked[hash] && !r.hides(run.BlockKey, key) {
		return nil
	}
	flagged, err := run.OpenLarge(e.value)
	if err != nil {
		return nil // was told
	}
	delete(r.asked, hash)
	return s.give(r, key, flagged)
}

// give hands out an entry.
func (s *salvager) give(r *savedRun, key, flagged []byte) error {
	f, ok := filestore.DecodeFlagged(flagged)
	if !ok || len(key) > filestore.MaxKeySize {
		return nil // was told
	}
	count(&r.given, key, flagged, f)
	if r.merged != nil && bytes.Compare(key, r.merged) <= 0 {
		return nil
	}
	var err error
	if f.Live {
		err = s.to.Set(key, f.Value)
	} else {
		err = s.to.Remove(key)
	}
	switch {
	case err != nil || !s.Meta.LWW:
	case f.Noted:
		err = s.to.Remember(key, f.Last)
	case !f.Live:
		err = s.to.Fade(key)
	}
	return err
}
