package db

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/mem"
)

// A server removes what has expired as fast as it expires: more than one call does is no reason to
// leave it there.
func TestManyExpiredRecordsOfAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := mem.New(mem.Options{Faults: func(mem.Call) mem.Fault { return mem.Fault{Delay: time.Millisecond} }}).Server("0")
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		d := mustOpen(t, Options{Shared: e}, "a").DB(0)
		lane, err := e.Lane(t.Context())
		require.NoError(t, err)
		g := &engine.Group{ID: engine.GroupID{Lane: lane, Seq: 1}}
		for i := range 20 * sweepLimit {
			g.Changes = append(g.Changes, engine.Change{Key: engine.Key{Key: fmt.Appendf(nil, "%06d", i)}, XT: e.Now() - 10})
		}
		_, err = e.Write(t.Context(), g)
		require.NoError(t, err)
		time.Sleep(3 * time.Second) //lint:sleep in a bubble nobody waits
		n, err := d.Count(nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}
