//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/frame"
)

const (
	bulkSize = 100
	bulkKeys = 1_000_000
	clients  = 2
)

// bulk measures the binary protocol in bulks of 100 records: records per second, and per second of
// the server's processor time.
func (b *bench) bulk() error {
	b.table("Binary bulk of 100 records, 16-byte keys, 100-byte values, 2 connections, records/s",
		"database", "operation", "records/s", "per core of the server")
	for _, expr := range []string{":", "*", "%"} {
		if err := b.bulkMemory(expr); err != nil {
			return err
		}
	}
	return b.bulkFile()
}

func (b *bench) bulkMemory(expr string) error {
	p, err := start(b.server, "-port", "$PORT", "-le", expr)
	if err != nil {
		return err
	}
	defer p.stop() // a measurement's end
	if err := fill(p); err != nil {
		return err
	}
	if err := b.bulkRow(p, "`"+expr+"`", "set", frame.SetBulk, b.length); err != nil {
		return err
	}
	return b.bulkRow(p, "`"+expr+"`", "get", frame.GetBulk, b.length)
}

// bulkFile measures sets into a file of a million keys: first into the overlay only, then for
// longer, with checkpoints all the time, with several sizes of the overlay.
func (b *bench) bulkFile() error {
	for _, mode := range []struct {
		name, limit string
		times       time.Duration
	}{
		{"set, until the overlay limit", "8g", 1},
		{"set, steadily, `-checkpoint 16m`", "16m", 4},
		{"set, steadily, `-checkpoint 64m` (default)", "64m", 4},
		{"set, steadily, `-checkpoint 256m`", "256m", 4},
	} {
		p, err := start(b.server, "-port", "$PORT", "-le", "-ulog", "$DIR/ulog", "-sid", "1", "-checkpoint", mode.limit, "$DIR/a.kct")
		if err != nil {
			return err
		}
		defer p.stop() // a measurement's end
		if err := fill(p); err != nil {
			return err
		}
		if err := b.bulkRow(p, "`.kct` of a million keys", mode.name, frame.SetBulk, mode.times*b.length); err != nil {
			return err
		}
	}
	rate, err := boltRate(b.length)
	if err != nil {
		return err
	}
	b.row("bbolt alone, a million keys", "sorted batches of 100,000", rate, "")
	return nil
}

// bulkRow measures one kind of request.
func (b *bench) bulkRow(p *process, database, name string, m frame.Magic, length time.Duration) error {
	before, err := p.cpu()
	if err != nil {
		return err
	}
	begin := time.Now()
	records, err := load(p, m, begin.Add(length))
	if err != nil {
		return err
	}
	wall := time.Since(begin)
	after, err := p.cpu()
	if err != nil {
		return err
	}
	b.row(database, name, float64(records)/wall.Seconds(), float64(records)/(after-before).Seconds())
	return nil
}

// load sends bulks of random keys over all connections until the deadline.
func load(p *process, m frame.Magic, until time.Time) (int64, error) {
	var records atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		all.Go(func() {
			c, err := net.Dial("tcp", p.addr())
			if err != nil {
				errs[i] = err
				return
			}
			defer c.Close()
			l := loader{conn: c, rnd: rand.New(rand.NewPCG(uint64(i), 1)), magic: m}
			for time.Now().Before(until) && errs[i] == nil {
				errs[i] = l.bulk(func() uint64 { return l.rnd.Uint64N(bulkKeys) })
				records.Add(bulkSize)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return records.Load(), nil
}

// fill stores a million keys.
func fill(p *process) error {
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		return err
	}
	defer c.Close()
	l := loader{conn: c, magic: frame.SetBulk}
	next := uint64(0)
	for next < bulkKeys {
		if err := l.bulk(func() uint64 { next++; return next - 1 }); err != nil {
			return err
		}
	}
	return nil
}

// loader sends bulks over one connection and reads the replies.
type loader struct {
	conn    net.Conn
	rnd     *rand.Rand
	magic   frame.Magic
	out, in []byte
}

// key spreads consecutive numbers over the key space.
func key(n uint64) []byte { return fmt.Appendf(nil, "%016x", n*0x9E3779B97F4A7C15) }

func value() []byte { return bytes.Repeat([]byte{'x'}, valueSize) }

func (l *loader) bulk(number func() uint64) error {
	l.out = frame.AppendHeader(l.out[:0], frame.Header{Magic: l.magic, RNum: bulkSize})
	for range bulkSize {
		k := key(number())
		if l.magic == frame.SetBulk {
			l.out = frame.AppendRecord(l.out, frame.Record{Key: k, Value: value(), XT: math.MaxInt64})
		} else {
			l.out = frame.AppendKey(l.out, frame.Key{Key: k})
		}
	}
	if _, err := l.conn.Write(l.out); err != nil {
		return err
	}
	return l.reply()
}

// reply reads a reply, and with get_bulk the records behind it.
func (l *loader) reply() error {
	l.in = l.in[:0]
	hits, err := l.need(func() (int, error) {
		n, size, err := frame.DecodeReply(l.in, l.magic)
		l.in = l.in[min(size, len(l.in)):]
		return int(n), err
	})
	if err != nil || l.magic != frame.GetBulk {
		return err
	}
	for range hits {
		if _, err := l.need(func() (int, error) {
			_, size, err := frame.DecodeRecord(l.in)
			l.in = l.in[min(size, len(l.in)):]
			return 0, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// need reads from the connection until decode has a whole part.
func (l *loader) need(decode func() (int, error)) (int, error) {
	for {
		before := l.in
		n, err := decode()
		if err != frame.ErrShort {
			return n, err
		}
		room := append(before[:len(before):len(before)], make([]byte, 64<<10)...)
		got, err := l.conn.Read(room[len(before):])
		if err != nil {
			return 0, err
		}
		l.in = room[:len(before)+got]
	}
}
