package replication_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
	"gotycoon/db/record"
	"gotycoon/replication"
)

// BenchmarkCatchUp is a follower with an update log that fetches what is in its master's.
func BenchmarkCatchUp(b *testing.B) {
	for _, row := range []struct{ name, expr string }{{"memory", ":"}, {"file", "a.kct"}} {
		b.Run(row.name, func(b *testing.B) {
			a := newNode(b, 1, ":", ":")
			recs := make([]db.Record, 0, 1000)
			for i := range b.N {
				recs = append(recs, db.Record{Key: fmt.Appendf(nil, "%08d", i), Value: []byte("0123456789abcdef"), XT: record.Never})
				if len(recs) == cap(recs) || i == b.N-1 {
					_, err := a.catalog.DB(0).SetBulk(nil, recs, false)
					require.NoError(b, err)
					recs = recs[:0]
				}
			}
			expr := row.expr
			if expr != ":" {
				expr = filepath.Join(b.TempDir(), expr)
			}
			n := newNode(b, 2, expr, ":")
			a.set(1, "end", "x")
			b.ResetTimer()
			_, end := n.follow(replication.Master{Host: "127.0.0.1", Port: a.port})
			eventually(b, "the last update", func() bool { return n.get(1, "end") != "" })
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
			end()
		})
	}
}

// BenchmarkTwoSlaves is what two followers with update logs lag behind while 100,000 records per
// second are written.
func BenchmarkTwoSlaves(b *testing.B) {
	const perSecond, bulk = 100_000, 100
	a := newNode(b, 1, ":", ":")
	var lags [2][]time.Duration
	var sampling sync.WaitGroup
	stop := make(chan struct{})
	nodes := []*node{newNode(b, 2, filepath.Join(b.TempDir(), "a.kct"), ":"), newNode(b, 3, ":", ":")}
	for i, n := range nodes {
		_, end := n.follow(replication.Master{Host: "127.0.0.1", Port: a.port})
		defer end()
		sampling.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				if written, err := strconv.ParseInt(n.get(1, "marker"), 10, 64); err == nil {
					lags[i] = append(lags[i], time.Since(time.Unix(0, written)))
				}
			}
		})
	}
	recs := make([]db.Record, bulk)
	begun := time.Now()
	for i := 0; b.Loop(); i++ {
		for k := range recs {
			recs[k] = db.Record{Key: fmt.Appendf(nil, "%08d", (i*bulk+k)%1_000_000), Value: []byte("0123456789abcdef0123456789abcdef"), XT: record.Never}
		}
		_, err := a.catalog.DB(0).SetBulk(nil, recs, false)
		require.NoError(b, err)
		a.set(1, "marker", fmt.Sprint(time.Now().UnixNano()))
		time.Sleep(time.Until(begun.Add(time.Duration(i*bulk) * time.Second / perSecond))) //lint:sleep the load is meant to be even
	}
	b.ReportMetric(float64(b.N*bulk)/time.Since(begun).Seconds(), "records/s")
	close(stop)
	sampling.Wait()
	all := slices.Concat(lags[0], lags[1])
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-lag-median")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-lag-p99")
		b.ReportMetric(float64(all[len(all)-1].Microseconds())/1000, "ms-lag-max")
	}
}

// BenchmarkIdleFollowers is a writer while a thousand followers are connected that want other
// updates.
func BenchmarkIdleFollowers(b *testing.B) {
	for _, count := range []int{0, 1000} {
		for _, flags := range []uint32{0, frame.Extended} {
			b.Run(fmt.Sprint(count, " followers, extended ", flags != 0), func(b *testing.B) {
				a := newNode(b, 1)
				var following sync.WaitGroup
				for range count {
					c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", a.port))
					require.NoError(b, err)
					_, err = c.Write(frame.AppendFollow(nil, frame.Follow{Flags: flags | frame.WhiteSID, SID: 77}))
					require.NoError(b, err)
					defer c.Close()
					following.Go(func() { acknowledge(c) })
				}
				eventually(b, "all", func() bool { return len(a.replicas.List()) == count })
				key, value := []byte("key"), []byte("0123456789abcdef")
				for b.Loop() {
					require.NoError(b, a.catalog.DB(0).Set(nil, key, value, record.Never))
				}
				b.StopTimer()
				a.cut()
				following.Wait()
			})
		}
	}
}

// acknowledge reads a stream and acknowledges its heartbeats.
func acknowledge(c net.Conn) {
	in := bufio.NewReader(c)
	if _, err := in.Discard(1); err != nil {
		return
	}
	for {
		head, err := in.Peek(9)
		if err != nil {
			return
		}
		if head[0] == byte(frame.Heartbeat) {
			_, _ = in.Discard(9)
			if _, err := c.Write([]byte{byte(frame.Ack)}); err != nil {
				return
			}
			continue
		}
		head, err = in.Peek(13)
		if err != nil {
			return
		}
		_, _ = in.Discard(13 + int(binary.BigEndian.Uint32(head[9:])))
	}
}

// BenchmarkDelay is the time from an acknowledged update on the master to its being visible on the
// follower.
func BenchmarkDelay(b *testing.B) {
	a, n := newNode(b, 1), newNode(b, 2)
	n.follow(replication.Master{Host: "127.0.0.1", Port: a.port})
	a.set(0, "k", "start")
	eventually(b, "the stream", func() bool { return n.get(0, "k") == "start" })
	var delays []time.Duration
	for i := 0; b.Loop(); i++ {
		value := fmt.Sprint(i)
		a.set(0, "k", value)
		begun := time.Now()
		for n.get(0, "k") != value {
			time.Sleep(10 * time.Microsecond) //lint:sleep a busy loop would keep the follower from running
		}
		delays = append(delays, time.Since(begun))
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "ms-median")
}
