package memcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
)

// sharing opens the queues of servers that share a database in memory.
func sharing(t *testing.T, n int, o mem.Options) []*queues {
	place := mem.New(o)
	all := make([]*queues, n)
	for i := range all {
		e := place.Server(fmt.Sprint(i))
		c, err := db.Open([]string{"a"}, db.Options{Shared: e, SID: 1})
		require.NoError(t, err)
		q := newQueues(c.DB(0))
		q.db.Watch(db.WatchOptions{Claims: true, News: q.arrived, Undone: q.undone})
		all[i] = q
		t.Cleanup(func() {
			q.others.work.Wait()
			require.NoError(t, c.Close())
			require.NoError(t, e.Close())
		})
	}
	return all
}

// takeNext takes a message of the queue "q", waiting for it if need be.
func (q *queues) takeNext(wait time.Duration) (*db.Claim, error) {
	return q.take(context.Background(), nil, nil, []byte("q"), time.Now().Add(wait))
}

// drain takes and deletes messages until there are none.
func drain(t *testing.T, q *queues) (values []string) {
	for {
		c, err := q.takeNext(0)
		if errors.Is(err, dberr.ErrNoRecord) {
			return values
		}
		require.NoError(t, err)
		values = append(values, string(c.Value))
		require.NoError(t, c.Finish(nil))
	}
}

// Messages come in the order in which they were acknowledged, whichever servers did so and whatever
// their clocks say.
func TestOrderOverServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := sharing(t, 2, mem.Options{})
		all[0].now = func() time.Time { return time.Now().Add(time.Hour) }
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			require.NoError(t, all[i%2].put(nil, []byte("q"), []byte(want[i]), record.Never))
		}
		require.Equal(t, want, drain(t, all[1]))
	})
}

// ahead is an engine whose clock is an hour ahead of the servers'.
type ahead struct{ *mem.Server }

func (ahead) Clock() time.Time { return time.Now().Add(time.Hour) }

// Keys are made by the engine's clock: servers whose own clocks differ put messages that come back
// where they were.
func TestKeysGoByTheEnginesClock(t *testing.T) {
	e := ahead{mem.New(mem.Options{}).Server("a")}
	defer e.Close()
	c, err := db.Open([]string{"a"}, db.Options{Shared: e})
	require.NoError(t, err)
	defer c.Close()
	q, began := newQueues(c.DB(0)), time.Now()
	require.NoError(t, q.put(nil, []byte("q"), []byte("v"), record.Never))
	claim, err := q.takeNext(0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, stampOf(claim.Key[1:]).milliseconds, began.Add(time.Hour).UnixMilli())
}

// Two servers may choose a key in the same millisecond when the first message is not there any more:
// both are delivered.
func TestServersThatChooseOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where time stands still while nobody waits
		all := sharing(t, 2, mem.Options{})
		require.NoError(t, all[0].put(nil, []byte("q"), []byte("first"), record.Never))
		held, err := all[0].takeNext(0)
		require.NoError(t, err)
		all[1].now = func() time.Time { return time.UnixMilli(stampOf(held.Key[1:]).milliseconds) }
		require.NoError(t, all[1].put(nil, []byte("q"), []byte("second"), record.Never))
		require.NoError(t, held.GiveBack(nil))
		require.Equal(t, []string{"second", "first"}, drain(t, all[1]))
	})
}

// After the engine was silent for a while, messages of other servers are looked for as often as before.
func TestLooksAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		all := sharing(t, 2, mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
			if c.Server == "0" && silent.Load() {
				f.Delay = time.Hour
			}
			return f
		}})
		var took time.Duration
		var waits sync.WaitGroup
		stored := make(chan time.Time, 1)
		waits.Go(func() {
			c, err := all[0].takeNext(10 * time.Minute)
			require.NoError(t, err)
			took = time.Since(<-stored)
			require.NoError(t, c.Finish(nil))
		})
		time.Sleep(time.Second) //lint:sleep in a bubble nobody waits
		silent.Store(true)
		time.Sleep(15 * time.Second) //lint:sleep in a bubble nobody waits
		silent.Store(false)
		time.Sleep(time.Second) //lint:sleep in a bubble nobody waits
		stored <- time.Now()
		require.NoError(t, all[1].put(nil, []byte("q"), []byte("v"), record.Never))
		waits.Wait()
		require.Less(t, took, 10*time.Second, "a call from before may be under way for so long")
	})
}

// A message that another server gives back is found although it is before those that were taken
// since, and a request that waits is woken by messages of other servers.
func TestMessagesOfOtherServersWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		all := sharing(t, 2, mem.Options{Faults: func(c mem.Call) (f mem.Fault) {
			if c.Server == "0" && c.Name == mem.Scan {
				looks.Add(1)
			}
			return f
		}})
		a, b := all[0], all[1]
		for _, v := range []string{"1", "2"} {
			require.NoError(t, b.put(nil, []byte("q"), []byte(v), record.Never))
		}
		one, err := b.takeNext(0)
		require.NoError(t, err)
		two, err := a.takeNext(0)
		require.NoError(t, err)
		require.NoError(t, two.Finish(nil))
		require.NoError(t, one.GiveBack(nil))
		require.Equal(t, []string{"1"}, drain(t, a))

		var waiting sync.WaitGroup
		looks.Store(0)
		for i := range 100 { // other queues, where nothing comes
			waiting.Go(func() {
				_, err := a.take(context.Background(), nil, nil, fmt.Append(nil, i), time.Now().Add(5*time.Second))
				require.ErrorIs(t, err, dberr.ErrNoRecord)
			})
		}
		for _, put := range []func() error{
			func() error { return b.put(nil, []byte("q"), []byte("3"), record.Never) },
			func() error { return b.db.Set(nil, []byte("q by HTTP"), []byte("3"), record.Never) },
		} {
			came := make(chan time.Duration)
			began := time.Now()
			waiting.Go(func() {
				c, err := a.takeNext(time.Minute)
				require.NoError(t, err)
				came <- time.Since(began)
				require.NoError(t, c.Finish(nil))
			})
			time.Sleep(time.Second) //lint:sleep in a bubble nobody waits
			began = time.Now()
			require.NoError(t, put())
			require.LessOrEqual(t, <-came, 200*time.Millisecond)
		}
		waiting.Wait()
		require.LessOrEqual(t, looks.Load(), int64(120), "one look for all names that wait")
	})
}

// fate is what happens to one message.
type fate struct {
	put      bool // it was acknowledged
	finished int
	taken    int
	unsure   int // how often nobody knows whether it was deleted
	excused  int // how often that was so, or its consumer or the server died
}

// workers are producers and consumers at servers that share a queue, some of which die.
type workers struct {
	t    *testing.T
	dead atomic.Bool // the server 0

	mu    sync.Mutex
	dice  *rand.Rand
	fates map[string]*fate
}

func (w *workers) fault(random func(c mem.Call) mem.Fault) func(c mem.Call) mem.Fault {
	return func(c mem.Call) mem.Fault {
		switch {
		case c.Server == "0" && w.dead.Load():
			return mem.Fault{Kind: engine.Undone, Away: true}
		case c.Name == mem.Lease: // a lease that is lost is as a server that dies
			return mem.Fault{}
		}
		return random(c)
	}
}

// note changes what is known of a message.
func (w *workers) note(value string, change func(f *fate)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fates[value]
	if f == nil {
		f = &fate{}
		w.fates[value] = f
	}
	change(f)
}

func (w *workers) chance(percent int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.IntN(100) < percent
}

func (w *workers) produce(q *queues, who string, n int) {
	for i := range n {
		value := fmt.Sprintf("%s/%d", who, i)
		if err := q.put(nil, []byte("q"), []byte(value), record.Never); err == nil {
			w.note(value, func(f *fate) { f.put = true })
		}
		if w.chance(30) {
			time.Sleep(100 * time.Millisecond) //lint:sleep in a bubble nobody waits
		}
	}
}

// consume works on messages until done is closed. One of ten messages kills the consumer, whose
// connection gives the message back.
func (w *workers) consume(q *queues, dies func() bool, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		if dies() {
			time.Sleep(time.Second) //lint:sleep in a bubble nobody waits
			continue
		}
		c, err := q.takeNext(time.Second)
		if err != nil {
			continue
		}
		value := string(c.Value)
		w.note(value, func(f *fate) { f.taken++ })
		time.Sleep(50 * time.Millisecond) //lint:sleep in a bubble nobody waits
		if dies() {
			w.note(value, func(f *fate) { f.excused++ })
			continue
		}
		if w.chance(90) {
			err := c.Finish(nil)
			if err == nil {
				w.note(value, func(f *fate) { f.finished++ })
				continue
			}
			if !errors.Is(err, dberr.ErrNoRecord) {
				w.note(value, func(f *fate) { f.unsure++ })
			}
		}
		w.note(value, func(f *fate) { f.excused++ })
		require.NoError(w.t, c.GiveBack(nil))
	}
}

// Calls fail, answers are lost, claims come late, consumers die, and then a server: every message is
// delivered until somebody has worked on it, and to one consumer at a time.
func TestNoMessageIsLostAmongServers(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &workers{t: t, dice: rand.New(rand.NewPCG(seed, 1)), fates: map[string]*fate{}}
				random := mem.Seeded(seed, mem.Rates{Undone: 0.1, Unknown: 0.15, Delay: 0.2, Longest: 300 * time.Millisecond})
				all := sharing(t, 3, mem.Options{Faults: w.fault(random)})
				var producers, consumers sync.WaitGroup
				done := make(chan struct{})
				for i, q := range all {
					dies := func() bool { return i == 0 && w.dead.Load() }
					for n := range 2 {
						producers.Go(func() { w.produce(q, fmt.Sprint(i, n), 15) })
						consumers.Go(func() { w.consume(q, dies, done) })
					}
				}
				time.Sleep(4 * time.Second) //lint:sleep in a bubble nobody waits
				w.dead.Store(true)
				producers.Wait()
				time.Sleep(2 * time.Minute) //lint:sleep in a bubble nobody waits
				close(done)
				consumers.Wait()
				require.NotEmpty(t, w.fates)
				for value, f := range w.fates {
					require.LessOrEqual(t, f.finished, 1, "%s: %+v", value, f)
					require.True(t, !f.put || f.finished+f.unsure > 0, "%s: %+v", value, f)
					require.LessOrEqual(t, f.taken, 1+f.excused, "%s: %+v", value, f)
				}
				w.dead.Store(false)
			})
		})
	}
}
