package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spreading is a machine of four processors that a test describes.
type spreading struct {
	*spread
	now   time.Time
	sum   cores
	asked int
	sets  []int
}

func spreadOn(processors int) *spreading {
	m := &spreading{now: time.Unix(1000, 0)}
	m.spread = &spread{
		n: 1, tries: map[int]try{}, cpus: processors, set: func(n int) { m.sets = append(m.sets, n) }, most: func() int { return processors },
		usage: func() usage { return usage{ran: m.sum.ran} },
		cores: func() (cores, error) { m.asked++; return m.sum, nil },
	}
	return m
}

// pass lets time go by in which the threads run and wait for so many cores, with so many idle, and
// returns the number of loops then.
func (m *spreading) pass(d time.Duration, ran, waited, idle float64) int {
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(spreadEvery)
		m.sum.ran += time.Duration(ran * float64(spreadEvery))
		m.sum.waited += time.Duration(waited * float64(spreadEvery))
		m.sum.idle += time.Duration(idle * float64(spreadEvery))
		m.look(m.now)
	}
	return m.n
}

// Loops are added while those there are have no rest and cores are idle.
func TestLoopsAreAddedWhereCoresAreIdle(t *testing.T) {
	m := spreadOn(4)
	require.Equal(t, 1, m.pass(time.Minute, 0.6, 0, 3), "one loop is enough")
	require.Equal(t, 1, m.pass(time.Minute, 1, 0.1, 0.2), "the clients use the other cores")
	require.Equal(t, 4, m.pass(time.Second, 2.5, 0, 1.5))
	require.Equal(t, []int{2, 4}, m.sets)
	require.Equal(t, 4, m.pass(time.Minute, 4, 0.1, 0))
}

// A loop that waits awake for news is not busy.
func TestLoopsThatKeepVigilAreEnough(t *testing.T) {
	m := spreadOn(4)
	for range 100 {
		m.sum.awake += spreadEvery / 2
		require.Equal(t, 1, m.pass(spreadEvery, 1, 0, 3))
	}
}

// Loops that stand in line for a core are too many. The next attempt waits longer and longer.
func TestLoopsAreTakenBackWhereOthersUseTheCores(t *testing.T) {
	m := spreadOn(2)
	require.Equal(t, 2, m.pass(time.Second, 1, 0, 0.9))
	require.Equal(t, 1, m.pass(time.Second, 1, 0.5, 0))
	require.Equal(t, 1, m.pass(leastRest-2*time.Second, 1, 0, 0.9))
	require.Equal(t, 2, m.pass(4*time.Second, 1, 0, 0.9))
	require.Equal(t, 1, m.pass(time.Second, 1, 0.5, 0))
	require.Equal(t, 1, m.pass(2*leastRest-2*time.Second, 1, 0, 0.9))
	require.Equal(t, 2, m.pass(4*time.Second, 1, 0, 0.9))
}

// Among many threads of others, a server has as many threads as it may.
func TestManyStrangersBringAllLoops(t *testing.T) {
	m := spreadOn(2)
	m.sum.busy = 6
	require.Equal(t, 2, m.pass(2*time.Second, 0.3, 0.7, 0))
	require.Equal(t, 2, m.pass(time.Minute, 0.6, 1.4, 0))
	m.sum.busy = 3
	require.Equal(t, 1, m.pass(2*time.Second, 1, 1, 0), "one stranger fits beside one loop")
	require.Equal(t, []int{2, 1}, m.sets)
}

// Clients on the server's machine that leave less than half a core need what a second loop would
// take while it looks for news.
func TestLessThanHalfACoreIsNotWorthALoop(t *testing.T) {
	m := spreadOn(2)
	require.Equal(t, 1, m.pass(time.Minute, 1, 0, 0.4))
	require.Empty(t, m.sets)
}

// Loops that stand in line stay while far more is served than before them. They are tried anew
// after loopsProven, since the clients may be others by then.
func TestLoopsThatStandInLineStayWhileTheyPay(t *testing.T) {
	m := spreadOn(2)
	window := func(served int, waited, idle float64) int {
		m.sum.served += uint64(served)
		return m.pass(spreadEvery, 1, waited, idle)
	}
	m.pass(2*spreadEvery, 0.5, 0, 1.5)
	for range 3 {
		require.Equal(t, 2, window(1000, 0, 0.8))
		for range loopsProven/spreadEvery - 1 {
			require.Equal(t, 2, window(1300, 0.4, 0))
		}
		require.Equal(t, 1, window(1300, 0.4, 0), "and tried anew, at once")
	}
	require.Equal(t, 2, window(1000, 0, 0.8))
	require.Equal(t, 1, window(1200, 0.4, 0), "little more is served")
	for range leastRest/spreadEvery - 1 {
		require.Equal(t, 1, window(1000, 0, 0.8))
	}
	require.Equal(t, 2, window(1000, 0, 0.8))
}

// Loops that do not pay are taken back, and not those that did before them.
func TestTheFirstLoopsStayWhereFurtherOnesDoNotPay(t *testing.T) {
	m := spreadOn(8)
	window := func(served int, ran, waited, idle float64) int {
		m.sum.served += uint64(served)
		return m.pass(spreadEvery, ran, waited, idle)
	}
	m.pass(2*spreadEvery, 0.5, 0, 7)
	require.Equal(t, 2, window(1000, 1, 0, 6))
	require.Equal(t, 4, window(2000, 2, 0, 5))
	require.Equal(t, 8, window(3900, 4, 0, 3))
	require.Equal(t, 4, window(4000, 6, 1, 0))
	for range loopsProven/spreadEvery - 4 {
		require.Equal(t, 4, window(3900, 4, 0.4, 0))
	}
}

// What did not pay for some clients may for those after a pause.
func TestAPauseEndsTheRest(t *testing.T) {
	m := spreadOn(2)
	m.pass(time.Second, 1, 0, 0.9)
	require.Equal(t, 1, m.pass(time.Second, 1, 0.5, 0))
	m.pass(spreadEvery, 0, 0, 2)
	require.Equal(t, 2, m.pass(time.Second, 1, 0, 0.9))
}

// A server with little to do goes back to one loop, and does not even ask for the figures then.
func TestALittleWorkNeedsOneLoop(t *testing.T) {
	m := spreadOn(4)
	require.Equal(t, 4, m.pass(time.Second, 4, 0, 1))
	require.Equal(t, 1, m.pass(time.Second, 0.05, 0, 3.9))
	before := m.asked
	m.pass(time.Minute, 0.05, 0, 3.9)
	require.Equal(t, before, m.asked)
}

// Where fewer processors are left to the server, fewer loops are.
func TestNoMoreLoopsThanProcessors(t *testing.T) {
	m := spreadOn(4)
	require.Equal(t, 4, m.pass(time.Second, 4, 0, 1))
	m.most = func() int { return 2 }
	require.Equal(t, 2, m.pass(spreadEvery, 4, 0, 0))
}

// Leaders that wait for the disk leave cores idle, and more loops would make more fsyncs, unless
// most of their requests do not wait.
func TestLoopsThatWaitForTheDiskAreEnough(t *testing.T) {
	m := spreadOn(4)
	syncing := func(ran, slept, most float64) {
		for range 25 {
			m.sum.slept += time.Duration(slept * float64(spreadEvery))
			m.sum.synced += time.Duration(most * float64(spreadEvery))
			m.pass(spreadEvery, ran, 0.1, 2)
		}
	}
	syncing(0.9, 0.2, 0.2)
	require.Equal(t, 1, m.n)
	syncing(0.7, 0.2, 0.05)
	require.Equal(t, 2, m.n, "one loop has no rest")
	syncing(1.1, 0.9, 0.9)
	require.Equal(t, 1, m.n, "two loops wait for each other's fsync")
}
