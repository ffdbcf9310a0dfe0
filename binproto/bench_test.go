package binproto_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/binproto"
	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/internal/netio"
)

const (
	benchBulk = 100       // records of a request
	benchKeys = 1_000_000 // records of the database
)

// BenchmarkServe serves bulks of 100 records of 100 bytes from memory, without a network. One
// operation is one request. records/core-s is per second of processor time, checkpoints included:
// it stands still on a busy machine.
func BenchmarkServe(b *testing.B) {
	for _, expr := range []string{":", "*", "%", "-", "+", "casket.kch", "casket.kct"} {
		h := benchHandler(b, expr)
		b.Run("set/"+expr, func(b *testing.B) { benchServe(b, h, benchSet) })
		b.Run("get/"+expr, func(b *testing.B) { benchServe(b, h, benchGet) })
		b.Run("remove/"+expr, func(b *testing.B) { benchServe(b, h, benchRemove) })
	}
}

func benchHandler(b *testing.B, expr string) *binproto.Handler {
	if len(expr) > 1 {
		expr = filepath.Join(b.TempDir(), expr)
	}
	catalog, err := db.Open([]string{expr}, db.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, catalog.Close()) })
	d := catalog.DB(0)
	recs := make([]db.Record, 1000)
	value := make([]byte, 100)
	for i := 0; i < benchKeys; i += len(recs) {
		for j := range recs {
			recs[j] = db.Record{Key: benchKey(nil, i+j), Value: value, XT: record.Never}
		}
		_, err := d.SetBulk(nil, recs, false)
		require.NoError(b, err)
	}
	return binproto.NewHandler(binproto.Options{Catalog: catalog.View})
}

func benchKey(dst []byte, i int) []byte { return fmt.Appendf(dst, "key-%012d", i) }

// benchServe serves requests made beforehand, over and over.
func benchServe(b *testing.B, h *binproto.Handler, request func(dst []byte) []byte) {
	var requests []byte
	for range 2000 {
		requests = request(requests)
	}
	c := &script{in: &endless{data: requests}}
	conn := netio.New(c, netio.NewPool(), netio.Options{})
	b.ReportAllocs()
	b.ResetTimer()
	begun := processorTime(b)
	for range b.N {
		require.NoError(b, conn.WaitByte())
		if !h.ServeOne(conn, "peer") {
			b.Fatal("request refused")
		}
		if c.out.Len() > 1<<20 {
			c.out.Reset()
		}
	}
	require.NoError(b, conn.Flush())
	records := float64(b.N) * benchBulk
	b.ReportMetric(records/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(records/(processorTime(b)-begun).Seconds(), "records/core-s")
}

// processorTime is what the process has used so far, user and system.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func benchSet(dst []byte) []byte {
	dst = frame.AppendHeader(dst, frame.Header{Magic: frame.SetBulk, RNum: benchBulk})
	value := make([]byte, 100)
	for range benchBulk {
		binary.BigEndian.PutUint64(value, rand.Uint64())
		key := benchKey(nil, rand.IntN(benchKeys))
		dst = frame.AppendRecord(dst, frame.Record{XT: int64(record.Never), Key: key, Value: value})
	}
	return dst
}

func benchGet(dst []byte) []byte { return benchNames(dst, frame.GetBulk) }

func benchRemove(dst []byte) []byte { return benchNames(dst, frame.RemoveBulk) }

func benchNames(dst []byte, m frame.Magic) []byte {
	dst = frame.AppendHeader(dst, frame.Header{Magic: m, RNum: benchBulk})
	for range benchBulk {
		dst = frame.AppendKey(dst, frame.Key{Key: benchKey(nil, rand.IntN(benchKeys))})
	}
	return dst
}

// endless delivers data again and again, a socket's worth at a time.
type endless struct {
	data []byte
	at   int
}

func (r *endless) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}
