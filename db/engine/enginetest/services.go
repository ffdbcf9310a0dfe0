package enginetest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/ulog"
)

// held is a lease that a test has.
type held struct {
	engine.Term
	lost   <-chan struct{}
	giveUp func()
}

func (h *host) lease(e engine.Engine, name string) held {
	ctx, cancel := context.WithCancel(h.Context())
	t, lost, err := e.Leases().Hold(ctx, name)
	require.NoError(h, err)
	require.Equal(h, name, t.Name)
	return held{t, lost, cancel}
}

func testLeases(h *host) {
	a, b := h.server("addr a"), h.server("addr b")
	holder := func(name string) (string, uint64) {
		addr, term, err := b.Leases().Holder(h.Context(), name)
		require.NoError(h, err)
		return addr, term
	}
	addr, _ := holder("one")
	require.Empty(h, addr)
	one := h.lease(a, "one")
	other := h.lease(b, "other")
	addr, term := holder("one")
	require.Equal(h, "addr a", addr)
	require.Equal(h, one.Number, term)

	next := make(chan held)
	go func() { next <- h.lease(b, "one") }()
	ctx, cancel := context.WithTimeout(h.Context(), moment)
	defer cancel()
	_, _, err := b.Leases().Hold(ctx, "one")
	require.Error(h, err, "somebody else has it")
	select {
	case <-one.lost:
		h.Fatal("the lease is lost while its holder renews it")
	default:
	}
	one.giveUp()
	<-one.lost
	two := <-next
	require.Greater(h, two.Number, one.Number)
	addr, _ = holder("one")
	require.Equal(h, "addr b", addr)

	require.NoError(h, b.Close()) // gives everything back
	<-two.lost
	<-other.lost
	three := h.lease(a, "other")
	require.Greater(h, three.Number, other.Number)
	three.giveUp()
	<-three.lost
	other.giveUp()
	two.giveUp()
}

// What a former holder still has on its way is refused.
func testGuards(h *host) {
	a, b := h.writer("a"), h.writer("b")
	one := h.lease(a, "leader")
	a.group(&engine.Group{Guard: &one.Term, Changes: []engine.Change{set("k", "1", engine.Any)}})
	require.Equal(h, "1", b.value("k"))
	one.giveUp()
	<-one.lost
	for i := range 2 {
		_, err := a.Write(h.Context(), &engine.Group{ID: a.next(), Guard: &one.Term, Changes: []engine.Change{set("k", "late", engine.Any)}})
		require.ErrorIs(h, err, engine.ErrFenced)
		if i == 0 {
			two := h.lease(b, "leader")
			defer two.giveUp()
			b.group(&engine.Group{Guard: &two.Term, Changes: []engine.Change{set("k", "2", engine.Any)}})
		}
	}
	require.Equal(h, "2", a.value("k"))
}

func testSignals(h *host) {
	a, b := h.server("a"), h.server("b")
	if a.Signals() == nil {
		h.Skip("the engine has no signals")
	}
	ctx, cancel := context.WithCancel(h.Context())
	require.NoError(h, a.Signals().Send(ctx, "nobody listens"))
	listening, ended := make(chan struct{}), make(chan error, 2)
	heard := [2]chan string{make(chan string, 1000), make(chan string, 1000)}
	for i, e := range []engine.Engine{a, b} {
		begun := func() { listening <- struct{}{} }
		go func() { ended <- e.Signals().Listen(ctx, begun, func(message string) { heard[i] <- message }) }()
	}
	<-listening
	<-listening
	// all hear everything, and in one order
	const each = 50
	var sending sync.WaitGroup
	for i, e := range []engine.Engine{a, b} {
		sending.Go(func() {
			for n := range each {
				assert.NoError(h, e.Signals().Send(ctx, fmt.Sprintf("%d of %d", n, i)))
			}
		})
	}
	sending.Wait()
	for _, message := range []string{"", "with 'quotes' and \xff", strings.Repeat("x", 4096), "last"} {
		require.NoError(h, b.Signals().Send(ctx, message))
	}
	message := ""
	for range 2*each + 4 {
		message = <-heard[0]
		require.Equal(h, message, <-heard[1])
	}
	require.Equal(h, "last", message)
	require.Equal(h, engine.Refused, engine.KindOf(a.Signals().Send(ctx, strings.Repeat("x", 4097))))
	cancel()
	require.ErrorIs(h, <-ended, context.Canceled)
	require.ErrorIs(h, <-ended, context.Canceled)
}

func testPositions(h *host) {
	w := h.writer("a")
	one := h.lease(w, "follow")
	defer one.giveUp()
	after := ulog.Stamp(1) << 62 // a master whose clock is ahead
	r := w.group(&engine.Group{
		Changes:  []engine.Change{set("k", "1", engine.Any)},
		Position: &ulog.Position{DBID: 3, State: []byte("up to here"), After: after}, Guard: &one.Term,
	})
	require.Greater(h, r.Stamp, after, "an update has a later stamp than where it comes from")
	alone := w.group(&engine.Group{Position: &ulog.Position{State: []byte("and here")}})
	require.Greater(h, alone.Stamp, r.Stamp)
	groups, _, err := w.Log().Read(h.Context(), 0, 1<<20)
	require.NoError(h, err)
	require.Len(h, groups, 2)
	require.Equal(h, "up to here", string(groups[0].Position.State))
	require.EqualValues(h, 3, groups[0].Position.DBID)
	require.Equal(h, "and here", string(groups[1].Position.State))
	require.Empty(h, groups[1].Updates)
	require.Equal(h, alone.Stamp, groups[1].Last())
}
