// Package enginetest holds the tests that every engine must pass: a table for each rule of package
// engine, a state machine that does everything in any order, and writers and readers at once.
package enginetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// Place is where engines come from.
type Place struct {
	// Open makes a place without records, and returns a function that opens it for a server with an
	// address, as often as a test likes. The tests close what they open.
	Open func(t *testing.T) (server func(addr string) engine.Engine)
	// Run runs a test whose waits are long, for instance in a bubble of package synctest; nil: as
	// any other test.
	Run func(t *testing.T, test func(t *testing.T))
}

// Run tests an engine.
func Run(t *testing.T, p Place) {
	for _, one := range []struct {
		name string
		test func(h *host)
	}{
		{"conditions", testConditions},
		{"revisions", testRevisions},
		{"losers", testLosers},
		{"keys that come and go", testComing},
		{"whole groups", testWhole},
		{"groups that are refused", testRefused},
		{"a clear and what comes after it", testClear},
		{"settled groups", testSettle},
		{"reads", testReads},
		{"slices belong to the caller", testSlices},
		{"a key of no bytes", testNothing},
		{"scans", testScans},
		{"values that are left out", testMost},
		{"sweep and count", testSweep},
		{"holds", testHolds},
		{"a hold ends", testHoldEnds},
		{"lanes of other servers", testStrangers},
		{"snapshots", testSnapshot},
		{"transactions", testTransactions},
		{"updates that do not wait for a transaction", testNoWait},
		{"claims", testClaims},
		{"claims and other records", testClaimedKeys},
		{"claims that are settled", testSettledClaims},
		{"claims that are finished", testFinishedClaims},
		{"claims of terms that have ended", testAbandoned},
		{"claims and transactions", testClaimsLocked},
		{"claimants at once", testClaimants},
		{"leases", testLeases},
		{"guards", testGuards},
		{"signals", testSignals},
		{"log", testLog},
		{"positions", testPositions},
		{"log is trimmed", testTrim},
		{"state machine", testMachine},
		{"two writers at once", testWriters},
		{"log of several writers", testFollow},
	} {
		t.Run(one.name, func(t *testing.T) {
			run := p.Run
			if run == nil {
				run = func(t *testing.T, test func(t *testing.T)) { test(t) }
			}
			run(t, func(t *testing.T) {
				h := &host{T: t, open: p.Open(t)}
				defer h.close()
				one.test(h)
			})
		})
	}
}

// host is a test and the engines that it has opened.
type host struct {
	*testing.T
	open   func(addr string) engine.Engine
	opened []engine.Engine
}

func (h *host) close() {
	for _, e := range h.opened {
		require.NoError(h, e.Close())
	}
}

// server opens the place for a server.
func (h *host) server(addr string) engine.Engine {
	e := h.open(addr)
	h.opened = append(h.opened, e)
	return e
}

// writer is a lane of a server.
type writer struct {
	engine.Engine
	t   require.TestingT
	ctx context.Context
	id  engine.GroupID // of the last group
}

// writer returns a lane of a server of its own.
func (h *host) writer(addr string) *writer { return newWriter(h, h.Context(), h.server(addr)) }

func newWriter(t require.TestingT, ctx context.Context, e engine.Engine) *writer {
	lane, err := e.Lane(ctx)
	require.NoError(t, err)
	require.NotZero(t, lane)
	return &writer{Engine: e, t: t, ctx: ctx, id: engine.GroupID{Lane: lane}}
}

// next returns the ID of the lane's next group.
func (w *writer) next() engine.GroupID {
	w.id.Seq++
	return w.id
}

// write writes a group of changes.
func (w *writer) write(changes ...engine.Change) engine.Result {
	return w.group(&engine.Group{Changes: changes})
}

// group writes a group, which gets its ID.
func (w *writer) group(g *engine.Group) engine.Result {
	g.ID = w.next()
	r, err := w.Write(w.ctx, g)
	require.NoError(w.t, err)
	require.Len(w.t, r.Won, len(g.Changes))
	return r
}

// read returns the record of a key, nil for none.
func (w *writer) read(key string) *engine.Record {
	recs, err := w.Read(w.ctx, keys(key), engine.Reading{})
	require.NoError(w.t, err)
	if len(recs) == 0 {
		return nil
	}
	return &recs[0]
}

// value returns the value of a key, "-" for none.
func (w *writer) value(key string) string {
	if r := w.read(key); r != nil {
		return string(r.Value)
	}
	return "-"
}

func keys(names ...string) (all []engine.Key) {
	for _, n := range names {
		all = append(all, engine.Key{Key: []byte(n)})
	}
	return all
}

// set returns a change that stores a record.
func set(key, value string, condition uint64) engine.Change {
	return setUntil(key, value, engine.Forever, condition)
}

func setUntil(key, value string, xt int64, condition uint64) engine.Change {
	return engine.Change{
		Key: engine.Key{Key: []byte(key)}, Value: []byte(value), XT: xt, If: condition,
		Log: []ulog.Update{{SID: 1, Op: ulog.OpSet, Key: []byte(key), Value: stored(value, xt)}},
	}
}

// stored returns a value as the log has it.
func stored(value string, xt int64) []byte { return append(record.AppendXT(nil, xt), value...) }

// remove returns a change that removes a record.
func remove(key string, condition uint64) engine.Change {
	return engine.Change{Key: engine.Key{Key: []byte(key)}, Remove: true, If: condition, Log: []ulog.Update{removal(key)}}
}

// keep returns a change that only looks at a record.
func keep(key string, condition uint64) engine.Change {
	return engine.Change{Key: engine.Key{Key: []byte(key)}, Keep: true, If: condition}
}

func removal(key string) ulog.Update {
	return ulog.Update{SID: 1, Op: ulog.OpRemove, Key: []byte(key)}
}

// logged returns what the log has behind a stamp, as text, and the stamp up to which that is all.
func (w *writer) logged(after engine.Stamp) (texts []string, upTo engine.Stamp) {
	groups, upTo, err := w.Log().Read(w.ctx, after, 1<<20)
	require.NoError(w.t, err)
	for _, g := range groups {
		require.Greater(w.t, g.Stamp, after)
		after = g.Last()
		for i := range g.Updates {
			texts = append(texts, text(&g.Updates[i]))
		}
	}
	require.GreaterOrEqual(w.t, upTo, after)
	return texts, upTo
}

func text(u *ulog.Update) string {
	switch u.Op {
	case ulog.OpSet:
		return string(u.Key) + "=" + string(u.Value[record.XTSize:])
	case ulog.OpRemove:
		return "-" + string(u.Key)
	}
	return "clear"
}
