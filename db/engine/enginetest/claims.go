package enginetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
)

// claimant is a server that holds a lease for its claims.
type claimant struct {
	*writer
	held
	db   uint16
	last uint64 // number of the last claim
}

func newClaimant(h *host, e engine.Engine, name string, db uint16) *claimant {
	return &claimant{writer: newWriter(h, h.Context(), e), held: h.lease(e, name), db: db}
}

// claimant returns a server of its own that may claim records of the database 0. The test ends
// where the engine has no claims.
func (h *host) claimant(addr string) *claimant {
	e := h.server(addr)
	if e.Claims() == nil {
		h.Skip("the engine has no claims")
	}
	return newClaimant(h, e, "claims/"+addr, 0)
}

func (c *claimant) next() engine.ClaimID {
	c.last++
	return engine.ClaimID{By: c.Term, Number: c.last}
}

// take claims a record, nil for none.
func (c *claimant) take(prefix, from string) *engine.Claimed {
	id := c.next()
	r, found, err := c.Claims().Take(c.ctx, id, engine.Claim{DB: c.db, Prefix: []byte(prefix), From: []byte(from)})
	require.NoError(c.t, err)
	if !found {
		return nil
	}
	return &engine.Claimed{ID: id, Record: r}
}

func (c *claimant) finish(r *engine.Claimed) error {
	u := removal(string(r.Key.Key))
	u.DBID = c.db
	return c.Claims().Finish(c.ctx, r, u)
}

// giveBack gives a record back under a key, and reports whether that was taken.
func (c *claimant) giveBack(r *engine.Claimed, key string) (taken bool) {
	u := set(key, string(r.Value), engine.Any).Log[0]
	u.DBID = c.db
	taken, err := c.Claims().GiveBack(c.ctx, r.ID, u)
	require.NoError(c.t, err)
	return taken
}

// A message goes to one client, and is gone when that is done with it.
func testClaims(h *host) {
	a, b := h.claimant("a"), h.claimant("b")
	a.write(setUntil("q:0", "expired", 1, engine.Any), set("q:1", "one", engine.Any), set("q:2", "two", engine.Any),
		setUntil("q:3", "three", a.Now()+1000, engine.Any), set("r:1", "of another queue", engine.Any))
	_, before := a.logged(0)
	waiting := func(want ...bool) {
		there, err := b.Claims().Waiting(h.Context(), 0, [][]byte{[]byte("q:"), []byte("r:"), []byte("s"), []byte("q:0"), nil, {0xff}})
		require.NoError(h, err)
		require.Equal(h, want, there)
	}
	waiting(true, true, false, false, true, false)
	one, two := a.take("q:", ""), b.take("q:", "")
	require.Equal(h, "one two", string(one.Value)+" "+string(two.Value))
	require.Equal(h, "-", b.value("q:1"))
	three := b.take("q:", "q:25")
	require.Equal(h, "three", string(three.Value))
	require.Nil(h, a.take("q:", ""))
	waiting(false, true, false, false, true, false)
	n, _, err := a.Count(h.Context(), 0)
	require.NoError(h, err)
	require.EqualValues(h, 2, n, "the expired record and the one of another queue")
	texts, _ := a.logged(before)
	require.Empty(h, texts, "a claim is not logged")

	require.NoError(h, a.finish(one))
	require.NoError(h, a.finish(one))
	for range 2 {
		require.False(h, b.giveBack(three, "q:3"))
	}
	texts, _ = a.logged(before)
	require.Equal(h, []string{"-q:1", "q:3=three"}, texts, "each end of a claim is logged once")
	require.Equal(h, "-", a.value("q:1"))
	require.Equal(h, engine.Forever, a.read("q:3").XT)

	snap, err := a.Snapshot(h.Context(), 0)
	require.NoError(h, err)
	page, err := snap.Scan(h.Context(), engine.Scan{Edge: true, Limit: 100})
	require.NoError(h, err)
	require.Equal(h, []string{"q:0", "q:2", "q:3", "r:1"}, keysOf(page.Records), "a snapshot has what is claimed")
	count, err := snap.Count(h.Context())
	require.NoError(h, err)
	require.EqualValues(h, 4, count)
	require.NoError(h, snap.Close())
}

// A record that is stored under the key of a claimed one is not the claimed one, and neither of the
// two is lost.
func testClaimedKeys(h *host) {
	w := h.claimant("a")
	for name, end := range map[string]func(r *engine.Claimed) (logged []string){
		"finish": func(r *engine.Claimed) []string {
			require.NoError(h, w.finish(r))
			return []string{"k=new"}
		},
		"give back": func(r *engine.Claimed) []string {
			require.True(h, w.giveBack(r, "k"))
			require.Equal(h, "new", w.value("k"))
			require.False(h, w.giveBack(r, "l"))
			require.Equal(h, "old", w.value("l"))
			return []string{"k=new", "l=old"}
		},
	} {
		w.write(set("k", "old", engine.Any))
		r := w.take("k", "")
		_, before := w.logged(0)
		require.True(h, w.write(set("k", "new", engine.Absent)).Made(), name)
		logged := end(r)
		require.Equal(h, "new", w.value("k"), name)
		texts, _ := w.logged(before)
		require.Equal(h, logged, texts, name)
		require.NotEqual(h, r.Revision, w.read("k").Revision)
	}
}

// A take is settled once and for all.
func testSettledClaims(h *host) {
	a := h.claimant("a")
	a.write(set("k", "v", engine.Any))
	never := a.next()
	for range 2 {
		_, found, err := a.Claims().Settle(h.Context(), never)
		require.NoError(h, err)
		require.False(h, found)
	}
	_, found, err := a.Claims().Take(h.Context(), never, engine.Claim{})
	require.Equal(h, engine.Refused, engine.KindOf(err), "%v", err)
	require.False(h, found)
	require.Equal(h, "v", a.value("k"))
	made := a.take("", "")
	for range 2 {
		r, found, err := a.Claims().Settle(h.Context(), made.ID)
		require.NoError(h, err)
		require.True(h, found)
		require.Equal(h, made.Record, r)
	}
}

// What a server that has ended had claimed is everybody's, once for all.
func testAbandoned(h *host) {
	a, b := h.claimant("a"), h.claimant("b")
	a.write(set("k1", "1", engine.Any), setUntil("k2", "2", a.Now()+1000, engine.Any), set("k3", "3", engine.Any))
	one, two, of := a.take("", ""), a.take("", ""), b.take("", "")
	abandoned := func(limit, bytes int) []engine.Claimed {
		all, err := b.Claims().Abandoned(h.Context(), limit, bytes)
		require.NoError(h, err)
		return all
	}
	require.Empty(h, abandoned(10, 1000))
	_, _, err := a.Claims().Settle(h.Context(), a.next())
	require.NoError(h, err)
	a.giveUp()
	<-a.lost
	require.ElementsMatch(h, []engine.Claimed{*one, *two}, abandoned(10, 1000))
	require.Len(h, abandoned(1, 1000), 1)
	require.Len(h, abandoned(10, 1), 1)
	a.held = h.lease(a, a.Name) // the same lease, another term
	require.Len(h, abandoned(10, 1000), 2)
	require.False(h, b.giveBack(one, "k1"))
	require.False(h, a.giveBack(two, "k2"))
	require.Empty(h, abandoned(10, 1000))
	require.Equal(h, "1 2 -", a.value("k1")+" "+a.value("k2")+" "+a.value("k3"))
	require.ErrorIs(h, a.finish(one), engine.ErrUnclaimed, "it wakes up, too late")
	require.False(h, a.giveBack(one, "k9"))
	require.Equal(h, "1", a.value("k1"))
	require.NoError(h, b.finish(of))
}

// Nobody waits for who has the database alone: connections that wait would be missing elsewhere.
func testClaimsLocked(h *host) {
	a, b := h.claimant("a"), h.claimant("b")
	a.write(set("k1", "1", engine.Any), set("k2", "2", engine.Any))
	one := a.take("", "")
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	x, err := b.Begin(ctx, 0)
	require.NoError(h, err)
	_, _, err = a.Claims().Take(h.Context(), a.next(), engine.Claim{})
	require.Equal(h, engine.Undone, engine.KindOf(err), "%v", err)
	_, err = a.Claims().GiveBack(h.Context(), one.ID, set("k1", "1", engine.Any).Log[0])
	require.Equal(h, engine.Undone, engine.KindOf(err), "%v", err)
	require.Equal(h, engine.Undone, engine.KindOf(a.finish(one)))
	x.Abort()
	require.NoError(h, a.finish(one))
	require.Equal(h, "2", string(a.take("", "").Value))
}

// Of servers that claim at once, each record goes to one of them.
func testClaimants(h *host) {
	const records, servers = 40, 4
	var all []*claimant
	for i := range servers {
		all = append(all, h.claimant(fmt.Sprint(i)))
	}
	for i := range records {
		all[0].write(set(fmt.Sprintf("k%02d", i), "v", engine.Any))
	}
	seen := map[string]int{}
	var mu sync.Mutex
	var work sync.WaitGroup
	began := time.Now()
	for _, c := range all {
		work.Go(func() {
			for {
				mu.Lock()
				done := len(seen) == records
				mu.Unlock()
				if done || time.Since(began) > time.Minute {
					return
				}
				if r := c.take("k", ""); r != nil {
					mu.Lock()
					seen[string(r.Key.Key)]++
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	require.Len(h, seen, records)
	for key, n := range seen {
		require.Equal(h, 1, n, key)
	}
}
