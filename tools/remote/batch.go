package remote

import (
	"context"

	"gotycoon/client"
)

// A batch with so many changes, or so many bytes, is sent.
const (
	batchRecords = 2000
	batchBytes   = 1 << 20
)

// change is a record to store, or a key to remove.
type change struct {
	key     string
	value   []byte
	xt      client.Expiry
	removed bool
}

// batch is a number of changes that are sent together. Of several changes of one key only the last
// is sent, so the order in which the server makes them does not matter.
type batch struct {
	changes []change
	index   map[string]int // of changes, by key
	items   int            // added, including those that change nothing
	bytes   int            // that belong to the items
}

// add adds a change; size is the number of bytes that it counts for.
func (b *batch) add(c change, size int) {
	if b.index == nil {
		b.index = map[string]int{}
	}
	if i, ok := b.index[c.key]; ok {
		b.changes[i] = c
	} else {
		b.index[c.key] = len(b.changes)
		b.changes = append(b.changes, c)
	}
	b.count(size)
}

// count counts an item without a change.
func (b *batch) count(size int) {
	b.items++
	b.bytes += size
}

func (b *batch) full() bool { return b.items >= batchRecords || b.bytes >= batchBytes }

// split returns the records to store and the keys to remove.
func (b *batch) split() (sets []change, removes []string) {
	for _, c := range b.changes {
		if c.removed {
			removes = append(removes, c.key)
		} else {
			sets = append(sets, c)
		}
	}
	return sets, removes
}

// storer sends batches to the server. When send fails it returns the name of the failed call in the
// original. A batch may be sent again.
type storer interface {
	send(ctx context.Context, b *batch) (name string, err error)
}

const (
	nameSet    = "DB::set"
	nameRemove = "DB::remove"
)

// textStorer sends batches over TSV-RPC, with credentials. A call has one expiration time, so the
// records are grouped by theirs.
type textStorer struct{ db *client.DB }

func (s *textStorer) send(ctx context.Context, b *batch) (name string, err error) {
	sets, removes := b.split()
	groups := map[client.Expiry]map[string][]byte{}
	for _, c := range sets {
		if groups[c.xt] == nil {
			groups[c.xt] = map[string][]byte{}
		}
		groups[c.xt][c.key] = c.value
	}
	for xt, records := range groups {
		if _, err := s.db.SetBulk(ctx, records, xt, false); err != nil {
			return nameSet, err
		}
	}
	if len(removes) > 0 {
		_, err = s.db.RemoveBulk(ctx, removes, false)
	}
	return nameRemove, err
}

// binaryStorer sends batches over the binary protocol, where each record has its expiration time.
type binaryStorer struct {
	client *client.Client
	db     uint16
}

func (s *binaryStorer) send(ctx context.Context, b *batch) (name string, err error) {
	sets, removes := b.split()
	if len(sets) > 0 {
		records := make([]client.BinaryRecord, len(sets))
		for i, c := range sets {
			records[i] = client.BinaryRecord{DB: s.db, Key: c.key, Value: c.value, Expiry: c.xt}
		}
		n, err := s.client.SetBinary(ctx, records)
		if err == nil && n < len(records) { // the server skips records of a missing database
			err = &client.Error{Code: client.Invalid, Message: "no such database"}
		}
		if err != nil {
			return nameSet, err
		}
	}
	if len(removes) > 0 {
		_, err = s.client.RemoveBinary(ctx, s.db, removes)
	}
	return nameRemove, err
}
