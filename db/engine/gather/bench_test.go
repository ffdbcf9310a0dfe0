package gather_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// slow is an engine that takes a millisecond for each read and write, and one after the other for
// each lane, as a connection does.
func slow(c mem.Call) mem.Fault {
	if c.Name == mem.Read || c.Name == mem.Write {
		return mem.Fault{Answer: time.Millisecond}
	}
	return mem.Fault{}
}

// BenchmarkSet shows what groups are worth: the same sets in groups, and each by itself with as
// many writes under way as there are lanes.
func BenchmarkSet(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		for _, group := range []int{1, 512} {
			b.Run(fmt.Sprintf("callers=%d/group=%d", callers, group), func(b *testing.B) {
				bench(b, callers, gather.Options{Group: group}, slow, func(g *gather.Gather, k engine.Key, value []byte) error {
					_, err := do(context.Background(), g, operation{Keys: []engine.Key{k}, Blind: true, Size: len(value), Body: func(v *gather.View) error {
						v.Set(k, value, engine.Forever)
						return nil
					}})
					return err
				})
			})
		}
	}
}

// BenchmarkIncrement is BenchmarkSet for operations that read.
func BenchmarkIncrement(b *testing.B) {
	for _, group := range []int{1, 512} {
		b.Run(fmt.Sprintf("callers=64/group=%d", group), func(b *testing.B) {
			bench(b, 64, gather.Options{Group: group}, slow, func(g *gather.Gather, k engine.Key, _ []byte) error {
				_, err := add(g, string(k.Key), 1)
				return err
			})
		})
	}
}

// BenchmarkGet is BenchmarkSet for reads.
func BenchmarkGet(b *testing.B) {
	for _, group := range []int{1, 512} {
		b.Run(fmt.Sprintf("callers=64/group=%d", group), func(b *testing.B) {
			bench(b, 64, gather.Options{Group: group}, slow, func(g *gather.Gather, k engine.Key, _ []byte) error {
				_, err := g.Read(context.Background(), []engine.Key{k})
				return err
			})
		})
	}
}

// BenchmarkOverhead is what a set takes of the processor without an engine that does anything.
func BenchmarkOverhead(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			value := make([]byte, 100)
			run(b, callers, gather.New(&void{}, gather.Options{}), func(g *gather.Gather, k engine.Key) error {
				_, err := do(context.Background(), g, operation{Keys: []engine.Key{k}, Blind: true, Size: 100, Body: func(v *gather.View) error {
					v.Set(k, value, engine.Forever)
					return nil
				}})
				return err
			})
		})
	}
}

// void is an engine that forgets everything at once. It finds nothing.
type void struct {
	engine.Engine
	lanes atomic.Uint64
}

func (v *void) Lane(context.Context) (uint64, error) { return v.lanes.Add(1), nil }
func (v *void) Log() engine.Log                      { return nil }
func (v *void) Now() int64                           { return 1 }
func (v *void) Epoch() uint64                        { return 1 }
func (v *void) Limits() engine.Limits {
	return engine.Limits{Key: 1 << 20, Value: 1 << 20, Changes: 1 << 20, Bytes: 1 << 30}
}
func (v *void) Read(context.Context, []engine.Key, engine.Reading) ([]engine.Record, error) {
	return nil, nil
}
func (v *void) Write(context.Context, *engine.Group) (engine.Result, error) {
	return engine.Result{Revision: 7}, nil
}

func bench(b *testing.B, callers int, o gather.Options, faults func(mem.Call) mem.Fault, one func(g *gather.Gather, k engine.Key, value []byte) error) {
	e := mem.New(mem.Options{NoLog: true, Faults: faults}).Server("a")
	g, value := gather.New(e, o), make([]byte, 100)
	run(b, callers, g, func(g *gather.Gather, k engine.Key) error { return one(g, k, value) })
}

func run(b *testing.B, callers int, g *gather.Gather, one func(g *gather.Gather, k engine.Key) error) {
	defer g.Close()
	var next atomic.Int64
	var work sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		work.Go(func() {
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				if err := one(g, key(strconv.FormatInt(n%1000, 10))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	if count, sum, _ := g.Stats().GroupOperations.Snapshot(1); count > 0 {
		b.ReportMetric(sum/float64(count), "ops/group")
	} else if count, sum, _ := g.Stats().ReadKeys.Snapshot(1); count > 0 {
		b.ReportMetric(sum/float64(count), "keys/read")
	}
}
