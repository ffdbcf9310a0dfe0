package ulog

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// yields returns how many of n leaders yield, where others come whenever one does, or never.
func (c *company) yields(n int, others bool) (yields int) {
	for range n {
		if c.expected() {
			yields++
			c.came(others)
		}
	}
	return yields
}

func TestALeaderYieldsWhereOthersComeMeanwhile(t *testing.T) {
	var c company
	require.Equal(t, 10, c.yields(10*lookEvery, false), "nobody: now and then")
	require.Equal(t, 1, c.yields(lookEvery, true), "others: it finds out")
	require.Equal(t, 100, c.yields(100, true), "in company: always")
	require.Equal(t, hopeFor, c.yields(hopeFor, false), "they come by chance")
	require.Equal(t, 1, c.yields(lookEvery, false), "nobody again")
}

// A loop of connections appends the updates of many clients and then leads itself: its groups are
// full, and it must not yield for them.
func TestFullGroupsOfOneWriterAreNoCompany(t *testing.T) {
	l, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	for range 10 * lookEvery {
		for range 3 {
			_, err = l.Append(benchUpdates())
			require.NoError(t, err)
		}
		require.NoError(t, l.Wait(l.Last()))
	}
	require.Zero(t, l.writer.company.hope)
	require.NoError(t, l.Close())
}

// On one processor nobody appends while the leader writes, so only a leader that yields learns of
// others.
func TestGroupsAreSharedOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	const writers, each = 8, 200
	o := NewObserver()
	l.Measure(o)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				s, err := l.Append(benchUpdates())
				assert.NoError(t, err)
				assert.NoError(t, l.Wait(s))
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
	groups, _, _ := o.Bytes.Snapshot(1)
	require.Less(t, groups, uint64(writers*each/4))
}
