package filestore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/run"
)

// # Runs and their merge
//
// A checkpoint of half a million updates of random keys touches half a million pages of a large
// file, and each page has 4 KiB: 60 times the bytes of the updates. So a flush writes an overlay as
// a run (package run), in order and without gaps, and the merge brings the updates of many runs
// into the bottom at once. The rule: a merge begins when the runs have a sixth of the bottom's
// bytes or records, or when there are mergeRuns of them.
//
// The arithmetic, for records of 116 bytes: packed they take 132 bytes of the file, gaps and
// branches included. When the runs have a sixth of the records, a merge rewrites six records for
// each update, since nearly every block has an update. An update then costs
//
//	log 130 B + run 150 B + 6 × 132 B ≈ 1,070 B
//
// at any size up to mergeRuns overlays; an overlay of 64 MiB has 450,000 such updates. With 32 runs
// a file of 64 million records gets updates for a fifth of them (940 B), one of 256 million for
// an eighteenth, where an update costs 1,900 B, since now a third of the blocks stay as they are;
// there a greater Options.Limit helps. The file takes the packed records, the runs that wait, and
// those that come meanwhile: a sixth and a half of it more.
//
// A merge is done in pieces, each a transaction of about pieceTime (piece.go): another goroutine
// may have the processor and the disk in between, and a flush goes first. Meta.MergedTo moves with
// each piece. The records of the file stay the same: a key up to MergedTo has the newest entry of
// the merged runs in the bottom too, and readers ask for nothing there in these runs. So a crash
// between two pieces loses nothing, and the next process goes on where this one was. What a piece
// has passed is dropped from the runs, one run after the other, and at the end of the merge the
// runs themselves, one in a piece.
//
// Rejected: levels of runs, as in a log-structured merge tree. They would bring fewer bytes per
// update for very large files, but a record would be written once for each level, and a reader
// would have to look at every level for a key that is in none. Rejected too: runs in files of their
// own. They would be as fast, but a copy of the database would no longer be a copy of one file.

// mergeOn merges a piece; at the end of a merge, removals are forgotten.
func (s *Store) mergeOn(early bool) (more bool, err error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if err := s.settle(); err != nil || s.compactor.paused {
		return false, err
	}
	more, err = s.mergePiece(early)
	s.brake.merged(err)
	if err != nil || more && s.Meta().MergeRun != 0 {
		return more, err
	}
	return more, s.removals.prune(pruneEntries)
}

// mergePiece merges some entries of the runs into the bottom, or drops a run that is merged. With
// early it does not wait until a merge is due. more reports whether the merge has to go on.
func (s *Store) mergePiece(early bool) (more bool, err error) {
	l, m := s.runs.newest(), s.Meta()
	if l == nil {
		return false, s.reload()
	}
	if m.MergeRun == 0 {
		if len(l.runs) == 0 || !early && !l.due(&m) {
			return false, nil
		}
		m.MergeRun = l.runs[0].Number()
		s.merger.whole = m.MergeRun
	}
	begun, p := time.Now(), piece{}
	var trimmed *fileRun
	var left run.Info
	var written *bolt.Tx
	err = s.update(func(tx *bolt.Tx) error {
		written = tx
		next := &runList{runs: l.runs}
		if p, err = s.mergeInto(tx, l, &m); err != nil {
			return err
		}
		if p.entries == 0 && p.last {
			err = dropMerged(tx, next, &m)
		} else {
			trimmed, left, err = s.dropPassed(tx, next, &m)
		}
		if err != nil {
			return err
		}
		next.mergeRun, next.mergedTo = m.MergeRun, m.MergedTo
		s.runs.note(tx, next)
		return writeMeta(tx, m)
	})
	if err != nil {
		return false, fmt.Errorf("merge runs in %s: %w", s.path, err)
	}
	s.desc.change(func(now *Meta) { *now = m })
	if trimmed != nil {
		trimmed.left = left
	}
	took, stats := time.Since(begun), written.Stats()
	p.own = stats.GetPageAlloc() - p.records
	s.merger.learn(p, took)
	s.tellBrake()
	s.brake.worked(&s.brake.merge, p.bytes, took)
	return true, nil
}

// mergeInto brings entries behind Meta.MergedTo into the bottom.
func (s *Store) mergeInto(tx *bolt.Tx, l *runList, m *Meta) (p piece, err error) {
	w, err := s.beginWrite(tx, m)
	if err != nil {
		return p, err
	}
	u := union{notes: m.LWW}
	for _, r := range l.runs {
		if r.Number() <= m.MergeRun {
			u.add(l.source(r, tx, m.behindMerged(), watching{}))
		}
	}
	u.start()
	limit := s.opts.Limit / batchShare
	full := func() bool {
		return p.entries > 0 && (p.entries >= s.merger.entries || w.written() >= limit)
	}
	var last []byte
	p.last = true
	failed := u.run(func(h *head) bool {
		for passed := []byte{}; passed != nil && err == nil; {
			if full() {
				p.last = false
				return false
			}
			if passed, err = w.passNext(h.key); passed != nil {
				p.entries++
				last = append(last[:0], passed...)
			}
		}
		if err == nil {
			err = w.put(h.key, h.body)
		}
		p.entries++
		p.bytes += int64(len(h.key) + len(h.body))
		last = append(last[:0], h.key...)
		return err == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return p, err
	}
	if p.last && s.merger.whole == m.MergeRun {
		if last, err = passRest(w, &p, full, last); err != nil {
			return p, err
		}
	}
	if p.entries > 0 {
		m.MergedTo = append([]byte{}, last...)
	}
	err = w.end()
	p.records = w.written()
	return p, err
}

// passRest passes what the tree has behind the last entry of the runs. last is the last key that
// was passed.
func passRest(w *bottomWriter, p *piece, full func() bool, last []byte) ([]byte, error) {
	for {
		if full() {
			p.last = false
			return last, nil
		}
		passed, err := w.passNext(nil)
		if err != nil {
			return nil, err
		}
		if passed == nil {
			w.meta.Packed = true
			return last, nil
		}
		p.entries++
		last = append(last[:0], passed...)
	}
}

// dropPassed drops what the merge has passed of one of its runs, so that the file does not have it
// twice. The runs have their turns, one in trimEach pieces: each time the first page of the run is
// written, which has the filter.
func (s *Store) dropPassed(tx *bolt.Tx, l *runList, m *Meta) (r *fileRun, left run.Info, err error) {
	merged := l.runs
	for len(merged) > 0 && merged[0].Number() > m.MergeRun {
		merged = merged[1:]
	}
	if len(merged) == 0 {
		return nil, left, nil
	}
	s.merger.turn++
	if s.merger.turn%trimEach != 0 {
		return nil, left, nil
	}
	r = merged[s.merger.turn/trimEach%len(merged)]
	left, err = run.DropUpTo(tx, r.Run, r.left, m.MergedTo, liveSize)
	return r, left, err
}

const trimEach = 4

// dropMerged drops the oldest run that is merged. With the last one the merge ends.
func dropMerged(tx *bolt.Tx, l *runList, m *Meta) error {
	if len(l.runs) == 0 {
		m.MergeRun, m.MergedTo = 0, nil
		return nil
	}
	oldest := l.runs[len(l.runs)-1]
	if err := run.Drop(tx, oldest.Run); err != nil {
		return err
	}
	l.runs = slices.Clone(l.runs[:len(l.runs)-1])
	if n := len(l.runs); n == 0 || l.runs[n-1].Number() > m.MergeRun {
		m.MergeRun, m.MergedTo = 0, nil
	}
	return nil
}

const batchShare = 4 // a transaction takes at most this part of the overlay's limit
