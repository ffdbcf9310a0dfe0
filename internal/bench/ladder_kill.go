//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// kill ends the server with kill -9 in the middle of updates, starts it again, and looks for every
// record that was acknowledged before the kill.
func (r *rung) kill() error {
	stores, err := r.storeUntilKilled()
	if err != nil {
		return fmt.Errorf("before kill -9: %w", err)
	}
	took, err := r.server.again()
	if err != nil {
		return fmt.Errorf("after kill -9: %w", err)
	}
	checked, lost := 0, 0
	for _, s := range stores {
		l, err := s.check(r.server.addr())
		if err != nil {
			return fmt.Errorf("after kill -9: %w", err)
		}
		checked, lost = checked+len(s.acknowledged), lost+l
	}
	values := map[string]float64{"operations": float64(checked), "seconds": took.Seconds()}
	if err := r.rows.add(ladderRow{size: r.size, phase: "restart", values: values}); err != nil {
		return err
	}
	if lost > 0 {
		return fmt.Errorf("LOST: of %d records that were acknowledged before kill -9, %d are not there", checked, lost)
	}
	return nil
}

// store remembers what was acknowledged on one connection. The connections share no records: a
// record's number modulo bulkConns is the number of its connection, so nobody else may have changed
// it.
type store struct {
	conn         int
	acknowledged map[uint64]uint64 // the last acknowledged update of each record
	sent         uint64            // the last update that was sent: it may be there or not
}

func (r *rung) storeUntilKilled() ([]*store, error) {
	stores, errs := make([]*store, bulkConns), make([]error, bulkConns)
	var killed atomic.Bool
	var all sync.WaitGroup
	for i := range stores {
		stores[i] = &store{conn: i, acknowledged: map[uint64]uint64{}}
		all.Go(func() {
			if err := stores[i].load(r.server.addr(), r.size); !killed.Load() {
				errs[i] = err
			}
		})
	}
	<-time.After(r.bench.length) // so long is the load; the kill comes in the middle of a bulk
	killed.Store(true)
	_, err := r.server.end(syscall.SIGKILL)
	all.Wait()
	return stores, errors.Join(append(errs, err)...)
}

// load stores random records of the connection until the server is gone, which is its error.
func (s *store) load(addr string, size int) error {
	c, err := dialBulk(addr)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	rnd := rand.New(rand.NewPCG(uint64(s.conn), killSeq))
	for s.sent = killSeq; ; s.sent++ {
		c.numbers = c.numbers[:0]
		for range bulkSize {
			c.numbers = append(c.numbers, rnd.Uint64N(uint64(size/bulkConns))*bulkConns+uint64(s.conn))
		}
		if err := c.set(s.sent); err != nil {
			return err
		}
		for _, n := range c.numbers {
			s.acknowledged[n] = s.sent
		}
	}
}

// check returns how many acknowledged records are missing, older than acknowledged, or damaged.
func (s *store) check(addr string) (lost int, err error) {
	c, err := dialBulk(addr)
	if err != nil {
		return 0, err
	}
	defer c.conn.Close()
	numberOf := map[string]uint64{}
	good := 0
	ask := func() error {
		err := c.get(func(key, value []byte) {
			n, known := numberOf[string(key)]
			if known && isOf(value, n, s.acknowledged[n], s.sent) {
				good++
			}
		})
		c.numbers = c.numbers[:0]
		clear(numberOf)
		return err
	}
	for n := range s.acknowledged {
		c.numbers = append(c.numbers, n)
		numberOf[string(ladderKey(nil, n))] = n
		if len(c.numbers) == bulkSize {
			if err := ask(); err != nil {
				return 0, err
			}
		}
	}
	err = ask()
	return len(s.acknowledged) - good, err
}
