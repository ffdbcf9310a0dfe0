package counter

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/counter/frame"
)

// model is what a table must do, in plain maps.
type model map[string]*modelCounter

type modelCounter struct {
	held    map[int]uint64 // by holder
	maximum uint64
	changed bool // in this interval
}

func (c *modelCounter) current() (sum uint64) {
	for _, n := range c.held {
		sum += n
	}
	return sum
}

func (m model) acquire(holder int, name string, n, maximum uint64) frame.Status {
	c := m[name]
	if c == nil {
		c = &modelCounter{held: map[int]uint64{}}
		m[name] = c
	}
	if c.current()+n > maximum {
		return frame.NotAvailable
	}
	c.held[holder] += n
	if !c.changed {
		c.maximum, c.changed = 0, true
	}
	c.maximum = max(c.maximum, c.current())
	return frame.OK
}

func (m model) release(holder int, name string, n uint64) frame.Status {
	c := m[name]
	switch {
	case c == nil:
		return frame.NotFound
	case c.held[holder] == 0 || n > c.held[holder]:
		return frame.NotAcquired
	case !c.changed:
		c.maximum, c.changed = c.current(), true
	}
	c.held[holder] -= n
	return frame.OK
}

func (m model) releaseAll(holder int) {
	for name, c := range m {
		if c.held[holder] > 0 {
			m.release(holder, name, c.held[holder])
		}
	}
}

func (m model) nextPeriod() {
	for _, c := range m {
		c.changed = false
	}
}

func (m model) collect() {
	for name, c := range m {
		if c.current() == 0 && !c.changed {
			delete(m, name)
		}
	}
}

func (m model) dump() map[string][2]uint64 {
	all := map[string][2]uint64{}
	for name, c := range m {
		all[name] = [2]uint64{c.current(), c.maximum}
		if !c.changed {
			all[name] = [2]uint64{c.current(), c.current()}
		}
	}
	return all
}

func dumpTable(table *table) map[string][2]uint64 {
	all := map[string][2]uint64{}
	visit := func(name string, current, maximum uint32) bool {
		all[name] = [2]uint64{uint64(current), uint64(maximum)}
		return len(all)%3 > 0
	}
	for at, more := (position{}), true; more; {
		at, more = table.walk(at, visit)
	}
	return all
}

// Random operations give the same answers as the model.
func TestTableIsTheModel(t *testing.T) {
	amounts := []uint32{1, 1, 1, 2, 3, 1 << 31, 1<<32 - 1}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 0))
		table, m := newTable(1+r.IntN(20), 1<<20), model{}
		holders := make([]holding, 4)
		for step := range 3000 {
			h, name, n := r.IntN(len(holders)), fmt.Sprint("name-", r.IntN(12)), amounts[r.IntN(len(amounts))]
			note := fmt.Sprintf("seed %d, step %d: %s", seed, step, name)
			switch op := r.IntN(100); {
			case op < 45:
				maximum := max(n, uint32(r.IntN(10)), amounts[r.IntN(len(amounts))])
				require.Equal(t, m.acquire(h, name, uint64(n), uint64(maximum)), table.acquire(&holders[h], []byte(name), n, maximum), note)
			case op < 90:
				n = uint32(r.IntN(2)) * n
				require.Equal(t, m.release(h, name, uint64(n)), table.release(&holders[h], []byte(name), n), note)
			case op < 94:
				m.releaseAll(h)
				table.releaseAll(&holders[h])
			case op < 97:
				m.nextPeriod()
				table.nextPeriod()
			default:
				m.collect()
				require.EqualValues(t, len(m), table.collect().objects, note)
			}
			require.Equal(t, m.dump(), dumpTable(table), note)
		}
		for h := range holders {
			table.releaseAll(&holders[h])
		}
		table.nextPeriod()
		require.Zero(t, table.collect().objects)
		require.Zero(t, table.used.Load())
	}
}

// Nobody gets more than there is, and nothing is lost, with collections in between.
func TestTableUnderContention(t *testing.T) {
	const holders, rounds, maximum = 8, 5000, 10
	names := [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	table := newTable(2, 1<<20)
	var workers, collector sync.WaitGroup
	quit := make(chan struct{})
	collector.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
				table.nextPeriod()
				table.collect()
			}
		}
	})
	for seed := range holders {
		workers.Go(func() {
			r, h := rand.New(rand.NewPCG(uint64(seed), 1)), holding{}
			for range rounds {
				name := names[r.IntN(len(names))]
				if r.IntN(2) == 0 {
					table.acquire(&h, name, uint32(1+r.IntN(4)), maximum)
				} else {
					table.release(&h, name, 1)
				}
				if n, _ := table.get(name); n > maximum {
					panic(fmt.Sprint(n, " are taken"))
				}
			}
			table.releaseAll(&h)
		})
	}
	workers.Wait()
	close(quit)
	collector.Wait()
	table.nextPeriod()
	table.collect()
	require.Empty(t, dumpTable(table))
	require.Zero(t, table.used.Load())
}
