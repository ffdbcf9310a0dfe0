package db

import (
	"bytes"
	"strconv"

	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/owed"
	"gotycoon/db/store"
)

// keyWork is the least work for a key in steps of a Heeding: reading 32 keys from a disk may take
// some milliseconds.
const keyWork = owed.HeedSteps / 32

// Keys calls visit for every key from a place on, in the database's order, until visit returns
// false or h ends the work. The store is read in pieces, so nothing is held while visit runs.
func (d *core) Keys(h *owed.Heeding, from store.Start, visit func(key []byte) bool) error {
	var room []byte
	var ends []int
	from.Ask, from.Bare = h.Asking(), true
	for {
		if !h.Now() {
			return h.Err()
		}
		room, ends = room[:0], ends[:0]
		more := false
		err := d.records().Scan(from, func(key, _ []byte) bool {
			if more = len(ends) == scanRecords || len(room) >= scanBytes; more {
				return false
			}
			room = append(room, key...)
			ends = append(ends, len(room))
			return true
		})
		if err != nil {
			return systemError(err)
		}
		begin := 0
		for _, end := range ends {
			if !h.Work(keyWork+len(room[begin:end])) || !visit(room[begin:end]) {
				return h.Err()
			}
			from.Key, begin = room[begin:end], end
		}
		if !more {
			return nil
		}
		from = store.Start{Key: bytes.Clone(from.Key), Ask: from.Ask, Bare: true}
	}
}

// Scan visits the records from a place on, in their stored form, expired records included, until
// visit returns false. The store is read in pieces, between which nothing is held and heed may end
// the scan. visit is called within the store: it must be quick, and must not use the database. A
// record that changes meanwhile is seen as it was or as it is.
func (d *DB) Scan(heed Heed, from store.Start, visit func(key, stored []byte) bool) error {
	from.Ask = heed.Asking()
	for {
		if err := heed.Now(); err != nil {
			return err
		}
		var last []byte
		records, size, ended := 0, 0, false
		err := d.records().Scan(from, func(key, stored []byte) bool {
			records++
			size += len(key) + len(stored)
			if ended = !visit(key, stored); ended {
				return false
			}
			if records == scanRecords || size >= scanBytes {
				last = bytes.Clone(key)
				return false
			}
			return true
		})
		if err != nil || ended || records < scanRecords && size < scanBytes {
			return systemError(err)
		}
		from = store.Start{Key: last, Backward: from.Backward, Ask: from.Ask}
	}
}

// Stored calls visit for every record in its stored form, expired records included, in the
// database's order. The slices are valid during the call. Nothing is held meanwhile: a record that
// is stored or removed during the walk may be seen or not. An error of visit ends the walk and is
// returned.
func (d *DB) Stored(visit func(key, stored []byte) error) error {
	from := store.Start{Edge: true}
	for {
		piece, more, err := d.piece(from)
		if err != nil {
			return systemError(err)
		}
		for i := range piece {
			if err := visit(piece[i].key, piece[i].stored); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		from = store.Start{Key: piece[len(piece)-1].key}
	}
}

// Walk shows every live record to visit until visit returns false. The slices are the visitor's.
// Nothing is locked meanwhile.
func (d *DB) Walk(heed Heed, p *Pending, visit func(key, value []byte, xt int64) bool) error {
	var failed error
	err := d.Keys(owed.NewHeeding(heed), store.Start{Edge: true}, func(key []byte) bool {
		before := p.Taken()
		defer p.GiveBack(before)
		value, xt, found, err := d.read(p, nil, key)
		if failed = err; err != nil {
			return false
		}
		return !found || visit(bytes.Clone(key), value, xt)
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return d.oweAll(p)
}

// Count returns the number of records, expired ones that are not yet collected included; -1 for a
// text database.
func (d *DB) Count(p *Pending) (int64, error) {
	if d.expr.Kind == expr.Text {
		return -1, nil
	}
	n, err := d.records().Count()
	if err != nil {
		return 0, systemError(err)
	}
	return n, d.oweAll(p)
}

// Size returns the bytes that the database takes: the size of its file, or of its records in
// memory.
func (d *DB) Size() int64 {
	if d.file != nil {
		return d.file.FileSize()
	}
	return d.used()
}

// Status returns the rows of the procedure status. Rows about the layout of the original's files
// have the values of a fresh file there.
func (d *DB) Status(p *Pending) (map[string]string, error) {
	as := d.expr
	if e, err := expr.Parse(d.expr.Raw); d.shared != nil && err == nil && e.Kind != expr.Text {
		as = e // a database casket.kct shows what scripts look for in a file of this name
	}
	rows := expr.StatusRows(as)
	rows["path"] = d.path()
	if d.shared != nil {
		rows["realtype"] = rows["type"] // clients of databases in memory look there
	}
	if _, ok := rows["flags"]; ok && d.readOnly {
		rows["flags"] = "0" // a file that is only read is not marked as open
	}
	if d.expr.Kind == expr.Text {
		rows["size"] = strconv.FormatInt(d.Size(), 10)
		return rows, nil
	}
	n, err := d.Count(p)
	if err != nil {
		return nil, err
	}
	rows["count"] = strconv.FormatInt(n, 10)
	rows["size"] = strconv.FormatInt(d.Size(), 10)
	if _, ok := rows["realsize"]; ok {
		rows["realsize"] = rows["size"]
	}
	if text := d.Compaction().String(); text != "" {
		rows["compaction"] = text
	}
	return rows, nil
}

// Measures are figures of a database for monitoring.
type Measures struct {
	Records int64           // about: see filestore.(*Store).Estimate; -1 for a text database
	Bytes   int64           // see Size
	Expired int64           // records removed since the start because their time was over
	Evicted int64           // records removed since the start because of a limit
	File    filestore.Stats // of a database OnDisk, text databases included
}

// MergeError returns why the runs of the database's file cannot be merged into its records, nil if
// the latest attempt went well. Until they can, they pile up.
func (d *DB) MergeError() error {
	if d.file == nil {
		return nil
	}
	return d.file.Stats().MergeErr
}

// CheckpointError returns why the latest checkpoint of the database's file has failed, nil if it
// has not.
func (d *DB) CheckpointError() error {
	if d.file == nil {
		return nil
	}
	return d.file.Stats().Err
}

// Measure returns the figures. It takes microseconds, but for a file with many new keys some
// milliseconds.
func (d *DB) Measure() Measures {
	m := Measures{Records: -1, Bytes: d.Size(), Expired: d.sweeper.expired.Load(), Evicted: d.sweeper.evicted.Load()}
	switch {
	case d.expr.Kind == expr.Text: // its records are not counted
	case d.shared != nil:
		m.Records = d.shared.recent().records
	case d.file != nil:
		m.Records = d.file.Estimate()
	default:
		if n, err := d.store.Count(); err == nil {
			m.Records = n
		}
	}
	if d.file != nil {
		m.File = d.file.Stats()
	}
	return m
}
