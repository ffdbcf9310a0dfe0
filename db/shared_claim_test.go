package db

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/dberr"
	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/mem"
	"gotycoon/db/record"
)

// claiming opens servers whose calls fail as fault says, in a bubble.
func claiming(t *testing.T, n int, fault func(c mem.Call) mem.Fault, test func(t *testing.T, place *mem.Store, all []*Catalog)) {
	claimingAt(t, n, mem.Options{Faults: fault}, test)
}

func claimingAt(t *testing.T, n int, o mem.Options, test func(t *testing.T, place *mem.Store, all []*Catalog)) {
	synctest.Test(t, func(t *testing.T) {
		place := mem.New(o)
		all := make([]*Catalog, n)
		for i := range all {
			e := place.Server(fmt.Sprint(i))
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			all[i] = mustOpen(t, Options{Shared: e, SID: 1, Gather: gather.Options{Timeout: time.Second}}, "a")
			all[i].DB(0).Watch(WatchOptions{Claims: true})
		}
		test(t, place, all)
	})
}

// put stores messages whose values are their keys.
func put(t *testing.T, d *DB, keys ...string) {
	t.Helper()
	for _, key := range keys {
		require.NoError(t, d.Add(nil, []byte(key), []byte(key), record.Never))
	}
}

// takeWithin claims a message when one comes within a time.
func takeWithin(t *testing.T, d *DB, limit time.Duration) *Claim {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { //lint:sleep in a bubble nobody waits
		c, err := d.Claim(nil, nil, []byte("q "), nil)
		if err == nil {
			return c
		}
		if !dberr.Unavailable(err) { // the engine is back, and not everybody has noticed
			require.ErrorIs(t, err, dberr.ErrNoRecord)
		}
		require.Less(t, time.Since(began), limit, "no message comes")
	}
}

// noMore checks that no message is left.
func noMore(t *testing.T, d *DB) {
	t.Helper()
	_, err := d.Claim(nil, nil, []byte("q "), nil)
	require.ErrorIs(t, err, dberr.ErrNoRecord)
}

// cut makes all calls of the server 0 fail while it is set.
func cut(on *atomic.Bool) func(c mem.Call) mem.Fault {
	return func(c mem.Call) (f mem.Fault) {
		if c.Server == "0" && on.Load() {
			f.Kind, f.Away = engine.Undone, true
		}
		return f
	}
}

// What a server had claimed when it died comes back when its lease has ended, and not before. When
// the server was not dead after all, its client is told that the message is not its own any more.
func TestClaimsOfAServerThatIsGone(t *testing.T) {
	var gone atomic.Bool
	claiming(t, 2, cut(&gone), func(t *testing.T, _ *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		put(t, a, "q 1", "q 2")
		none, lasts := all[0].Lease()
		require.Equal(t, engine.Term{}, none)
		require.False(t, lasts)
		one, two := takeWithin(t, a, time.Second), takeWithin(t, b, time.Second)
		term, lasts := all[0].Lease()
		require.True(t, lasts)
		require.NotZero(t, term.Number)
		gone.Store(true)
		time.Sleep(5 * time.Second) //lint:sleep in a bubble nobody waits
		noMore(t, b)
		again := takeWithin(t, b, 15*time.Second)
		_, lasts = all[0].Lease()
		require.False(t, lasts)
		require.Equal(t, "q 1", string(again.Value))
		noMore(t, b)
		gone.Store(false)
		put(t, b, "q 3")
		three := takeWithin(t, a, 5*time.Second) // in another term
		require.Equal(t, "q 3", string(three.Value))
		require.ErrorIs(t, one.Finish(nil), dberr.ErrNoRecord)
		require.NoError(t, one.GiveBack(nil))
		for _, c := range []*Claim{again, two, three} {
			require.NoError(t, c.Finish(nil))
		}
		noMore(t, b)
		n, err := a.Count(nil)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// Who gives back very many messages of a server that is gone still gets a lease for its own clients,
// and can stop.
func TestManyClaimsOfAServerThatIsGone(t *testing.T) {
	var gone atomic.Bool
	fault := cut(&gone)
	claiming(t, 2, func(c mem.Call) mem.Fault {
		f := fault(c)
		if c.Server == "1" && c.Name == mem.Claim {
			f.Delay = 20 * time.Millisecond
		}
		return f
	}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		for i := range 1000 {
			put(t, a, fmt.Sprint("z ", i))
			_, err := a.Claim(nil, nil, []byte("z "), nil)
			require.NoError(t, err)
		}
		put(t, b, "q 1")
		gone.Store(true)
		time.Sleep(13 * time.Second) //lint:sleep in a bubble nobody waits
		require.NoError(t, takeWithin(t, b, 4*time.Second).Finish(nil))
		began := time.Now()
		require.NoError(t, all[1].Close())
		require.Less(t, time.Since(began), 4*time.Second)
		gone.Store(false)
	})
}

// Neither do very many messages that its own clients have left keep a server from that.
func TestManyMessagesThatClientsHaveLeft(t *testing.T) {
	var gone, slow atomic.Bool
	fault := cut(&gone)
	claiming(t, 1, func(c mem.Call) mem.Fault {
		f := fault(c)
		if c.Name == mem.Claim && slow.Load() {
			f.Delay = 20 * time.Millisecond
		}
		return f
	}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		var claims []*Claim
		for i := range 1000 {
			put(t, d, fmt.Sprint("z ", i))
			c, err := d.Claim(nil, nil, []byte("z "), nil)
			require.NoError(t, err)
			claims = append(claims, c)
		}
		put(t, d, "q 1")
		gone.Store(true)
		for _, c := range claims {
			require.NoError(t, c.GiveBack(nil))
		}
		slow.Store(true)
		time.Sleep(12 * time.Second) //lint:sleep in a bubble nobody waits
		gone.Store(false)
		require.NoError(t, takeWithin(t, d, 4*time.Second).Finish(nil))
		began := time.Now()
		require.NoError(t, all[0].Close())
		require.Less(t, time.Since(began), 4*time.Second)
	})
}

// A server that closes leaves nothing behind: the others need not wait for the end of its lease.
func TestClaimsOfAServerThatCloses(t *testing.T) {
	claiming(t, 2, nil, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		put(t, a, "q 1")
		takeWithin(t, a, time.Second)
		require.NoError(t, all[0].Close())
		require.NoError(t, takeWithin(t, b, 3*time.Second).Finish(nil))
	})
}

// A message that was claimed and whose answer was lost is delivered, also if the claim comes late.
func TestTakesWithoutAnswers(t *testing.T) {
	for name, fault := range map[string]mem.Fault{
		"undone":        {Kind: engine.Undone},
		"not made":      {Kind: engine.Unknown},
		"made":          {Kind: engine.Unknown, Made: true},
		"made too late": {Kind: engine.Unknown, Made: true, Late: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var takes atomic.Int64
			claiming(t, 2, func(c mem.Call) (f mem.Fault) {
				if c.Name == mem.Take && takes.Add(1)%2 == 1 {
					return fault
				}
				return f
			}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
				d := all[0].DB(0)
				put(t, d, "q 1", "q 2")
				for _, key := range []string{"q 1", "q 2"} {
					c := takeWithin(t, d, time.Second)
					require.Equal(t, key, string(c.Key))
					require.NoError(t, c.Finish(nil))
				}
				time.Sleep(time.Minute) //lint:sleep in a bubble nobody waits
				noMore(t, all[1].DB(0))
			})
		})
	}
}

// A claim of which nobody has heard within the timeout is given back when the engine answers again.
func TestATakeThatIsSettledLater(t *testing.T) {
	var silent atomic.Bool
	claiming(t, 2, func(c mem.Call) (f mem.Fault) {
		if c.Server == "0" && silent.Load() && (c.Name == mem.Take || c.Name == mem.Claim) {
			f.Kind, f.Made = engine.Unknown, c.Name == mem.Take
		}
		return f
	}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		put(t, a, "q 1")
		silent.Store(true)
		_, err := a.Claim(nil, nil, []byte("q "), nil)
		require.True(t, dberr.Unavailable(err), "%v", err)
		noMore(t, b)
		silent.Store(false)
		require.NoError(t, takeWithin(t, b, 3*time.Second).Finish(nil))
	})
}

// A message that could not be given back comes back when the engine answers again.
func TestAGiveBackThatFails(t *testing.T) {
	var gone atomic.Bool
	claiming(t, 1, cut(&gone), func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		put(t, d, "q 1")
		c := takeWithin(t, d, time.Second)
		gone.Store(true)
		require.NoError(t, c.GiveBack(nil))
		gone.Store(false)
		require.Eventually(t, func() bool { return d.Set(nil, []byte("x"), nil, record.Never) == nil }, time.Second, time.Millisecond)
		require.NoError(t, takeWithin(t, d, 300*time.Millisecond).Finish(nil))
		noMore(t, d)
	})
}

// A message whose key was used again comes back behind the one that has it, and neither is lost.
func TestAGiveBackReplacesNothing(t *testing.T) {
	var gone atomic.Bool
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			gone.Store(false)
			claiming(t, 2, cut(&gone), func(t *testing.T, _ *mem.Store, all []*Catalog) {
				a, b := all[0].DB(0), all[1].DB(0)
				put(t, a, "q 1", "q 1+1")
				c := takeWithin(t, a, time.Second)
				require.NoError(t, b.Add(nil, c.Key, []byte("second"), record.Never))
				if dies {
					gone.Store(true)
					time.Sleep(15 * time.Second) //lint:sleep in a bubble nobody waits
				} else {
					require.NoError(t, c.GiveBack(nil))
				}
				got := map[string]string{}
				for range 3 {
					c := takeWithin(t, b, time.Second)
					got[string(c.Key)] = string(c.Value)
					require.NoError(t, c.Finish(nil))
				}
				require.Equal(t, map[string]string{"q 1": "second", "q 1+1": "q 1+1", "q 1+2": "q 1"}, got)
				gone.Store(false)
			})
		})
	}
}

// Claims wait for a transaction of another server, and for no longer than other operations.
func TestClaimsDuringATransaction(t *testing.T) {
	claiming(t, 2, nil, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		a, b := all[0].DB(0), all[1].DB(0)
		put(t, a, "q 1")
		for _, lasts := range []time.Duration{300 * time.Millisecond, 3 * time.Second} {
			tx, err := a.Begin(nil, false)
			require.NoError(t, err)
			time.AfterFunc(lasts, func() { _ = tx.Abort() })
			began := time.Now()
			c, err := b.Claim(nil, nil, []byte("q "), nil)
			if lasts < time.Second {
				require.NoError(t, err)
				require.NoError(t, c.GiveBack(nil))
			} else {
				require.True(t, dberr.Unavailable(err), "%v", err)
				require.Less(t, time.Since(began), 2*time.Second)
			}
		}
	})
}

// Servers that begin at the same time get leases of their own, and one that finds none free in the
// middle of things goes on with the next.
func TestServersHaveLeasesOfTheirOwn(t *testing.T) {
	claiming(t, 5, nil, func(t *testing.T, place *mem.Store, all []*Catalog) {
		seen := map[string]bool{}
		done := make(chan string)
		for i, c := range all {
			put(t, c.DB(0), fmt.Sprint("q ", i))
		}
		for _, c := range all {
			go func() { done <- takeWithin(t, c.DB(0), 20*time.Second).shared.ID.By.Name }()
		}
		for range all {
			seen[<-done] = true
		}
		require.Len(t, seen, len(all))
	})
}

// Who finishes a message and never hears an answer is not told that nothing was changed.
func TestAFinishWithoutAnAnswer(t *testing.T) {
	var cut atomic.Bool
	claiming(t, 1, func(c mem.Call) (f mem.Fault) {
		if c.Name == mem.Claim && cut.Load() {
			f.Kind, f.Away, f.Made = engine.Unknown, true, true
		}
		return f
	}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		put(t, d, "q 1")
		c := takeWithin(t, d, time.Second)
		cut.Store(true)
		require.ErrorIs(t, c.Finish(nil), dberr.ErrOutcome)
		cut.Store(false)
		require.NoError(t, c.Finish(nil), "the client asks again")
	})
}

// Who finishes a message, hears no answer, and asks again when its server's lease has ended, is not
// told that somebody else has the message: it is finished.
func TestAFinishWithoutAnAnswerAtTheEndOfALease(t *testing.T) {
	var began atomic.Int64 // of the finish, in nanoseconds
	var finishes atomic.Int64
	claimingAt(t, 1, mem.Options{Lease: 300 * time.Millisecond, Faults: func(c mem.Call) (f mem.Fault) {
		switch {
		case began.Load() == 0:
		case c.Name == mem.Lease:
			f.Kind, f.Away = engine.Undone, true
		case c.Name == mem.Claim && finishes.Add(1) == 1:
			f.Kind, f.Away, f.Made = engine.Unknown, true, true
		case c.Name == mem.Claim && time.Since(time.Unix(0, began.Load())) < 500*time.Millisecond:
			f.Kind, f.Away = engine.Undone, true
		}
		return f
	}}, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		put(t, d, "q 1")
		c := takeWithin(t, d, time.Second)
		began.Store(time.Now().UnixNano())
		require.NoError(t, c.Finish(nil))
		began.Store(0)
	})
}

// A large message takes room before its client has it. Where there is none the message comes back,
// and nobody keeps its value meanwhile.
func TestALargeMessageWithoutRoom(t *testing.T) {
	claiming(t, 1, nil, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		value := bytes.Repeat([]byte("x"), largeSize)
		require.NoError(t, d.Add(nil, []byte("q 1"), value, record.Never))
		poor, rich := &purse{left: largeSize - 1}, &purse{left: 2 * largeSize}
		_, err := d.Claim(nil, &Pending{Purse: poor}, []byte("q "), nil)
		require.ErrorIs(t, err, errEmpty)
		require.Equal(t, value, takeWithin(t, d, time.Second).Value)
		require.NoError(t, d.Add(nil, []byte("q 2"), value, record.Never))
		_, err = d.Claim(nil, &Pending{Purse: rich}, []byte("q "), nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, rich.held, largeSize)
	})
}

// Who gives messages back does not wait for a transaction of another server.
func TestGivingBackIntoALockedDatabase(t *testing.T) {
	claiming(t, 2, nil, func(t *testing.T, _ *mem.Store, all []*Catalog) {
		d := all[0].DB(0)
		put(t, d, "q 1")
		c := takeWithin(t, d, time.Second)
		tx, err := all[1].DB(0).Begin(nil, false)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.GiveBack(nil))
		require.Less(t, time.Since(began), 100*time.Millisecond)
		require.NoError(t, tx.Abort())
		require.Equal(t, "q 1", string(takeWithin(t, d, time.Second).Value))
	})
}
