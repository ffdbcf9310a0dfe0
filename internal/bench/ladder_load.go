//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gotycoon/client/wire/frame"
	"gotycoon/internal/histogram"
)

const (
	ladderKeySize = 16
	bulkConns     = 4
)

// mix maps numbers to random-looking ones, no two to the same: the finalizer of SplitMix64 (Steele,
// Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
func mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xBF58476D1CE4E5B9
	n = (n ^ n>>27) * 0x94D049BB133111EB
	return n ^ n>>31
}

// ladderKey appends the key of record n, 16 hexadecimal digits.
func ladderKey(out []byte, n uint64) []byte {
	const digits = "0123456789abcdef"
	for m, shift := mix(n+1), 60; shift >= 0; shift -= 4 {
		out = append(out, digits[m>>shift&15])
	}
	return out
}

// ladderKeys chooses from the records of a rung.
func ladderKeys(size int) keyMaker {
	return func(out []byte, random uint64) []byte { return ladderKey(out, random%uint64(size)) }
}

// ladderValue appends the value that record n gets with update seq:
//
//	8 bytes   seq, big endian
//	92 bytes  noise from a place that n and seq determine
//
// So a value tells which update it is from, and whether it is whole.
func ladderValue(out []byte, n, seq uint64) []byte {
	out = binary.BigEndian.AppendUint64(out, seq)
	const rest = valueSize - 8
	at := mix(n^mix(seq)) % (noiseSize - rest)
	return append(out, noise[at:at+rest]...)
}

const noiseSize = 16 << 10

var noise = makeNoise()

func makeNoise() []byte {
	rnd, out := rand.New(rand.NewPCG(3, 5)), make([]byte, noiseSize)
	for i := range out {
		out[i] = byte(rnd.Uint32())
	}
	return out
}

// bulkConn stores and reads records in binary bulks, one at a time.
type bulkConn struct {
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
	numbers []uint64 // of the records of a bulk
	scratch []byte
	waits   histogram.Histogram
}

func dialBulk(addr string) (*bulkConn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &bulkConn{conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// set stores the records c.numbers with the values of an update.
func (c *bulkConn) set(seq uint64) error {
	c.out = frame.AppendHeader(c.out[:0], frame.Header{Magic: frame.SetBulk, RNum: uint32(len(c.numbers))})
	for _, n := range c.numbers {
		c.scratch = ladderValue(ladderKey(c.scratch[:0], n), n, seq)
		c.out = frame.AppendRecord(c.out, frame.Record{Key: c.scratch[:ladderKeySize], Value: c.scratch[ladderKeySize:], XT: math.MaxInt64})
	}
	stored, err := c.ask(frame.SetBulk)
	if err == nil && int(stored) != len(c.numbers) {
		err = fmt.Errorf("%d of %d records were stored", stored, len(c.numbers))
	}
	return err
}

// get reads the records c.numbers and visits those that are there.
func (c *bulkConn) get(visit func(key, value []byte)) error {
	c.out = frame.AppendHeader(c.out[:0], frame.Header{Magic: frame.GetBulk, RNum: uint32(len(c.numbers))})
	for _, n := range c.numbers {
		c.scratch = ladderKey(c.scratch[:0], n)
		c.out = frame.AppendKey(c.out, frame.Key{Key: c.scratch})
	}
	hits, err := c.ask(frame.GetBulk)
	for ; err == nil && hits > 0; hits-- {
		c.scratch = append(c.scratch[:0], make([]byte, frame.RecordHead+ladderKeySize+valueSize)...)
		if _, err = io.ReadFull(c.in, c.scratch); err != nil {
			break
		}
		var r frame.Record
		if r, _, err = frame.DecodeRecord(c.scratch); err == nil {
			visit(r.Key, r.Value)
		}
	}
	return err
}

// ask sends a bulk, reads the head of the reply, and counts the wait.
func (c *bulkConn) ask(m frame.Magic) (uint32, error) {
	begin := time.Now()
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	var reply [frame.ReplyLen]byte
	if _, err := io.ReadFull(c.in, reply[:1]); err != nil {
		return 0, err
	}
	if frame.Magic(reply[0]) != m {
		return 0, frame.ErrRefused
	}
	if _, err := io.ReadFull(c.in, reply[1:]); err != nil {
		return 0, err
	}
	c.waits.Add(time.Since(begin))
	n, _, err := frame.DecodeReply(reply[:], m)
	return n, err
}

// bulkLoad stores count records over several connections, as fast as they are taken, and returns
// the waits. choose appends the numbers of a bulk's records; first is the number of those before
// it.
func bulkLoad(addr string, count int, seq uint64, done *atomic.Int64, choose func(rnd *rand.Rand, into []uint64, first, n int) []uint64) (*histogram.Histogram, error) {
	var next atomic.Int64
	var all sync.WaitGroup
	errs, waits := make([]error, bulkConns), &histogram.Histogram{}
	var mu sync.Mutex
	for i := range bulkConns {
		all.Go(func() {
			c, err := dialBulk(addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer c.conn.Close()
			rnd := rand.New(rand.NewPCG(uint64(i), seq))
			for errs[i] == nil {
				first := int(next.Add(bulkSize)) - bulkSize
				if first >= count {
					break
				}
				n := min(bulkSize, count-first)
				c.numbers = choose(rnd, c.numbers[:0], first, n)
				errs[i] = c.set(seq)
				done.Add(int64(n))
			}
			mu.Lock()
			defer mu.Unlock()
			waits.Merge(&c.waits)
		})
	}
	all.Wait()
	return waits, errors.Join(errs...)
}

// eachOnce chooses every record once. The keys of consecutive numbers are strangers.
func eachOnce(_ *rand.Rand, into []uint64, first, n int) []uint64 {
	for i := range n {
		into = append(into, uint64(first+i))
	}
	return into
}

// anyOf chooses records at random.
func anyOf(size int) func(rnd *rand.Rand, into []uint64, first, n int) []uint64 {
	return func(rnd *rand.Rand, into []uint64, _, n int) []uint64 {
		for range n {
			into = append(into, rnd.Uint64N(uint64(size)))
		}
		return into
	}
}

// isOf reports whether a value is what an update from oldest to newest has given record n.
func isOf(value []byte, n, oldest, newest uint64) bool {
	if len(value) != valueSize {
		return false
	}
	seq := binary.BigEndian.Uint64(value)
	return seq >= oldest && seq <= newest && bytes.Equal(value, ladderValue(nil, n, seq))
}
