package filestore

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/ulog/update"
)

func rateOf(b *brake) float64 { return math.Float64frombits(b.rate.Load()) }

func newBrake(limit int64) *brake {
	b := new(brake)
	b.init(limit, func() {})
	return b
}

// The rate follows the debt, whichever of the two debts is greater.
func TestTheRateFollowsTheDebt(t *testing.T) {
	const limit, mega = 100 << 20, 1e6
	b := newBrake(limit)
	b.flush, b.merge = 60*mega, 30*mega // together 20 MB a second
	for _, tc := range []struct {
		frozen int64
		debt   float64
		drains float64 // of the rate; 0: no brake
	}{
		{0, 0, 0},
		{2 * limit, 1, 0},
		{5 * limit / 2, 0, 2},
		{3 * limit, 0, 1},
		{3 * limit, 1, 1},
		{3 * limit, 2, 0.25},
		{0, 1.5, 1},
		{4 * limit, 0, 0.25},
		{9 * limit, 9, 0.25},
		{0, 0, 0},
	} {
		b.frozen.Store(tc.frozen)
		b.debt.Store(math.Float64bits(tc.debt))
		b.adjust()
		require.InDelta(t, tc.drains*20*mega, rateOf(b), 1, "%+v", tc)
	}
}

// What writers bring while the brake is on moves its clock by the bytes divided by the rate, and
// nothing that they brought before.
func TestUpdatesMoveTheClockOfTheBrake(t *testing.T) {
	const limit = 10 << 20
	b := newBrake(limit)
	b.flush = limit // a limit in a second
	b.note(limit, 0, 500_000)
	b.slow()
	require.True(t, b.next.IsZero(), "no debt")
	b.note(3*limit, 0, 1)
	b.adjust()
	require.EqualValues(t, limit, rateOf(b))
	begun := time.Now()
	b.note(3*limit, 0, limit/100)
	b.slow()
	require.GreaterOrEqual(t, b.next.Sub(begun), 10*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(begun), 10*time.Millisecond, "it waited until the clock")
	require.EqualValues(t, 1, b.stalls)
	b.note(3*limit, 0, 100<<20)
	require.EqualValues(t, mostCharge, b.spent.Load(), "others do not pay for one large update")
}

// While the file takes nothing the memory of the overlays is bounded, and everything that came in is
// there afterwards.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 256 << 10
	s := mustOpen(t, filepath.Join(t.TempDir(), "m.kct"), limit)
	defer s.Close()
	s.cp.runMu.Lock() // nothing is flushed
	n := 0
	for ; s.brake.hasRoom(); n++ {
		require.Less(t, n, 100_000)
		require.NoError(t, s.Throttle())
		s.Apply(update.Stamp(n+1), []update.Update{set(fmt.Sprintf("%09d", n), "value")})
	}
	require.LessOrEqual(t, s.Unwritten(), int64(wallAt*limit+limit/4))
	require.Greater(t, len(s.view.Load().frozen()), 2)
	waited := make(chan error, 1)
	go func() { waited <- s.Throttle() }()
	s.cp.runMu.Unlock()
	require.NoError(t, <-waited)
	count, err := s.Count()
	require.NoError(t, err)
	require.EqualValues(t, n, count)
}

// Runs gather while updates come, are merged when they have a part of the records, and the records
// are the same all the time.
func TestRunsAreMergedWhenTheyAreMany(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "r.kct"), 1<<30)
	want := map[string]string{}
	at := update.Stamp(0)
	write := func(from, n int, value string) {
		for i := range n {
			at++
			key := fmt.Sprintf("%05d", (from+i*7919)%10_000)
			s.Apply(at, []update.Update{set(key, value)})
			want[key] = value
		}
	}
	runs := func() int { return len(s.runs.newest().runs) }
	s.cp.stop() // the test does the steps
	step := func() (n int) {
		for more := true; more; n++ {
			var err error
			more, err = s.step()
			require.NoError(t, err)
			requireEqual(t, want, s)
		}
		return n
	}
	write(0, 10_000, "first")
	require.NoError(t, s.Checkpoint())
	require.Equal(t, 1, runs())
	setPiece(s, 4000)
	require.Greater(t, step(), 3)
	require.Zero(t, runs(), "an empty file takes every run")
	for i := range 3 {
		write(i*100, 500, fmt.Sprint("r", i))
		require.NoError(t, s.Checkpoint())
		step()
		require.Equal(t, i+1, runs(), "less than the part")
	}
	write(0, 500, "r3")
	require.NoError(t, s.Checkpoint())
	step()
	require.Zero(t, runs())
	requireEqual(t, want, s)
	require.NoError(t, s.closeFile())
}

// However small the limit, a merge comes to its end and drops nothing that is not in the tree.
func TestAMergeWithATinyLimit(t *testing.T) {
	for limit := range int64(5) {
		s := mustOpen(t, filepath.Join(t.TempDir(), "t.kct"), limit+1)
		want := map[string]string{}
		for i := range 300 {
			key := fmt.Sprintf("%03d", i*7%200)
			require.NoError(t, s.Throttle())
			s.Apply(update.Stamp(i+1), []update.Update{set(key, fmt.Sprint(i))})
			want[key] = fmt.Sprint(i)
		}
		requireEqual(t, want, s)
		require.NoError(t, s.Merge())
		requireEqual(t, want, s)
		require.NoError(t, s.Close())
	}
}

// A file that was measured as very slow stops nobody for long.
func TestTheClockOfTheBrakeIsBounded(t *testing.T) {
	b := newBrake(10 << 20)
	b.flush = 1 // byte per second
	b.note(35<<20, 0, 1)
	b.adjust()
	require.Positive(t, rateOf(b))
	b.note(35<<20, 0, mostCharge)
	begun := time.Now()
	b.slow()
	require.LessOrEqual(t, b.next.Sub(begun), 2*mostWait)
}
