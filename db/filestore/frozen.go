package filestore

import (
	"fmt"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/store"
)

// Freeze returns the records at an instant: it moves everything applied before into the file, and begins a read
// transaction before the next checkpoint may change anything. That takes as long as a checkpoint, and waits for one under way
// and for commands that work on the file (Hold); updates go on in memory.
//
// While a Frozen is open, checkpoints cannot use the pages again that they replace: the file grows by every page that
// changes. It gets no smaller afterwards, but the pages are used then. Close of the store waits for every Frozen, and so
// does a checkpoint for which the file would grow beyond mapSize.
func (s *Store) Freeze(instant func(take func())) (store.Frozen, error) {
	s.cp.runMu.Lock()
	defer s.cp.runMu.Unlock()
	if s.opts.ReadOnly {
		instant(func() {})
		return s.begin()
	}
	if err := s.finishLeftover(); err != nil {
		return nil, err
	}
	var o *overlay
	instant(func() { o = s.freeze() })
	if err := s.finish(o, false); err != nil {
		return nil, err
	}
	return s.begin()
}

// begin makes a Frozen of the file, and for a read-only one of what a replay has left in memory. The caller holds runMu.
func (s *Store) begin() (store.Frozen, error) {
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
	return &merge{sources: []source{newBaseSource(f.tx.Bucket([]byte(dataBucket)), from)}, backward: backward}
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
