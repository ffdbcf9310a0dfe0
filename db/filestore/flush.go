package filestore

import (
	"errors"
	"fmt"
	"math"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"gotycoon/db/filestore/run"
	"gotycoon/db/store"
)

// writeOverlay writes an overlay into the file as a run, in transactions of a bounded size. Only
// the last transaction makes the run visible and moves Meta.Stamp: before it the file is as it was.
func (s *Store) writeOverlay(o *overlay, clean bool, p *progress) error {
	if s.runs.newest() == nil { // the number of the new run is above those in the file
		if err := s.reload(); err != nil {
			return fmt.Errorf("write %s: %w", s.path, err)
		}
	}
	f := s.newFlushing(o)
	for !f.done {
		if err := f.step(clean); err != nil {
			return fmt.Errorf("write %s: %w", s.path, err)
		}
		p.tell(f.written())
	}
	return nil
}

// describe says in the file's description that the file has the overlay.
func (o *overlay) describe(m *Meta, clean bool) {
	m.Merging, m.MergeEpoch = nil, 0
	m.Stamp, m.Checkpoints, m.Clean = o.stamp, o.flush, clean
	m.ClearedAt, m.ClearedBy = o.clearedBy.Stamp, o.clearedBy.SID
	if o.follow.at != 0 {
		m.Position, m.PositionAt = o.follow.state, o.follow.at
	}
}

// update changes the file. A transaction whose commit has failed may have taken place all the same,
// if only the last sync failed. So after a failure the file is asked what it has, and whoever tries
// again begins there. Nothing that the transaction did counts as done before another one succeeds.
func (s *Store) update(change func(tx *bolt.Tx) error) error {
	if err := s.olderReaders(); err != nil {
		return err
	}
	if s.runs.newest() == nil {
		if err := s.reload(); err != nil {
			return err
		}
	}
	number := 0
	err := s.file.Update(func(tx *bolt.Tx) error {
		number = tx.ID()
		s.file.AllocSize = int(min(max(tx.Size()/growShare, leastGrow), mostGrow))
		return change(tx)
	})
	if err != nil {
		s.unfinished = true
		s.tookPlace(number)
		_ = s.reload() // if this fails, readers ask the file, and the next update tries again
	}
	return err
}

var errOlderReaders = errors.New("the disk has failed, and somebody still reads the file as it was before, for a backup or a snapshot: " +
	"updates stay in memory and log until the reader has ended")

// tookPlace finds out whether a transaction whose commit failed took place. If it did, bbolt takes
// the pages that it has replaced for free, whoever reads them: bbolt forgets with the failure that
// readers from before may need them. So nothing is written until these readers have ended.
func (s *Store) tookPlace(number int) {
	now := number // if nobody can tell, it did
	_ = s.file.View(func(tx *bolt.Tx) error {
		now = tx.ID()
		return nil
	})
	if number > 0 && now >= number {
		s.older = s.reading.Load()
		s.reading.Store(s.older.again())
		s.older.release()
	}
}

// olderReaders returns an error while there are readers from before a commit that failed and took
// place.
func (s *Store) olderReaders() error {
	if s.older == nil {
		return nil
	}
	select {
	case <-s.older.unused:
		s.older = nil
		return nil
	default:
		return errOlderReaders
	}
}

// reload reads from the file which runs it has, and the part of its description that says what is
// below them.
func (s *Store) reload() error {
	m, err := metaOf(s.file)
	if err != nil {
		return err
	}
	s.desc.change(func(now *Meta) {
		now.Count, now.Bytes, now.Summed, now.Sum, now.Removals, now.Floor = m.Count, m.Bytes, m.Summed, m.Sum, m.Removals, m.Floor
		now.MergeRun, now.MergedTo = m.MergeRun, m.MergedTo
	})
	return s.runs.load(s.file)
}

// tellBrake tells the brake what there is to merge. The caller holds runMu.
func (s *Store) tellBrake() {
	l, m := s.runs.newest(), s.Meta()
	s.brake.runs.Store(int64(len(l.runs)))
	s.brake.debt.Store(math.Float64bits(l.debt(&m, s.opts.Limit)))
}

// By how much the file grows at a time: a part of its size, within bounds. bbolt would let a file
// of a few records grow by 16 MiB.
const (
	growShare = 8
	leastGrow = 32 << 10
	mostGrow  = 16 << 20
)

// A flushing is one overlay on its way into the file.
type flushing struct {
	store *Store
	o     *overlay
	w     *run.Writer // nil: the overlay has no entries
	from  store.Start
	last  []byte // key of the last entry added
	added int64  // entries
	about usage  // in the file when the run is in it
	done  bool
}

func (s *Store) newFlushing(o *overlay) *flushing {
	f := &flushing{store: s, o: o, from: store.Start{Edge: true}}
	if n := int64(o.tree.Len()); n > 0 {
		room := min(flushBytes, max(s.opts.Limit/flushShare, leastFlush))
		f.w = run.NewWriter(s.runs.nextNumber(), n, int(room))
	}
	return f
}

// The blocks of one transaction of a flush.
const (
	flushShare = 8 // they take this part of the overlay's limit
	flushBytes = 8 << 20
	leastFlush = 128 << 10
)

// step is one transaction.
func (f *flushing) step(clean bool) error {
	s, m, done := f.store, f.store.Meta(), false
	err := s.update(func(tx *bolt.Tx) (err error) {
		if done, err = f.add(tx); err != nil || !done {
			return err
		}
		if err := f.finish(tx, &m); err != nil {
			return err
		}
		f.o.describe(&m, clean)
		return writeMeta(tx, m)
	})
	if err != nil {
		return err
	}
	s.unfinished, f.done = !done, done
	if done {
		s.desc.change(func(now *Meta) { *now = m })
		s.desc.noteExact(f.about)
	}
	return nil
}

// add adds entries until the transaction is full; done reports whether the overlay is at its end.
func (f *flushing) add(tx *bolt.Tx) (done bool, err error) {
	if f.from.Edge && f.store.unfinished {
		if err := run.DropUnfinished(tx); err != nil {
			return false, err
		}
	}
	if f.w == nil {
		return true, nil
	}
	if err := f.w.Begin(tx); err != nil {
		return false, err
	}
	done = true
	f.o.scan(f.from, func(key, flagged []byte) bool {
		if f.w.Full() {
			done = false
			return false
		}
		err = f.addOne(key, flagged)
		return err == nil
	})
	if err == nil {
		err = f.w.End()
	}
	f.from = store.Start{Key: f.last}
	return done, err
}

// written returns about how many bytes of the overlay are in the file.
func (f *flushing) written() int64 {
	n := int64(f.o.tree.Len())
	return int64(float64(f.o.tree.Bytes()) * float64(f.added) / float64(max(n, 1)))
}

func (f *flushing) addOne(key, flagged []byte) error {
	f.last = append(f.last[:0], key...)
	f.added++
	live, size := liveSize(key, flagged)
	return f.w.Add(key, flagged, live, size)
}

// finish makes the run visible. After a clear it is all that the file has.
func (f *flushing) finish(tx *bolt.Tx, m *Meta) (err error) {
	l := f.store.runs.newest()
	next := &runList{runs: l.runs, mergeRun: m.MergeRun, mergedTo: m.MergedTo}
	base, exact := l.usage(m)
	if f.o.cleared.Load() {
		f.store.compactor.clears.Add(1)
		base, exact = usage{}, true
		if err := clearFile(tx, l, m); err != nil {
			return err
		}
		next = &runList{}
	}
	f.about = base
	if f.w != nil {
		lower := layers{tx: tx, runs: next, bottom: bottomOf(tx)}
		counted := false
		if now, err := readMeta(tx); err != nil {
			return err
		} else if now.Checkpoints >= f.o.flush && !f.o.cleared.Load() { // a commit that failed has brought it into the file
			counted = true
		} else if f.about, counted, err = f.o.estimate(&below{file: &lower}, base); err != nil {
			return err
		}
		made, err := f.w.Finish(f.about.count, f.about.bytes)
		if err != nil {
			return err
		}
		r := newFileRun(made)
		if exact && counted {
			r.total = &f.about
		}
		next.runs = append([]*fileRun{r}, next.runs...)
	}
	f.store.runs.note(tx, next)
	return nil
}

// clearFile removes all records, and what is remembered of them; of the runs it leaves the one that
// is being written.
func clearFile(tx *bolt.Tx, l *runList, m *Meta) error {
	for _, r := range l.runs {
		if err := run.Drop(tx, r.Run); err != nil {
			return err
		}
	}
	made := []string{DataBucket}
	if m.LWW {
		made = append(made, VersionBucket)
	}
	for _, name := range append([]string{run.PackedBucket}, made...) {
		// The bucket of versions is missing until a file that is told to keep them is written, that
		// of packed records until there are some.
		if err := tx.DeleteBucket([]byte(name)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return err
		}
	}
	for _, name := range made {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	m.Count, m.Bytes, m.Removals, m.Base = 0, 0, 0, 0
	m.Summed, m.Sum, m.Packed = true, 0, true
	m.MergeRun, m.MergedTo = 0, nil
	return nil
}
