package filestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/store"
	"gotycoon/ulog/update"
)

// Freeze returns the records at an instant. At the instant it freezes the active overlay; then it
// writes the overlay into the file, and begins a read transaction before the next checkpoint may
// change anything. bbolt keeps the pages of an open transaction as they are, so the transaction has
// exactly the records of the instant.
//
//	applyMu   ──── updates 1 to 90 ────┬──── updates 91, 92, … ───────────
//	                                   instant: the overlay is frozen
//	runMu     ─────────────────────────┴── write 1 to 90 ──┬── next checkpoint
//	                                                       transaction begins: has 1 to 90
//
// Freeze takes as long as a checkpoint, and waits for a checkpoint under way and for commands that
// work on the file (Hold); updates go on in memory.
//
// The price: while a Frozen is open, checkpoints cannot reuse the pages that they replace, and the
// file grows by every page that changes. The file does not shrink afterwards, but later checkpoints
// use the pages. A compaction puts another file in the place of this one, whose disk space is free
// when the Frozen is closed. Close of the store waits until every Frozen is closed, and so does a
// checkpoint for which the file would grow beyond mapSize. Rejected: keeping old values in memory
// as package memstore does. When a large file changes everywhere, its old values may take more
// memory than there is.
func (s *Store) Freeze(instant func(take func())) (store.Frozen, error) {
	f, err := s.freezeAt(instant)
	if err == nil {
		err = f.countNow(s)
	}
	if err != nil {
		if f != nil {
			_ = f.Close() // there is nothing in it that can fail
		}
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	return f, nil
}

func (s *Store) freezeAt(instant func(take func())) (*frozen, error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if s.opts.ReadOnly {
		instant(func() {})
		return s.beginFrozen()
	}
	if o := s.view.Load().oldest(); o != nil { // so that little is left to flush after the instant
		if err := s.flushTo(s.view.Load().frozen()[0], false, nil); err != nil {
			return nil, err
		}
	}
	var o *overlay
	instant(func() { o = s.freeze() })
	if err := s.flushTo(o, false, nil); err != nil {
		return nil, err
	}
	return s.beginFrozen()
}

// beginFrozen makes a Frozen of the file. For a read-only file it includes the overlay that a
// replay has filled. The caller holds runMu.
func (s *Store) beginFrozen() (*frozen, error) {
	f := &frozen{layers: layers{view: newView()}}
	if s.opts.ReadOnly {
		f.view = s.acquire()
	}
	if err := f.open(s); err != nil {
		f.view.release()
		return nil, err
	}
	return f, nil
}

// frozen is the records of a file at an instant. Its view is empty, but for a read-only file.
type frozen struct {
	layers
	count int64
	meta  Meta
}

// countNow counts the records, which may take long.
func (f *frozen) countNow(s *Store) (err error) {
	if f.meta, err = readMeta(f.tx); err != nil {
		return err
	}
	if s.opts.ReadOnly { // it does not change
		f.count, err = s.Count()
		return err
	}
	sum, err := f.countRuns(&f.meta)
	f.count = sum.count
	return err
}

// Count returns the number of records.
func (f *frozen) Count() int64 { return f.count }

// Scan visits the records. It holds no lock.
func (f *frozen) Scan(backward bool, visit func(key, value []byte) error) error {
	var stopped error
	err := f.scan(store.Start{Edge: true, Backward: backward}, func(key, value []byte) bool {
		stopped = visit(key, value)
		return stopped == nil
	})
	return errors.Join(stopped, err)
}

// Close ends the transaction.
func (f *frozen) Close() error {
	if f.view != nil {
		f.view.release()
		f.view = nil
	}
	if f.tx != nil {
		f.endTx()
		f.tx = nil
	}
	return nil
}

// Versions is what a Frozen of a file with Meta.LWW knows in addition to the versions of its
// records.
type Versions struct {
	Cleared Version      // of the last clear
	Floor   update.Stamp // see Meta.Floor
}

// Versions returns false for a file that keeps no versions, and for a read-only file that its last
// process did not close cleanly.
func (f *frozen) Versions() (Versions, bool) {
	if !f.meta.LWW || len(f.view.overlays) > 0 && f.view.active().stamp != f.meta.Stamp {
		return Versions{}, false
	}
	return Versions{Version{f.meta.ClearedAt, f.meta.ClearedBy}, f.meta.Floor}, true
}

// ScanVersions is Scan with versions and with the remembered removals, in the order of keys. It may
// be called when Versions returns true. A record without an entry has the version Oldest.
func (f *frozen) ScanVersions(visit func(key, value []byte, e LastUpdate) error) error {
	u := union{notes: true}
	for _, r := range f.runs.runs {
		u.add(f.runs.source(r, f.tx, store.Start{Edge: true}, f.watching()))
	}
	u.add(newVersionedSource(f.tx, f.watching()))
	u.start()
	var stopped error
	err := u.run(func(h *head) bool {
		e, noted := notedEntry(h.body)
		switch {
		case h.live() && !noted:
			stopped = visit(h.key, h.value(), LastUpdate{Version: Version{Stamp: Oldest}})
		case h.live():
			stopped = visit(h.key, h.value(), e)
		case noted:
			stopped = visit(h.key, nil, e)
		}
		return stopped == nil
	})
	return errors.Join(stopped, err)
}

// A versionedSource walks the records of the bottom and the entries of the bucket "version" side by
// side, and gives them as flagged values. A record without an entry has the version Oldest.
type versionedSource struct {
	records    *bottomSource
	versions   *bolt.Cursor
	walk       paging.Walk // of versions
	at, update []byte      // the present entry
	flagged    []byte
}

func newVersionedSource(tx *bolt.Tx, w watching) *versionedSource {
	s := &versionedSource{
		records:  newBottomSource(bottomOf(tx), store.Start{Edge: true}, w),
		versions: tx.Bucket([]byte(VersionBucket)).Cursor(),
	}
	w.walks.Begin(&s.walk, w.passages, s.versions.Bucket(), false)
	s.at, s.update = s.versions.First()
	s.walk.At(s.at)
	return s
}

// order compares the present record with the present entry; one at its end is greater.
func (s *versionedSource) order() int {
	switch key := s.records.head().key; {
	case key == nil:
		return 1
	case s.at == nil:
		return -1
	default:
		return bytes.Compare(key, s.at[1:])
	}
}

func (s *versionedSource) head() head {
	record := s.records.head()
	if record.key == nil && s.at == nil || s.err() != nil {
		return head{}
	}
	order := s.order()
	e, ok := LastUpdate{Version: Version{Stamp: Oldest}}, true
	if order >= 0 {
		e, ok = DecodeEntry(s.update)
	}
	s.flagged = s.flagged[:0]
	switch {
	case order <= 0:
		s.flagged = append(appendVersion(append(s.flagged, flagLive|flagNoted), e.Version), record.body...)
		return head{key: record.key, body: s.flagged}
	case ok:
		s.flagged = appendVersion(append(s.flagged, flagNoted), e.Version)
	default:
		s.flagged = append(s.flagged, flagDead)
	}
	return head{key: s.at[1:], body: s.flagged}
}

func (s *versionedSource) next() {
	order := s.order()
	if order <= 0 {
		s.records.next()
	}
	if order >= 0 {
		s.at, s.update = s.versions.Next()
		s.walk.At(s.at)
	}
}

func (s *versionedSource) err() error { return s.records.err() }

// CopyTo writes the file as it is at one moment, without what is only in memory, and returns the
// number of bytes. Checkpoints go on meanwhile, though the file grows by the pages that they
// replace.
func (s *Store) CopyTo(w io.Writer) (n int64, err error) {
	o := s.acquireFile()
	defer o.release()
	err = o.file.View(func(tx *bolt.Tx) error {
		n, err = paging.CopyTo(tx, s.path, o.info, w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("copy %s: %w", s.path, err)
	}
	return n, nil
}
