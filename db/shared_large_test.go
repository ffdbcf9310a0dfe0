package db

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
	"gotycoon/db/store"
)

// measured is an engine that knows how many bytes of values its largest answer had.
type measured struct {
	engine.Engine
	most   atomic.Int64
	reads  atomic.Int64
	before func() // each read
}

func (m *measured) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	m.reads.Add(1)
	if m.before != nil {
		m.before()
	}
	recs, err := m.Engine.Read(ctx, keys, how)
	m.note(recs)
	for i, r := range recs { // an engine may have both in one piece of memory
		room := append(bytes.Clone(r.Key.Key), r.Value...)
		recs[i].Key.Key, recs[i].Value = room[:len(r.Key.Key):len(r.Key.Key)], room[len(r.Key.Key):]
	}
	return recs, err
}

func (m *measured) Scan(ctx context.Context, s engine.Scan) (engine.Page, error) {
	page, err := m.Engine.Scan(ctx, s)
	m.note(page.Records)
	return page, err
}

func (m *measured) note(recs []engine.Record) {
	n := 0
	for _, r := range recs {
		n += len(r.Value)
	}
	m.most.Store(max(m.most.Load(), int64(n)))
}

// withLarge opens a database of an engine with 60 records of 500,000 bytes, which are 30 MB.
func withLarge(t *testing.T) (d *DB, m *measured, keys [][]byte) {
	m = &measured{Engine: mem.New(mem.Options{}).Server("0")}
	d = mustOpen(t, Options{Shared: m}, "a").DB(0)
	for i := range 60 {
		keys = append(keys, fmt.Appendf(nil, "k%02d", i))
		require.NoError(t, d.Set(nil, keys[i], bytes.Repeat(keys[i][1:], 250_000), record.Never))
	}
	m.most.Store(0)
	return d, m, keys
}

const megabytes = 1 << 20

// However many large records a client asks for, a few megabytes of them are in memory at a time that
// nobody has given the client.
func TestManyLargeRecordsOfAnEngine(t *testing.T) {
	d, m, keys := withLarge(t)
	keys = append(keys, keys[7], keys[0])
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for _, atomic := range []bool{false, true} {
		purse, seen := &purse{left: 40 * megabytes}, 0
		require.NoError(t, d.GetBulk(&Pending{Purse: purse}, keys, atomic, func(i int, value []byte, xt int64) {
			require.Equal(t, bytes.Repeat(keys[i][1:], 250_000), value)
			require.EqualValues(t, record.MaxXT, xt)
			require.Equal(t, seen, i)
			if seen++; seen == len(keys) && !atomic {
				require.Less(t, heap()-before, int64(15*megabytes), "nothing keeps the former ones")
			}
		}))
		require.Equal(t, len(keys), seen)
		require.Zero(t, purse.held)
		if atomic {
			require.GreaterOrEqual(t, purse.most, 30_000_000, "all of them are of one moment")
		} else {
			require.LessOrEqual(t, purse.most, 5*megabytes)
		}
	}
	require.LessOrEqual(t, m.most.Load(), int64(5*megabytes))
	poor := &Pending{Purse: &purse{left: 10 * megabytes}}
	require.ErrorIs(t, d.GetBulk(poor, keys, true, func(int, []byte, int64) {}), errEmpty)
	n := 0
	require.NoError(t, d.Scan(nil, store.Start{Edge: true}, func(key, stored []byte) bool { n++; return true }))
	require.Equal(t, 60, n)
	require.LessOrEqual(t, m.most.Load(), int64(5*megabytes))
}

// Records that change while their values are on their way are read again, until all are of one
// moment.
func TestLargeRecordsOfOneMoment(t *testing.T) {
	d, m, keys := withLarge(t)
	id, err := m.Lane(t.Context())
	require.NoError(t, err)
	seq, reads := uint64(0), 0
	m.before = func() {
		if reads++; reads == 1 || reads > 8 {
			return
		}
		seq++
		g := &engine.Group{ID: engine.GroupID{Lane: id, Seq: seq}}
		for _, n := range []int{0, 59} {
			value := bytes.Repeat([]byte{byte('a' + seq)}, 500_000+int(seq))
			g.Changes = append(g.Changes, engine.Change{Key: engine.Key{Key: keys[n]}, Value: value, XT: engine.Forever})
		}
		if seq == 5 {
			g.Changes = append(g.Changes[:1:1], engine.Change{Key: engine.Key{Key: keys[30]}, Remove: true}, g.Changes[1])
		}
		_, err := m.Write(context.Background(), g)
		require.NoError(t, err)
	}
	values := map[int]string{}
	require.NoError(t, d.GetBulk(nil, keys, true, func(i int, value []byte, _ int64) { values[i] = string(value) }))
	require.Len(t, values, 59)
	require.Equal(t, values[0], values[59])
	require.Greater(t, reads, 8)
	require.Equal(t, strings.Repeat("01", 250_000), values[1])
	reads = 0
	n := 0
	require.NoError(t, d.GetBulk(nil, keys, false, func(int, []byte, int64) { n++ }))
	require.Equal(t, 59, n)
}

// Clients that ask for one large record at the same time get it from one answer of the engine. Each
// asks for room for it, and none changes what the others look at.
func TestClientsOfOneLargeRecord(t *testing.T) {
	m := &measured{Engine: mem.New(mem.Options{}).Server("0")}
	d := mustOpen(t, Options{Shared: m, Gather: gather.Options{Readers: 1}}, "a").DB(0)
	value := bytes.Repeat([]byte("x"), 2*megabytes)
	require.NoError(t, d.Set(nil, []byte("k"), value, record.Never))
	const clients = 20
	var asked atomic.Int64
	m.before = func() {
		if m.reads.Load() == 1 { // so that all others share the next request
			require.Eventually(t, func() bool { return asked.Load() == clients }, 10*time.Second, time.Millisecond)
			for d.shared.groups.Stats().Queue < clients {
				runtime.Gosched()
			}
		}
	}
	var work sync.WaitGroup
	for range clients {
		work.Go(func() {
			purse := &purse{left: 10 * megabytes}
			asked.Add(1)
			err := d.GetBulk(&Pending{Purse: purse}, [][]byte{[]byte("k")}, false, func(_ int, got []byte, _ int64) {
				assert.True(t, bytes.Equal(value, got))
			})
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, purse.most, len(value))
		})
	}
	work.Wait()
}
