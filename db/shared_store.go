package db

import (
	"context"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/record"
	"gotycoon/db/store"
	"gotycoon/internal/pieces"
	"gotycoon/ulog"
)

// sharedStore is the records of a database as everything that only reads wants to see them: a store
// in the order of the keys' bytes, each record in its stored form. Each call asks the engine.
type sharedStore struct{ *shared }

var _ store.Store = (*sharedStore)(nil)

// key names a record of the database.
func (s *shared) key(key []byte) engine.Key { return engine.Key{DB: s.db.index, Key: key} }

// Get appends the value of key to dst.
func (s *sharedStore) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	dst, rec, err := s.one(dst, key, r)
	return dst, rec != nil, err
}

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

// Sizes of the pages of a scan. A cursor that moves by one record looks at two, and a page of a
// long scan is worth its round trip.
const (
	firstPage = 2
	laterPage = 512
	pageBytes = 1 << 20
)

// Scan visits records from a place on, of one moment for each page.
func (s *sharedStore) Scan(from store.Start, visit func(key, value []byte) bool) error {
	return s.pages(from, source{s.engine.Scan, s.lanes.large}, visit)
}

// floored is the records from a key on.
type floored struct {
	*sharedStore
	floor []byte
}

// Scan visits records from a place on, as far as the floor.
func (f *floored) Scan(from store.Start, visit func(key, value []byte) bool) error {
	read := func(ctx context.Context, scan engine.Scan) (engine.Page, error) {
		scan.Floor = f.floor
		return f.engine.Scan(ctx, scan)
	}
	return f.pages(from, source{read, f.lanes.large}, visit)
}

// pages visits the records of one page after the other.
func (s *shared) pages(from store.Start, of source, visit func(key, value []byte) bool) error {
	scan := engine.Scan{
		DB: s.db.index, Key: from.Key, Edge: from.Edge, Inclusive: from.Inclusive, Backward: from.Backward, Bare: from.Bare,
		Limit: firstPage, Bytes: pageBytes, Most: pageBytes,
	}
	var stored []byte
	for {
		page, err := s.page(of, scan)
		if err != nil {
			return err
		}
		for i := range page.Records {
			r, on := &page.Records[i], false
			if r.Left > 0 {
				on, err = s.visitLarge(r, of, visit)
			} else {
				stored, _ = s.appendStored(stored[:0], r, nil)
				on = visit(r.Key.Key, stored)
			}
			if err != nil || !on {
				return err
			}
		}
		if !page.More {
			return nil
		}
		if from.Ask != nil {
			if err := from.Ask(); err != nil {
				return err
			}
		}
		scan.Key, scan.Edge, scan.Inclusive, scan.Limit = page.Records[len(page.Records)-1].Key.Key, false, false, laterPage
	}
}

// Count returns the number of records.
func (s *sharedStore) Count() (int64, error) {
	f, err := s.count(context.Background())
	return f.records, err
}

// Size returns about how many bytes the records take in the engine, as they were a second ago at
// most; while the engine does not answer, as they were last.
func (s *sharedStore) Size() int64 { return s.recent().bytes }

const (
	figuresLast = time.Second // figures are asked for again after so long
	figuresWait = time.Second // and so long at most
)

// recent returns figures for monitoring, which nobody has to wait for long.
func (s *shared) recent() figures {
	f := s.figures.Load()
	if f != nil && time.Since(f.at) < figuresLast {
		return *f
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresWait)
	defer cancel()
	if now, err := s.count(ctx); err == nil {
		s.figures.Store(&now)
		return now
	}
	if f == nil {
		return figures{}
	}
	return *f
}

// count asks for the figures.
func (s *shared) count(ctx context.Context) (figures, error) {
	f, err := gather.Ask(ctx, s.groups, func(ctx context.Context) (f figures, err error) {
		f.at = time.Now()
		f.records, f.bytes, err = s.engine.Count(ctx, s.db.index)
		return f, err
	})
	return f, engineError(err)
}

// Apply is never called: updates go to the engine in groups.
func (s *sharedStore) Apply(ulog.Stamp, []ulog.Update) {
	panic("db: an update of a shared database in the store")
}

// Close leaves the engine to the catalog.
func (s *sharedStore) Close() error { return nil }

// view is the records as a group has them, for the body whose turn it is.
type view struct {
	of *shared
	*gather.View
}

// Get appends the value of key to dst.
func (v *view) Get(dst, key []byte, r store.Reader) (value []byte, found bool, err error) {
	rec, found := v.Read(v.of.key(key))
	if !found {
		return dst, false, nil
	}
	dst, err = v.of.appendStored(dst, &rec, r)
	return dst, true, err
}

// moment is the records of an instant, for a Frozen.
type moment struct {
	*shared
	engine.Snapshot
	records int64
}

// Count returns the number of records of the moment.
func (m *moment) Count() int64 { return m.records }

// Scan visits the records of the moment.
func (m *moment) Scan(backward bool, visit func(key, value []byte) error) error {
	var failed error
	err := m.pages(store.Start{Edge: true, Backward: backward}, source{read: m.Snapshot.Scan}, func(key, stored []byte) bool {
		failed = visit(key, stored)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// moment returns the records of a moment, and a stamp up to which the engine's log is in them, 0
// without a log.
func (s *shared) moment() (records *moment, at ulog.Stamp, bytes int64, err error) {
	snap, err := gather.Ask(context.Background(), s.groups, func(ctx context.Context) (engine.Snapshot, error) {
		return s.engine.Snapshot(ctx, s.db.index)
	})
	if err != nil {
		return nil, 0, 0, engineError(err)
	}
	n, err := gather.Ask(context.Background(), s.groups, snap.Count)
	if err != nil {
		_ = snap.Close()
		return nil, 0, 0, engineError(err)
	}
	return &moment{s, snap, n}, snap.Stamp(), s.recent().bytes, nil
}
