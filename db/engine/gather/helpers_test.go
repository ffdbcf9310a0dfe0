package gather_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

func key(name string) engine.Key { return engine.Key{Key: []byte(name)} }

// eachSeed runs a test for the seeds below n, or below GOTYCOON_SEEDS.
func eachSeed(t *testing.T, n uint64, test func(t *testing.T, seed uint64)) {
	if more := os.Getenv("GOTYCOON_SEEDS"); more != "" {
		var err error
		n, err = strconv.ParseUint(more, 10, 64)
		require.NoError(t, err)
	}
	for seed := range n {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { test(t, seed) })
	}
}

// operation is a gather.Operation and its body.
type operation struct {
	Keys    []engine.Key
	Updates []ulog.Update
	Blind   bool
	Size    int
	Body    func(v *gather.View) error

	Clear    *engine.Clear
	Position *ulog.Position
	Guard    *engine.Term
}

func (o *operation) plain() gather.Operation {
	return gather.Operation{Keys: o.Keys, Updates: o.Updates, Blind: o.Blind, Size: o.Size, Clear: o.Clear, Position: o.Position, Guard: o.Guard}
}

func do(ctx context.Context, g *gather.Gather, o operation) (gather.Outcome, error) {
	return g.Do(ctx, o.plain(), o.Body)
}

// world is a place with some servers, each with a Gather.
type world struct {
	*testing.T
	store   *mem.Store
	engines []*mem.Server
	gathers []*gather.Gather
}

// newWorld opens servers. The test closes the world.
func newWorld(t *testing.T, servers int, m mem.Options, o gather.Options) *world {
	w := &world{T: t, store: mem.New(m)}
	for i := range servers {
		e := w.store.Server(strconv.Itoa(i))
		w.engines = append(w.engines, e)
		w.gathers = append(w.gathers, gather.New(e, o))
	}
	return w
}

func (w *world) close() {
	for i, g := range w.gathers {
		require.NoError(w, g.Close())
		require.NoError(w, w.engines[i].Close())
		require.Zero(w, g.Stats().Queue)
		require.Zero(w, g.Stats().QueueBytes)
	}
}

// value returns what the engine has of a key, "-" for nothing.
func (w *world) value(name string) string {
	recs, err := w.engines[0].Read(context.Background(), []engine.Key{key(name)}, engine.Reading{})
	for ; err != nil; recs, err = w.engines[0].Read(context.Background(), []engine.Key{key(name)}, engine.Reading{}) {
		require.Equal(w, engine.Undone, engine.KindOf(err))
	}
	if len(recs) == 0 {
		return "-"
	}
	return string(recs[0].Value)
}

// add adds n to the number of a key.
func add(g *gather.Gather, name string, n int) (sum int, err error) {
	k := key(name)
	_, err = do(context.Background(), g, operation{Keys: []engine.Key{k}, Body: func(v *gather.View) error {
		sum = addTo(v, k, n)
		return nil
	}})
	return sum, err
}

// addTo adds n to the number of a key, in a body.
func addTo(v *gather.View, k engine.Key, n int) int {
	sum := n + read(v, k)
	v.Set(k, strconv.AppendInt(nil, int64(sum), 10), engine.Forever)
	return sum
}

func read(v *gather.View, k engine.Key) int {
	r, _ := v.Read(k)
	n, _ := strconv.Atoi(string(r.Value))
	return n
}

// set returns an operation that stores a record, and has no body.
func set(name, value string) operation {
	stored := append(record.AppendXT(nil, engine.Forever), value...)
	return operation{Keys: []engine.Key{key(name)}, Size: len(value), Updates: []ulog.Update{{Op: ulog.OpSet, Key: []byte(name), Value: stored}}}
}

// gate makes calls of an engine wait, and counts them.
type gate struct {
	name  mem.Name      // of the calls that wait
	delay time.Duration // for so long
	calls atomic.Int64  // of this name
	seen  atomic.Int64  // calls of any name
}

func (g *gate) fault(c mem.Call) mem.Fault {
	g.seen.Add(1)
	if c.Name != g.name {
		return mem.Fault{}
	}
	g.calls.Add(1)
	return mem.Fault{Delay: g.delay}
}
