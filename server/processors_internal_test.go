package server

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// pretended are processors on a machine that a test describes.
type pretended struct {
	*processors
	now              time.Time
	faults, switches int64
	synced           netio.Syncing
	sum              cores
	err              error
	asked            int // for figures of the threads
	number           int
	own              int     // what Go chooses
	others           float64 // busy threads of others
}

func pretend(own int) *pretended {
	m := &pretended{now: time.Unix(1000, 0), own: own, number: own, others: 1}
	m.processors = &processors{
		usage:   func() usage { return usage{m.faults, m.sum.ran, m.switches} },
		cores:   func() (cores, error) { m.asked++; return m.sum, m.err },
		number:  func() int { return m.number },
		syncing: func() netio.Syncing { return m.synced },
		beats:   newPace(), begins: make(chan struct{}, 1),
	}
	m.processors.change = func(spare bool, fewer int) {
		m.number = own - fewer
		if spare {
			m.number = own + 1
		}
	}
	return m
}

// pass lets time go by in which the threads run and wait for so many cores, with so many idle, and
// returns the number of processors then.
func (m *pretended) pass(d time.Duration, ran, waited, idle float64) int {
	for end := m.now.Add(d); m.now.Before(end); {
		m.sum.busy = int(math.Round(ran + waited + m.others))
		if float64(m.number)-ran-waited > 0.5 {
			m.sum.busy += looker
		}
		m.now = m.now.Add(processorsEvery)
		m.sum.ran += time.Duration(ran * float64(processorsEvery))
		m.sum.waited += time.Duration(waited * float64(processorsEvery))
		m.sum.idle += time.Duration(idle * float64(processorsEvery))
		m.look(m.now)
	}
	return m.number
}

// passUntil is pass until there are so many processors, or the time is over.
func (m *pretended) passUntil(number int, d time.Duration, ran, waited, idle float64) int {
	for end := m.now.Add(d); m.number != number && m.now.Before(end); {
		m.pass(processorsEvery, ran, waited, idle)
	}
	return m.number
}

// beatFor lets beats come at an interval.
func (m *pretended) beatFor(d, interval time.Duration) int {
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(interval)
		m.beat(func() time.Time { return m.now })
	}
	return m.number
}

// The spare processors come with the first page that is read, stay while pages are read, and go
// afterwards. The number is set only where it changes: that stops the whole process.
func TestSpareProcessorsStayWhilePagesAreCold(t *testing.T) {
	m := pretend(2)
	m.onDisk, m.spare, m.number = true, true, 3
	changes := 0
	change := m.change
	m.change = func(spare bool, fewer int) { changes++; change(spare, fewer) }
	look := func(after time.Duration) int {
		m.now = m.now.Add(after)
		m.look(m.now)
		return m.number
	}
	require.Equal(t, 2, look(0), "no page was read")
	require.Equal(t, 2, look(time.Hour))
	require.Equal(t, 1, changes)
	m.faults = coldPages - 1
	require.Equal(t, 2, look(processorsEvery), "pages of the program")
	m.faults += coldPages
	require.Equal(t, 3, look(processorsEvery))
	require.Equal(t, 3, look(coldFor-time.Millisecond))
	m.faults += coldPages
	require.Equal(t, 3, look(0), "more of them")
	require.Equal(t, 3, look(coldFor-time.Millisecond))
	require.Equal(t, 2, look(time.Millisecond))
	require.Equal(t, 2, look(time.Hour))
	require.Equal(t, 3, changes)

	m.syncEach = true
	require.Equal(t, 3, look(0))
	require.Equal(t, 3, m.pass(time.Minute, 0.9, 1, 0.1), "nor does a crowd take them")
	require.Equal(t, 4, changes)
	m.synced.Slept += time.Millisecond
	require.Equal(t, 3, look(processorsEvery), "the leader of a loop has waited for the disk itself, once")
	m.synced.Slept += processorsEvery / 2
	require.Equal(t, 2, look(processorsEvery), "it does so for a part of the time")
	require.Equal(t, 2, look(coldFor-2*processorsEvery))
	require.Equal(t, 2, look(processorsEvery))
	require.Equal(t, 3, look(processorsEvery+time.Millisecond))
}

// So they do with pages that a scan has asked for, which the system does not count as faults.
func TestScansOfColdPagesBringSpareProcessors(t *testing.T) {
	m, pages := pretend(2), uint64(0)
	m.onDisk, m.processors.asked = true, func() uint64 { return pages }
	require.Equal(t, 2, m.pass(time.Second, 0.5, 0, 1))
	pages = coldPages
	require.Equal(t, 3, m.pass(processorsEvery, 0.5, 0, 1))
	require.Equal(t, 2, m.pass(coldFor, 0.5, 0, 1))
}

// A server with nothing on the disk has no use for spare processors.
func TestPagesOfProgramsBringNoSpareProcessors(t *testing.T) {
	m := pretend(2)
	m.faults = coldPages
	require.Equal(t, 2, m.pass(time.Second, 0.5, 0, 1))
}

// Where others use the cores, the server has as many processors as they leave it.
func TestACrowdLeavesFewerProcessors(t *testing.T) {
	for _, c := range []struct {
		name              string
		own, want         int
		ran, waited, idle float64
		others            float64
	}{
		{"a busy client beside it", 2, 1, 0.9, 0.85, 0.2, 1},
		{"a busy client beside it, and hardly anybody waits", 2, 1, 0.9, 0.03, 0.2, 1},
		{"nobody waits", 2, 2, 0.9, 0.01, 0.2, 1},
		{"nearly alone", 2, 2, 0.9, 0.1, 1, 0},
		{"it needs both", 2, 2, 1.7, 0.4, 0, 1},
		{"somebody else needs a little", 2, 2, 0.9, 0.3, 0.8, 0.5},
		{"a crowd with fewer processors too", 2, 2, 0.9, 0.9, 0, 3.2},
		{"a machine of one core", 1, 1, 0.5, 0.5, 0, 1},
		{"eight cores, half of them taken", 8, 4, 3.5, 2, 0.6, 4},
		{"hardly a core is left", 8, 1, 0.1, 2, 0, 7},
		{"not quite one core more", 2, 1, 1.13, 0.93, 0.3, 1},
		{"one core more", 2, 2, 1.2, 0.93, 0.4, 1},
	} {
		m := pretend(c.own)
		m.others = c.others
		require.Equal(t, c.own, m.pass(crowdEvery, c.ran, c.waited, c.idle), "%s: not before the end of a window", c.name)
		require.Equal(t, c.want, m.pass(crowdEvery, c.ran, c.waited, c.idle), c.name)
	}
}

// crowded returns a server of two processors that has given one up.
func crowded(t *testing.T) *pretended {
	m := pretend(2)
	require.Equal(t, 1, m.passUntil(1, 2*crowdEvery, 0.9, 0.9, 0.1))
	require.Equal(t, beatEvery, m.beats.get())
	require.Equal(t, 1, m.pass(time.Minute, 0.95, 0.05, 0.1), "nobody stands in line any more")
	return m
}

// The processors come back when they are of use again, or have been of none.
func TestProcessorsComeBack(t *testing.T) {
	m := crowded(t)
	require.Equal(t, 2, m.pass(crowdEvery, 0.98, 0, 0.9), "a core is free, and the server needs it")
	require.Zero(t, m.beats.get())

	m = crowded(t)
	require.Equal(t, 1, m.pass(time.Minute, 0.6, 0.5, 0), "it stands in line, but so it would with more")
	m.others = 3
	require.Equal(t, 1, m.pass(crowdEvery, 0.6, 0.5, 0), "more strangers, for a moment")
	m.others = 1
	require.Equal(t, 1, m.pass(time.Minute, 0.9, 0, 0.1))
	m.others = 3
	require.Equal(t, 2, m.pass(2*othersWindows*crowdEvery, 0.6, 0.5, 0), "more strangers")
	require.Zero(t, m.beats.get())

	m = crowded(t)
	require.Equal(t, 1, m.pass(time.Minute, 0.4, 0, 0.6), "a core is free, but the server has enough")
	m.onDisk, m.faults = true, coldPages
	require.Equal(t, 3, m.pass(processorsEvery, 0.9, 0, 0.1), "pages are cold")
	require.Zero(t, m.beats.get())
}

// In a pause of the clients the number stays for a minute. The beat ends before that.
func TestAPauseKeepsTheNumber(t *testing.T) {
	m := crowded(t)
	require.Equal(t, 1, m.pass(deafAfter, 0.01, 0, 1))
	require.Equal(t, beatEvery, m.beats.get())
	require.Equal(t, 1, m.beatFor(deafAfter, beatEvery+beatSlack+100*time.Microsecond), "some of them a little late")
	require.Equal(t, 1, m.pass(forgetAfter-2*deafAfter, 0.01, 0, 1))
	require.Zero(t, m.beats.get())
	asked := m.asked
	require.Equal(t, 1, m.pass(forgetAfter/2, 0.9, 0, 0.2), "they have come back in time")
	require.Equal(t, beatEvery, m.beats.get())
	require.Greater(t, m.asked, asked)
	require.Equal(t, 2, m.pass(forgetAfter+processorsEvery, 0.01, 0, 1))
	require.Zero(t, m.beats.get())
}

// A checkpoint has a processor more while it works, and a moment longer, whatever the windows say,
// and late beats of the time before count no longer.
func TestACheckpointHasAProcessorMore(t *testing.T) {
	m := crowded(t)
	work := func(change int) {
		m.work(change)
		select {
		case <-m.begins:
			m.attend(m.now)
		default:
		}
		if change < 0 {
			m.worked.Store(m.now.UnixNano())
		}
	}
	work(1)
	require.Equal(t, 2, m.number)
	require.Equal(t, 2, m.pass(time.Minute, 1.6, 0.9, 0))
	require.Zero(t, m.beats.get())
	work(1)
	require.Equal(t, 2, m.number, "no more than there are cores")
	work(-1)
	work(-1)
	require.Equal(t, 2, m.pass(worksOn-processorsEvery, 0.9, 0, 0.1))
	require.Equal(t, 1, m.pass(2*processorsEvery, 0.9, 0, 0.1))
	require.Equal(t, beatEvery, m.beats.get())
	require.Equal(t, 1, m.beatFor(1, 2*beatsLate), "the first beat has none before it")

	var none *processors
	none.work(1)

	m = pretend(2)
	work(1)
	require.Equal(t, 2, m.pass(time.Minute, 0.9, 0.9, 0.1), "nothing is given up meanwhile")

	m = pretend(8)
	m.others = 5
	require.Equal(t, 2, m.passUntil(2, 2*crowdEvery, 0.9, 0.9, 1.5))
	work(1)
	require.Equal(t, 3, m.pass(time.Minute, 1.5, 0, 3), "it has enough")
	require.Equal(t, 8, m.pass(2*crowdEvery, 2.95, 0, 3), "it needs more")
}

// When strangers have gone, a server of many processors has more of them again, although it never
// used all that it had to the full.
func TestStrangersGo(t *testing.T) {
	m := pretend(8)
	m.others = 5
	require.Equal(t, 3, m.passUntil(3, 2*crowdEvery, 2.5, 1, 0.5))
	require.Equal(t, 3, m.pass(time.Minute, 2.7, 0, 0.5))
	m.others = 0
	require.Equal(t, 3, m.pass(time.Minute, 1.5, 0, 6), "it has enough")
	require.Greater(t, m.pass(2*othersWindows*crowdEvery, 2.7, 0, 5), 6)

	m = pretend(8)
	m.others = 5
	require.Equal(t, 3, m.passUntil(3, 2*crowdEvery, 2.5, 1, 0.5))
	m.others = 0
	m.work(1)
	require.Greater(t, m.pass(4*othersWindows*crowdEvery, 3.5, 0, 4), 4, "while a checkpoint works, too")
}

// A server that waits awake for news has no use for more processors.
func TestVigilsBringNoProcessorsBack(t *testing.T) {
	m := crowded(t)
	for range 100 {
		m.sum.awake += processorsEvery / 3
		require.Equal(t, 1, m.pass(processorsEvery, 1, 0, 0.6))
	}
}

// The server tries again, after longer and longer rests, and after a short one when fewer
// processors have been right for a while.
func TestAttemptsBecomeRare(t *testing.T) {
	m := pretend(2)
	attempts := func(d time.Duration) (n int) {
		for end, last := m.now.Add(d), m.number; m.now.Before(end); last = m.number {
			if m.number == 1 {
				m.others = 3 // whenever the server gives a processor up
			} else {
				m.others = 1
			}
			if m.pass(processorsEvery, 0.9, 0.9, 0) < last {
				n++
			}
		}
		return n
	}
	require.Equal(t, 4, attempts(2*time.Minute)) // after 0, 10, 31 and 71 s
	require.LessOrEqual(t, attempts(time.Hour), 14)

	m.others = 1
	require.Equal(t, 1, m.passUntil(1, mostRest, 0.9, 0.9, 0))
	require.Equal(t, 1, m.pass(2*helpedFor, 0.9, 0, 0))
	m.others = 3
	require.Equal(t, 2, m.pass(2*othersWindows*crowdEvery, 0.9, 0.9, 0))
	m.others = 1
	require.Equal(t, 1, m.passUntil(1, leastRest+crowdEvery, 0.9, 0.9, 0))
}

// A request that keeps the only processor makes the beats late, and another processor comes.
func TestLateBeatsBringTheProcessorsBack(t *testing.T) {
	m := crowded(t)
	const late = beatEvery + beatSlack + beatsLate/2
	require.Equal(t, 1, m.beatFor(10*beatEvery, beatEvery))
	require.Equal(t, 1, m.beatFor(time.Second, beatEvery+beatSlack), "a round of a leader comes first")
	require.Equal(t, 1, m.beatFor(1, late), "one long break is no reason")
	require.Equal(t, 1, m.pass(crowdEvery, 0.9, 0, 0.1))
	require.Equal(t, 1, m.beatFor(1, 2*beatsLate), "the first beat of a window has none before it")
	require.Equal(t, 1, m.beatFor(1, late))
	require.Equal(t, 2, m.beatFor(1, late))
	require.Zero(t, m.beats.get())
	require.Equal(t, 2, m.beatFor(time.Second, time.Second), "nobody listens now")
	require.Equal(t, 2, m.pass(crowdEvery, 0.9, 0.9, 0.1), "the server rests first")
	require.Equal(t, 1, m.passUntil(1, leastRest, 0.9, 0.9, 0.1))
}

func TestWithoutFiguresTheNumberIsTheUsualOne(t *testing.T) {
	m := pretend(2)
	m.err = errors.New("no figures")
	require.Equal(t, 2, m.pass(time.Minute, 0.9, 0.9, 0))

	m = crowded(t)
	m.err = errors.New("no more descriptors")
	require.Equal(t, 2, m.pass(processorsEvery, 0.9, 0, 0.1), "or the usual one comes back")
	m.err = nil
	require.Equal(t, 2, m.pass(leastRest-crowdEvery, 0.9, 0.9, 0.1))
	require.Equal(t, 1, m.passUntil(1, 3*crowdEvery, 0.9, 0.9, 0.1))
}

// The numbers follow Go's own choice, which returns without a change.
func TestTheNumberOfProcessors(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.SetDefaultGOMAXPROCS()
	own := runtime.GOMAXPROCS(0)
	for range 2 {
		useProcessors(true, 0)
		require.Equal(t, own+max(1, own/4), runtime.GOMAXPROCS(0))
		useProcessors(false, 1)
		require.Equal(t, max(1, own-1), runtime.GOMAXPROCS(0))
		useProcessors(false, own)
		require.Equal(t, 1, runtime.GOMAXPROCS(0))
		useProcessors(false, 0)
		require.Equal(t, own, runtime.GOMAXPROCS(0))
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	before := usageSoFar()
	require.Eventually(t, func() bool { return usageSoFar().ran > before.ran }, 10*time.Second, time.Microsecond)
	require.GreaterOrEqual(t, before.faults, int64(0))
}

// A server that nobody uses reads no figures of its threads.
func TestAQuietServerReadsNoFigures(t *testing.T) {
	m := pretend(2)
	m.pass(time.Minute, 0.01, 0.9, 0)
	require.LessOrEqual(t, m.asked, 1)
	require.Equal(t, 1, m.passUntil(1, 2*crowdEvery, 0.9, 0.9, 0.1))
}
