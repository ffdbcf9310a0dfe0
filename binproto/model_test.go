package binproto_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/client/wire/frame"
	"gotycoon/db"
)

// model is the databases as maps: what one call for each record, in their order, would leave.
type model []map[string]string

func (m model) set(recs []frame.Record) []byte {
	hits := 0
	for _, r := range recs {
		if int(r.DBIdx) < len(m) {
			m[r.DBIdx][string(r.Key)] = string(r.Value)
			hits++
		}
	}
	return reply(frame.SetBulk, hits)
}

func (m model) remove(keys []frame.Key) []byte {
	hits := 0
	for _, k := range keys {
		if int(k.DBIdx) >= len(m) {
			continue
		}
		if _, ok := m[k.DBIdx][string(k.Key)]; ok {
			delete(m[k.DBIdx], string(k.Key))
			hits++
		}
	}
	return reply(frame.RemoveBulk, hits)
}

func (m model) get(keys []frame.Key) []byte {
	var hits []frame.Record
	for _, k := range keys {
		if int(k.DBIdx) >= len(m) {
			continue
		}
		if v, ok := m[k.DBIdx][string(k.Key)]; ok {
			hits = append(hits, hit(k.DBIdx, string(k.Key), v))
		}
	}
	return getReply(hits...)
}

// TestModel compares pipelined random requests with the model. Few keys make repetitions within a
// run likely, many records make several runs.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t, db.Options{}, ":", "%", "*")
		m := model{{}, {}, {}}
		dbidx := rapid.SampledFrom([]uint16{0, 0, 0, 0, 1, 2, 3})
		name := rapid.Custom(func(rt *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 400).Draw(rt, "key")) })
		aKey := rapid.Custom(func(rt *rapid.T) frame.Key { return key(dbidx.Draw(rt, "db"), name.Draw(rt, "key")) })
		aRec := rapid.Custom(func(rt *rapid.T) frame.Record {
			value := rapid.StringN(0, 40, 100).Draw(rt, "value")
			return rec(dbidx.Draw(rt, "db"), name.Draw(rt, "key"), value)
		})
		var send, want []byte
		for range rapid.IntRange(1, 8).Draw(rt, "requests") {
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				recs := rapid.SliceOfN(aRec, 0, 600).Draw(rt, "records")
				send, want = append(send, setBulk(0, recs...)...), append(want, m.set(recs)...)
			case 1:
				keys := rapid.SliceOfN(aKey, 0, 100).Draw(rt, "keys")
				send, want = append(send, keysBulk(frame.RemoveBulk, 0, keys...)...), append(want, m.remove(keys)...)
			default:
				keys := rapid.SliceOfN(aKey, 0, 600).Draw(rt, "keys")
				send, want = append(send, keysBulk(frame.GetBulk, 0, keys...)...), append(want, m.get(keys)...)
			}
		}
		require.Equal(rt, want, f.exchange(t, send))
	})
}
