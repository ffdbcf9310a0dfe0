package db

import (
	"bytes"

	"gotycoon/db/expr"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// pageScan is how many records are looked at in one piece: the store is held no longer.
const pageScan = 512

// PageOptions say which records a page has.
type PageOptions struct {
	Prefix  []byte // of the keys
	After   []byte // key behind which it begins, there or not, as Page.Next has it; nil: at the first record
	Records int    // of the page at most
	Examine int    // records that are looked at for it at most
	Value   int    // bytes of each value that are copied at most
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

// Page returns records for people who leaf through a database of any kind. Nothing is held between two pages, and the work for each
// is bounded: where keys that begin alike do not stand together, a page may have few records, or none, and a next one all the same.
func (d *DB) Page(owed *Pending, o PageOptions) (Page, error) {
	p := pager{db: d, opts: o, from: store.Start{Key: o.After, Edge: o.After == nil}, together: d.bytewise()}
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
	xt, value, ok := p.db.split(stored)
	if !ok || record.Expired(xt, p.db.seconds()) {
		return
	}
	p.page.Records = append(p.page.Records, PageRecord{
		Key: bytes.Clone(key), Value: bytes.Clone(value[:min(len(value), p.opts.Value)]), Size: len(value), XT: xt,
	})
}

// Kind returns the type of the database.
func (d *DB) Kind() expr.Kind { return d.expr.Kind }
