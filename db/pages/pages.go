// Package pages shows the records of a database page by page, to people who leaf through it and to
// services that read their own records.
package pages

import (
	"bytes"
	"time"

	"gotycoon/db/owed"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// Database is what has the records. See the methods of db.DB.
type Database interface {
	Scan(heed owed.Heed, from store.Start, visit func(key, stored []byte) bool) error
	Split(stored []byte) (xt int64, value []byte, ok bool)
	Bytewise() bool
	Now() time.Time
	Seen(p *owed.Pending) error
}

// Options say which records a page has.
type Options struct {
	Prefix []byte // of the keys
	// key behind which it begins, there or not, as Page.Next has it; nil: at the first record
	After   []byte
	Records int // of the page at most
	Examine int // records that are looked at for it at most
	Value   int // bytes of each value that are copied at most
}

// Record is a live record of a page.
type Record struct {
	Key   []byte
	Value []byte // its beginning
	Size  int    // of the whole value in bytes
	XT    int64  // absolute expiration time in seconds, MaxXT for never
}

// Page is some records in the order of the database.
type Page struct {
	Records  []Record
	Next     []byte // what After is for the following page; nil: there are no more records
	Examined int    // records looked at
}

// Of returns a page of a database of any kind. Nothing is held between two pages, and the work for
// each page is bounded: where keys that begin alike do not stand together, a page may have few
// records, or none, and there is a next page all the same.
func Of(d Database, p *owed.Pending, o Options) (Page, error) {
	from, together := store.Start{Key: o.After, Edge: o.After == nil}, d.Bytewise()
	if together && bytes.Compare(o.After, o.Prefix) < 0 {
		from = store.Start{Key: o.Prefix, Inclusive: true}
	}
	var page Page
	full, last := false, from.Key
	room := []byte{} // not nil: Next may be the empty key
	err := d.Scan(nil, from, func(key, stored []byte) bool {
		if full = len(page.Records) >= o.Records || page.Examined >= o.Examine; full {
			return false
		}
		named := bytes.HasPrefix(key, o.Prefix)
		if together && !named {
			return false
		}
		page.Examined++
		room = append(room[:0], key...)
		last = room
		if xt, value, ok := d.Split(stored); named && ok && !record.Expired(xt, d.Now().Unix()) {
			page.Records = append(page.Records, Record{
				Key: bytes.Clone(key), Value: bytes.Clone(value[:min(len(value), o.Value)]), Size: len(value), XT: xt,
			})
		}
		return true
	})
	if err != nil {
		return Page{}, err
	}
	if full {
		page.Next = last
	}
	return page, d.Seen(p)
}
