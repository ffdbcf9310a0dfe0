package filestore

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"gotycoon/db/filestore/paging"
	"gotycoon/db/store"
)

// layers is what a reader sees of a store at one moment: the overlays of a view, the runs of the
// file, and its bottom. Each hides what is below it.
type layers struct {
	view   *view
	file   *opened // has tx; nil: the caller ends tx
	tx     *bolt.Tx
	runs   *runList
	bottom bottom
	walks  paging.Walks // of the sources of union
}

// begin returns what a reader sees now. The caller ends it soon: bbolt cannot reuse a page while an
// older transaction is open.
func (s *Store) begin() (l layers, err error) {
	l.view = s.acquire()
	if err := l.open(s); err != nil {
		l.view.release()
		return layers{}, err
	}
	return l, nil
}

// open begins the transaction, after the view was taken.
func (l *layers) open(s *Store) (err error) {
	l.file = s.acquireFile()
	if l.tx, err = l.file.file.Begin(false); err != nil {
		l.file.release()
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	if l.runs, err = l.file.runs.in(l.tx); err != nil {
		l.endTx()
		return fmt.Errorf("read %s: %w", s.path, err)
	}
	l.bottom = bottomOf(l.tx)
	l.bottom.mirror = l.file.mirror.Load()
	return nil
}

func (l *layers) end() {
	l.view.release()
	l.endTx()
}

func (l *layers) endTx() {
	l.walks.End()
	_ = l.tx.Rollback() // of a read transaction
	l.file.release()
}

// watching returns who watches a scan of the layers.
func (l *layers) watching() watching {
	if l.file == nil { // of a transaction that writes
		return watching{walks: &l.walks}
	}
	return watching{&l.walks, l.file.passages}
}

// inFile looks a key up in the runs and the bottom. The slice is valid until end.
func (l *layers) inFile(key []byte) (value []byte, found bool, err error) {
	flagged, err := l.runs.find(l.tx, key, l.bottom.mirror)
	switch {
	case err != nil:
		return nil, false, err
	case flagged != nil && flagged[0]&flagLive == 0:
		return nil, false, nil
	case flagged != nil:
		return flagged[valueAt(flagged[0]):], true, nil
	}
	return l.bottom.get(key)
}

// Get appends the value of key to dst.
func (s *Store) Get(dst, key []byte, r store.Reader) ([]byte, bool, error) {
	l := layers{view: s.acquire()}
	dst, state, err := l.view.get(dst, key, r)
	if state != unknown || err != nil {
		l.view.release()
		return dst, state == live, err
	}
	if err := l.open(s); err != nil {
		l.view.release()
		return dst, false, err
	}
	defer l.end()
	value, found, err := l.inFile(key)
	if err != nil {
		return dst, false, fmt.Errorf("read %s: %w", s.path, err)
	}
	dst, err = store.Append(dst, value, r)
	return dst, found, err
}

// Scan merges the overlays and the file. It holds a transaction while it runs, so callers visit a
// limited number of records and come back with the last key.
func (s *Store) Scan(from store.Start, visit func(key, value []byte) bool) error {
	l, err := s.begin()
	if err != nil {
		return err
	}
	defer l.end()
	return l.scan(from, visit)
}

// scan visits the records in one direction.
func (l *layers) scan(from store.Start, visit func(key, value []byte) bool) error {
	passed, asked := 0, error(nil)
	err := l.union(from).run(func(h *head) bool {
		if h.live() {
			return visit(h.key, h.value())
		}
		if passed++; passed%store.AskEvery == 0 && from.Ask != nil {
			asked = from.Ask()
		}
		return asked == nil
	})
	return errors.Join(asked, err)
}

// union returns the entries of all layers down to the first that hides everything below it.
func (l *layers) union(from store.Start) *union {
	u := &union{backward: from.Backward}
	defer u.start()
	if l.view != nil {
		for _, o := range l.view.overlays {
			u.add(newOverlaySource(o, from))
			if o.cleared.Load() {
				return u
			}
		}
	}
	for _, r := range l.runs.runs {
		u.add(l.runs.source(r, l.tx, from, l.watching()))
	}
	u.add(newBottomSource(l.bottom, from, l.watching()))
	return u
}
