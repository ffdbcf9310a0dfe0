package enginetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
)

// moment is how long a test looks whether a call waits.
const moment = 50 * time.Millisecond

// waits reports whether a change of a key has to wait for somebody.
func (w *writer) waits(key string) bool { return !w.goesWithin(key, moment) }

// goes reports whether a change of a key waits for nobody. The machine may be busy, so there is
// time, but less than a hold lasts.
func (w *writer) goes(key string) bool { return w.goesWithin(key, 10*time.Second) }

// goesWithin reports whether a change of a key is made within a time.
func (w *writer) goesWithin(key string, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	g := &engine.Group{ID: w.next(), Changes: []engine.Change{set(key, "of who waited", engine.Any)}}
	_, err := w.Write(ctx, g)
	if err == nil {
		return true
	}
	if engine.KindOf(err) == engine.Unknown {
		_, err = w.Settle(w.ctx, g.ID)
	}
	require.Equal(w.t, engine.Undone, engine.KindOf(err), "%v", err)
	return false
}

// hold holds keys for the lane's next group, which it returns.
func (w *writer) hold(names ...string) *engine.Group {
	g := &engine.Group{ID: w.next()}
	_, err := w.Read(w.ctx, keys(names...), engine.Reading{Hold: g.ID})
	require.NoError(w.t, err)
	return g
}

// Nobody changes a key that is held, with a record or without; everybody reads it.
func testHolds(h *host) {
	a, b := h.writer("a"), h.writer("b")
	if a.Limits().Hold == 0 {
		h.Skip("the engine cannot hold keys")
	}
	a.write(set("k", "1", engine.Any))
	g := a.hold("absent", "k")
	require.True(h, b.waits("k"))
	require.True(h, b.waits("absent"))
	require.True(h, b.goes("other"))
	require.Equal(h, "1", b.value("k"))
	ctx, cancel := context.WithTimeout(h.Context(), moment)
	defer cancel()
	_, err := b.Read(ctx, keys("j", "k"), engine.Reading{Hold: b.next()})
	require.Equal(h, engine.Undone, engine.KindOf(err), "a hold waits for another one: %v", err)
	require.True(h, b.goes("j"), "what was not held in the end is free")
	g.Changes = []engine.Change{set("absent", "2", engine.Absent), set("k", "2", b.read("k").Revision)}
	r, err := a.Write(a.ctx, g)
	require.NoError(h, err)
	require.True(h, r.Made())
	require.True(h, b.goes("k"))
	require.True(h, b.goes("absent"))
}

// A hold ends with its group, also an empty one, with Settle, with the lane's next hold, and by
// itself.
func testHoldEnds(h *host) {
	a, b := h.writer("a"), h.writer("b")
	if a.Limits().Hold == 0 {
		h.Skip("the engine cannot hold keys")
	}
	g := a.hold("k")
	_, err := a.Write(a.ctx, g)
	require.NoError(h, err)
	require.True(h, b.goes("k"), "the group was empty")
	g = a.hold("k")
	_, err = a.Settle(a.ctx, g.ID)
	require.ErrorIs(h, err, engine.ErrUndone)
	require.True(h, b.goes("k"), "the group was settled")
	a.hold("k")
	a.hold("l")
	require.True(h, b.goes("k"), "the lane holds something else")
	require.True(h, b.waits("l"))
	b.write(set("l", "2", engine.Any)) // takes as long as the hold may last
	require.Equal(h, "2", a.value("l"))
}

func testTransactions(h *host) {
	a, b := h.writer("a"), h.writer("b")
	a.write(set("k", "1", engine.Any))
	begin := func(ctx context.Context) engine.Tx {
		tx, err := a.Begin(ctx, 0)
		require.NoError(h, err)
		return tx
	}
	other := func() bool { // another transaction waits
		ctx, cancel := context.WithTimeout(h.Context(), moment)
		defer cancel()
		tx, err := b.Begin(ctx, 0)
		if err == nil {
			tx.Abort()
		}
		return err != nil
	}
	free := func() { // another one need not wait
		tx, err := b.Begin(h.Context(), 0)
		require.NoError(h, err)
		tx.Abort()
	}
	commit := func(tx engine.Tx, changes ...engine.Change) (engine.Result, error) {
		return tx.Commit(h.Context(), &engine.Group{ID: a.next(), Changes: changes})
	}
	tx := begin(h.Context())
	require.True(h, b.waits("k"))
	require.True(h, b.waits("another key"))
	require.True(h, other())
	require.Equal(h, "1", b.value("k"), "readers do not wait")
	elsewhere := set("k", "1", engine.Any)
	elsewhere.DB = 1
	b.write(elsewhere)
	r, err := commit(tx, set("k", "2", engine.Any), set("l", "2", engine.Any))
	require.NoError(h, err)
	require.True(h, r.Made())
	tx.Abort()
	require.Equal(h, "2 2", a.value("k")+" "+b.value("l"))
	free()
	require.True(h, b.goes("m"))

	tx = begin(h.Context())
	tx.Abort()
	free()
	_, err = commit(tx, set("k", "3", engine.Any))
	require.Equal(h, engine.Undone, engine.KindOf(err), "%v", err)

	ctx, cancel := context.WithCancel(h.Context())
	tx = begin(ctx)
	cancel()
	b.write(set("k", "4", engine.Any)) // waits at most until the engine has noticed
	_, err = commit(tx, set("k", "5", engine.Any))
	require.Equal(h, engine.Undone, engine.KindOf(err), "%v", err)
	require.Equal(h, "4", a.value("k"))

	tx = begin(h.Context())
	r, err = commit(tx, set("k", "6", 1<<50), set("l", "6", engine.Any))
	require.NoError(h, err)
	require.False(h, r.Made())
	require.Equal(h, "4 2", a.value("k")+" "+b.value("l"), "all or none")
	require.True(h, b.goes("m"))
}

// Who does not want to wait for a transaction is told which database it has, and nothing of the
// group is made; nor does a clear wait for others then.
func testNoWait(h *host) {
	a, b := h.writer("a"), h.writer("b")
	tx, err := a.Begin(h.Context(), 1)
	require.NoError(h, err)
	locked := func(err error) bool {
		db, is := engine.IsLocked(err)
		return is && db == 1 && engine.KindOf(err) == engine.Undone && !engine.IsAway(err)
	}
	other := set("k", "v", engine.Any)
	other.DB = 1
	try := func(changes ...engine.Change) error {
		_, err := b.Write(b.ctx, &engine.Group{ID: b.next(), Changes: changes, NoWait: true})
		return err
	}
	require.True(h, locked(try(other)))
	require.True(h, locked(try(set("k", "v", engine.Any), other)))
	require.Equal(h, "-", b.value("k"))
	require.NoError(h, try(set("k", "v", engine.Any)))
	clear := &engine.Group{ID: b.next(), Clear: &engine.Clear{DB: 1}, NoWait: true}
	_, err = b.Write(b.ctx, clear)
	require.True(h, locked(err))
	names := []engine.Key{{Key: []byte("k")}, {DB: 1, Key: []byte("k")}}
	if b.Limits().Hold > 0 {
		_, err = b.Read(b.ctx, names, engine.Reading{Hold: b.next(), NoWait: true})
		require.True(h, locked(err))
		require.True(h, a.goes("k"), "nothing is held")
	}
	tx.Abort()
	require.NoError(h, try(other))
	if b.Limits().Hold > 0 {
		hold := engine.Reading{Hold: b.next(), NoWait: true}
		recs, err := b.Read(b.ctx, names, hold)
		require.NoError(h, err)
		require.Len(h, recs, 2)
		_, err = a.Write(a.ctx, &engine.Group{ID: a.next(), Clear: &engine.Clear{DB: 1}, NoWait: true})
		require.True(h, locked(err), "a clear needs the database for itself: %v", err)
		require.NoError(h, func() error { _, err := b.Write(b.ctx, &engine.Group{ID: hold.Hold}); return err }())
	}
	r, err := a.Write(a.ctx, &engine.Group{ID: a.next(), Clear: &engine.Clear{DB: 1}, NoWait: true})
	require.NoError(h, err)
	require.True(h, r.Made())
}

// A lane is one server's: groups of another one in it are refused, whatever number they have, and
// nothing tells the other one what has become of the server's own.
func testStrangers(h *host) {
	a, b := h.writer("a"), h.writer("b")
	a.write(set("k", "1", engine.Any))
	made := a.id
	b.id.Lane = a.id.Lane
	_, err := b.Settle(b.ctx, made)
	require.ErrorIs(h, err, engine.ErrUndone)
	require.ErrorIs(h, err, engine.ErrDisowned)
	_, err = a.Settle(a.ctx, made)
	require.NoError(h, err, "that leaves no note")
	for range 3 {
		g := &engine.Group{ID: b.next(), Changes: []engine.Change{set("k", "2", engine.Any)}}
		_, err = b.Write(b.ctx, g)
		require.ErrorIs(h, err, engine.ErrDisowned)
		tx, err := b.Begin(b.ctx, 0)
		require.NoError(h, err)
		_, err = tx.Commit(b.ctx, g)
		require.ErrorIs(h, err, engine.ErrDisowned)
		_, err = b.Read(b.ctx, keys("k"), engine.Reading{Hold: b.next()}) // a hold changes nothing
		require.NoError(h, err)
		_, err = b.Write(b.ctx, &engine.Group{ID: b.id, Changes: g.Changes})
		require.ErrorIs(h, err, engine.ErrDisowned)
	}
	require.Equal(h, "1", a.value("k"))
	a.write(set("k", "3", engine.Any))
	require.Equal(h, "3", a.value("k"))
}
