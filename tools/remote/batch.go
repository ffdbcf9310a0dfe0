package remote

import (
	"context"

	"gotycoon/client"
)

// Where a batch is enough for one request.
const (
	batchRecords = 2000
	batchBytes   = 1 << 20
)

// batch is lines that go to the server together. Each key is in it once.
type batch struct {
	sets    []client.Record
	removes []string
	keys    map[string]struct{}
	lines   int // with those that do nothing
	bytes   int // of those lines
}

func (b *batch) has(key string) bool {
	_, ok := b.keys[key]
	return ok
}

// add adds a record to be stored, or without a value to be removed.
func (b *batch) add(key string, value [][]byte) {
	if b.keys == nil {
		b.keys = map[string]struct{}{}
	}
	b.keys[key] = struct{}{}
	if len(value) == 0 {
		b.removes = append(b.removes, key)
		return
	}
	b.sets = append(b.sets, client.Record{Key: key, Value: value[0]})
}

func (b *batch) full() bool { return b.lines >= batchRecords || b.bytes >= batchBytes }

// storer is a way to the server. send returns the original's name of the call that failed.
type storer interface {
	send(ctx context.Context, b *batch) (name string, err error)
}

const (
	nameSet    = "DB::set"
	nameRemove = "DB::remove"
)

// textStorer uses TSV-RPC.
type textStorer struct {
	db *client.DB
	xt client.XT
}

func (s *textStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make(map[string][]byte, len(b.sets))
		for _, r := range b.sets {
			records[r.Key] = r.Value
		}
		if _, err := s.db.SetBulk(ctx, records, s.xt, false); err != nil {
			return nameSet, err
		}
	}
	if len(b.removes) > 0 {
		_, err = s.db.RemoveBulk(ctx, b.removes, false)
	}
	return nameRemove, err
}

// binaryStorer uses the binary protocol.
type binaryStorer struct {
	client *client.Client
	db     uint16
	xt     client.XT
}

func (s *binaryStorer) send(ctx context.Context, b *batch) (name string, err error) {
	if len(b.sets) > 0 {
		records := make([]client.BinaryRecord, len(b.sets))
		for i, r := range b.sets {
			records[i] = client.BinaryRecord{DB: s.db, Key: r.Key, Value: r.Value, XT: s.xt}
		}
		n, err := s.client.SetBinary(ctx, records)
		if err == nil && n < len(records) { // the protocol passes over a database that does not exist
			err = &client.Error{Code: client.Invalid, Message: "no such database"}
		}
		if err != nil {
			return nameSet, err
		}
	}
	if len(b.removes) > 0 {
		_, err = s.client.RemoveBinary(ctx, s.db, b.removes)
	}
	return nameRemove, err
}
