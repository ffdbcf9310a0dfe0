package db

import (
	"bytes"
	"cmp"
	"errors"
	"strconv"

	"gotycoon/db/expr"
	"gotycoon/db/filestore"
	"gotycoon/db/keymatch"
	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// keyWork is the least work for a key in steps of a Heeding: reading 32 keys from a disk may take
// some milliseconds.
const keyWork = owed.HeedSteps / 32

// keys calls visit for every key from a place on, in the database's order, until visit returns
// false. The store is read in pieces, so nothing is held while visit runs.
func (d *core) keys(h *owed.Heeding, from store.Start, visit func(key []byte) bool) error {
	var room []byte
	var ends []int
	from.Ask = h.Asking()
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
		from = store.Start{Key: bytes.Clone(from.Key), Ask: from.Ask}
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
	err := d.keys(owed.NewHeeding(heed), store.Start{Edge: true}, func(key []byte) bool {
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

// MatchPrefix returns at most max keys that begin with prefix (all where max is negative), keys of
// expired records included. memory is asked for the memory of the keys.
func (d *DB) MatchPrefix(heed Heed, p *Pending, prefix []byte, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	if !d.Bytewise() {
		return d.filter(h, p, max, memory, func(key []byte) bool { return bytes.HasPrefix(key, prefix) })
	}
	found := keyList{memory: memory}
	err := d.keys(h, store.Start{Key: prefix, Inclusive: true}, func(key []byte) bool {
		return bytes.HasPrefix(key, prefix) && int64(len(found.keys)) != max && found.add(key)
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.oweAll(p)
}

// MatchRegex returns at most max keys in which a POSIX extended regular expression matches
// somewhere. It returns ErrRegex for a bad expression.
func (d *DB) MatchRegex(heed Heed, p *Pending, regex string, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	match, err := keymatch.Matcher(h, regex)
	if err != nil {
		return nil, err
	}
	return d.filter(h, p, max, memory, match)
}

// filter returns at most max keys that match.
func (d *core) filter(h *owed.Heeding, p *Pending, max int64, memory keymatch.Memory, match func(key []byte) bool) ([][]byte, error) {
	found := keyList{memory: memory}
	err := d.keys(h, store.Start{Edge: true}, func(key []byte) bool {
		return int64(len(found.keys)) != max && (!match(key) || found.add(key)) && h.Err() == nil
	})
	if err := cmp.Or(err, found.err, h.Err()); err != nil {
		return nil, err
	}
	return found.keys, d.oweAll(p)
}

// MatchSimilar returns the keys whose edit distance from origin is at most limit characters (bytes,
// or with utf the characters of UTF-8), nearest first, and at most max of them.
func (d *DB) MatchSimilar(heed Heed, p *Pending, origin []byte, limit int64, utf bool, max int64, memory keymatch.Memory) ([][]byte, error) {
	h := owed.NewHeeding(heed)
	measure := keymatch.Similarity(h, origin, utf, limit)
	top := keymatch.NewNearest(max, h, memory)
	var lack error
	err := d.keys(h, store.Start{Edge: true}, func(key []byte) bool {
		if n := measure(key); n != keymatch.TooFar {
			lack = top.Add(n, key)
		}
		return lack == nil
	})
	if err = errors.Join(err, lack); err != nil {
		return nil, err
	}
	keys := top.Keys()
	if err := h.Err(); err != nil {
		return nil, err
	}
	return keys, d.oweAll(p)
}

// keyList is the keys that an operation has found.
type keyList struct {
	memory keymatch.Memory
	keys   [][]byte
	err    error // of memory
}

// add adds a copy of key, and reports whether there was memory for it.
func (l *keyList) add(key []byte) bool {
	if l.err = l.memory.Ask(key); l.err != nil {
		return false
	}
	l.keys = append(l.keys, bytes.Clone(key))
	return true
}

// pageScan is how many records are looked at in one piece: the store is held no longer.
const pageScan = 512

// PageOptions say which records a page has.
type PageOptions struct {
	Prefix []byte // of the keys
	// key behind which it begins, there or not, as Page.Next has it; nil: at the first record
	After   []byte
	Records int // of the page at most
	Examine int // records that are looked at for it at most
	Value   int // bytes of each value that are copied at most
}

// PageRecord is a live record of a page.
type PageRecord struct {
	Key   []byte
	Value []byte // its beginning
	Size  int    // of the whole value in bytes
	XT    int64  // absolute expiration time in seconds, MaxXT for never
}

// Page is some records in the order of the database.
type Page struct {
	Records  []PageRecord
	Next     []byte // what After is for the following page; nil: there are no more records
	Examined int    // records looked at
}

// Page returns records for people who leaf through a database of any kind. Nothing is held between
// two pages, and the work for each page is bounded: where keys that begin alike do not stand
// together, a page may have few records, or none, and there is a next page all the same.
func (d *DB) Page(owed *Pending, o PageOptions) (Page, error) {
	p := pager{db: d, opts: o, from: store.Start{Key: o.After, Edge: o.After == nil}, together: d.Bytewise()}
	if p.together && bytes.Compare(o.After, o.Prefix) < 0 {
		p.from = store.Start{Key: o.Prefix, Inclusive: true}
	}
	for !p.full && !p.ended {
		if err := p.scan(); err != nil {
			return Page{}, systemError(err)
		}
	}
	if !p.ended {
		p.page.Next = p.from.Key
	}
	return p.page, d.oweAll(owed)
}

// pager collects a page.
type pager struct {
	db       *DB
	opts     PageOptions
	from     store.Start
	together bool // keys that begin alike stand together
	page     Page

	full, ended bool // there is no more room; there are no more records
}

// scan looks at the next piece.
func (p *pager) scan() error {
	var last []byte
	n, stopped := 0, false
	err := p.db.records().Scan(p.from, func(key, stored []byte) bool {
		p.full = len(p.page.Records) >= p.opts.Records || p.page.Examined >= p.opts.Examine
		if stopped = p.full || n == pageScan; stopped {
			return false
		}
		if p.together && !bytes.HasPrefix(key, p.opts.Prefix) {
			return false
		}
		n++
		p.page.Examined++
		last = append(last[:0], key...)
		p.take(key, stored)
		return true
	})
	p.ended = !stopped
	if n > 0 {
		p.from = store.Start{Key: last}
	}
	return err
}

// take adds a record if it is wanted.
func (p *pager) take(key, stored []byte) {
	if !bytes.HasPrefix(key, p.opts.Prefix) {
		return
	}
	xt, value, ok := p.db.Split(stored)
	if !ok || record.Expired(xt, p.db.seconds()) {
		return
	}
	p.page.Records = append(p.page.Records, PageRecord{
		Key: bytes.Clone(key), Value: bytes.Clone(value[:min(len(value), p.opts.Value)]), Size: len(value), XT: xt,
	})
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
	rows := expr.StatusRows(d.expr)
	rows["path"] = d.path()
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

// Measure returns the figures. It takes microseconds, but for a file with many new keys some
// milliseconds.
func (d *DB) Measure() Measures {
	m := Measures{Records: -1, Bytes: d.Size(), Expired: d.sweeper.expired.Load(), Evicted: d.sweeper.evicted.Load()}
	switch {
	case d.expr.Kind == expr.Text: // its records are not counted
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
