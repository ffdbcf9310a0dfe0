package gather_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
)

// measured is an engine that knows how many bytes of values its largest answer had.
type measured struct {
	*mem.Server
	most atomic.Int64
}

func (m *measured) Read(ctx context.Context, keys []engine.Key, how engine.Reading) ([]engine.Record, error) {
	recs, err := m.Server.Read(ctx, keys, how)
	n := 0
	for _, r := range recs {
		n += len(r.Value)
	}
	m.most.Store(max(m.most.Load(), int64(n)))
	return recs, err
}

// Operations on large values share no group that would need as much memory, and what changes more
// than fits into one step is refused.
func TestGroupsOfLargeValues(t *testing.T) {
	store := mem.New(mem.Options{Limits: engine.Limits{Key: 1000, Value: 1 << 20, Changes: 1000, Bytes: 1 << 20}})
	m := &measured{Server: store.Server("0")}
	defer m.Close()
	g := gather.New(m, gather.Options{Lanes: 1, GroupBytes: 100_000})
	defer g.Close()
	const n, size = 50, 60_000
	var keys []engine.Key
	for i := range n {
		keys = append(keys, key(fmt.Sprintf("k%02d", i)))
		_, err := do(t.Context(), g, set(string(keys[i].Key), string(bytes.Repeat([]byte("x"), size))))
		require.NoError(t, err)
	}
	for _, together := range []int{1, 2} { // on the lane of single keys, and on the broad one
		m.most.Store(0)
		var work sync.WaitGroup
		for i := 0; i < n; i += together {
			work.Go(func() {
				names := keys[i : i+together]
				_, err := g.Do(t.Context(), gather.Operation{Keys: names}, func(v *gather.View) error {
					for _, k := range names {
						r, _ := v.Read(k)
						v.Set(k, append(bytes.Clone(r.Value), 'y'), engine.Forever)
					}
					return nil
				})
				require.NoError(t, err)
			})
		}
		work.Wait()
		require.LessOrEqual(t, m.most.Load(), int64(800_000))
	}
	recs, err := g.Read(t.Context(), keys)
	require.NoError(t, err)
	for _, r := range recs {
		require.Equal(t, size+2, r.Left)
	}
	recs, err = g.ReadLarge(t.Context(), keys[:2], size+2)
	require.NoError(t, err)
	require.Equal(t, size+2, len(recs[1].Value))
	_, err = g.Do(t.Context(), gather.Operation{Keys: keys}, func(v *gather.View) error { return nil })
	require.Equal(t, engine.Refused, engine.KindOf(err))
	require.ErrorContains(t, err, "reads at most 1048576 bytes for one step")
}
