package filestore

import (
	"bytes"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"

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
// use the pages. Close of the store waits until every Frozen is closed, and so does a checkpoint
// for which the file would grow beyond mapSize. Rejected: keeping old values in memory as package
// memstore does. When a large file changes everywhere, its old values may take more memory than
// there is.
func (s *Store) Freeze(instant func(take func())) (store.Frozen, error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if s.opts.ReadOnly {
		instant(func() {})
		return s.beginFrozen()
	}
	if err := s.writeLeftover(); err != nil {
		return nil, err
	}
	var o *overlay
	instant(func() { o = s.freezeOverlay() })
	if err := s.writeFrozen(o, false); err != nil {
		return nil, err
	}
	return s.beginFrozen()
}

// beginFrozen makes a Frozen of the file. For a read-only file it includes the overlay that a
// replay has filled. The caller holds runMu.
func (s *Store) beginFrozen() (store.Frozen, error) {
	f := &frozen{}
	if s.opts.ReadOnly {
		n, err := s.Count()
		if err != nil {
			return nil, err
		}
		f.view, f.count = s.acquire(), n
	}
	if err := f.begin(s.file); err != nil {
		_ = f.Close() // there is nothing in it that can fail
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	return f, nil
}

// frozen is the records of a file at an instant.
type frozen struct {
	tx    *bolt.Tx
	view  *view // of a read-only file, which does not change; else nil
	count int64
	meta  Meta
}

func (f *frozen) begin(file *bolt.DB) (err error) {
	if f.tx, err = file.Begin(false); err != nil {
		return err
	}
	if f.meta, err = readMeta(f.tx); f.view == nil {
		f.count = f.meta.Count
	}
	return err
}

// Count returns the number of records.
func (f *frozen) Count() int64 { return f.count }

// Scan visits the records. It holds no lock.
func (f *frozen) Scan(backward bool, visit func(key, value []byte) error) (err error) {
	_ = f.merge(backward).run(func(key, value []byte) bool {
		err = visit(key, value)
		return err == nil
	})
	return err
}

func (f *frozen) merge(backward bool) *merge {
	from := store.Start{Edge: true, Backward: backward}
	if f.view != nil {
		return newMerge(f.view, f.tx, from)
	}
	return &merge{sources: []source{newBaseSource(f.tx.Bucket([]byte(DataBucket)), from)}, backward: backward}
}

// Close ends the transaction.
func (f *frozen) Close() error {
	if f.view != nil {
		f.view.release()
		f.view = nil
	}
	if f.tx == nil {
		return nil
	}
	tx := f.tx
	f.tx = nil
	return tx.Rollback()
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
	if !f.meta.LWW || f.view != nil && f.view.active.stamp != f.meta.Stamp {
		return Versions{}, false
	}
	return Versions{Version{f.meta.ClearedAt, f.meta.ClearedBy}, f.meta.Floor}, true
}

// ScanVersions is Scan with versions and with the remembered removals, in the order of keys. It may
// be called when Versions returns true. A record without an entry has the version Oldest.
func (f *frozen) ScanVersions(visit func(key, value []byte, e LastUpdate) error) error {
	data, versions := f.tx.Bucket([]byte(DataBucket)).Cursor(), f.tx.Bucket([]byte(VersionBucket)).Cursor()
	key, value := data.First()
	at, b := versions.First()
	for key != nil || at != nil {
		order := compareHeads(key, at)
		e, ok := LastUpdate{Version: Version{Stamp: Oldest}}, true
		if order >= 0 {
			e, ok = DecodeEntry(b)
		}
		var err error
		switch {
		case order <= 0:
			e.Removed = false
			err = visit(key[1:], value, e)
		case ok:
			e.Removed = true
			err = visit(at[1:], nil, e)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			key, value = data.Next()
		}
		if order >= 0 {
			at, b = versions.Next()
		}
	}
	return nil
}

// compareHeads compares the keys at two cursors without their prefixes; nil means that a cursor is
// at its end.
func compareHeads(a, b []byte) int {
	switch {
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return bytes.Compare(a[1:], b[1:])
}

// CopyTo writes the file as it is at one moment, without what is only in memory, and returns the
// number of bytes. Checkpoints go on meanwhile, though the file grows by the pages that they
// replace.
func (s *Store) CopyTo(w io.Writer) (n int64, err error) {
	err = s.file.View(func(tx *bolt.Tx) error {
		n, err = tx.WriteTo(w)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("copy %s: %w", s.path, err)
	}
	return n, nil
}
