package gather_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Bodies of a group see what the ones before have left, as if each had come alone.
func TestAGroupIsAsOneAfterTheOther(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			w := one(t, new(gate), mem.Options{}, gather.Options{})
			defer w.close()
			model, late := map[string]string{"a": "1", "b": "2"}, time.Now().Unix()-10
			expired := set("c", "expired")
			expired.Body = func(v *gather.View) error {
				v.Set(key("c"), []byte("expired"), late)
				return nil
			}
			for _, a := range w.begin(set("a", "1"), set("b", "2"), expired)() {
				require.NoError(t, a.err)
			}
			broad := seed%2 == 1 // all keys are named, so the broad lane takes them
			var ops []operation
			var got, want []string
			for n := range 12 {
				name, value, verb := string("abcd"[dice.IntN(4)]), strconv.Itoa(n), dice.IntN(5)
				if n == 0 {
					verb = 0 // while this is written, the others gather
				}
				k, i := key(name), n
				got, want = append(got, ""), append(want, "")
				if verb > 0 { // the body reads
					want[i] = model[name]
				}
				switch verb {
				case 0, 1:
					model[name] = value
				case 2:
					model[name] += value
				case 3:
					delete(model, name)
				}
				op := operation{Keys: []engine.Key{k}, Blind: verb == 0, Body: func(v *gather.View) error {
					got[i] = ""
					if verb > 0 {
						if r, found := v.Read(k); found {
							got[i] = string(r.Value)
						}
					}
					switch verb {
					case 0, 1:
						v.Set(k, []byte(value), engine.Forever)
					case 2:
						v.Set(k, []byte(got[i]+value), engine.Forever)
					case 3:
						v.Remove(k)
					}
					return nil
				}}
				if broad {
					op.Keys = []engine.Key{key("d"), key("a"), key("c"), key("b"), key("a")}
				}
				ops = append(ops, op)
			}
			for _, a := range w.begin(ops...)() {
				require.NoError(t, a.err)
			}
			require.Equal(t, want, got)
			for _, name := range []string{"a", "b", "d"} {
				require.Equal(t, model[name], strings.TrimPrefix(w.value(name), "-"), "%s, seed %d", name, seed)
			}
			if model["c"] != "" {
				require.Equal(t, model["c"], w.value("c"))
			}
			require.Equal(t, model, w.replayed(late))
		})
	}
}

// replayed returns what a follower of the log has, but for what has expired.
func (w *world) replayed(late int64) map[string]string {
	copied := map[string]string{}
	groups, _, err := w.engines[0].Log().Read(context.Background(), 0, 1<<20)
	require.NoError(w, err)
	for _, g := range groups {
		for _, u := range g.Updates {
			xt, value, _ := record.Split(u.Value)
			if u.Op == ulog.OpRemove || xt == late {
				delete(copied, string(u.Key))
			} else {
				copied[string(u.Key)] = string(value)
			}
		}
	}
	return copied
}
