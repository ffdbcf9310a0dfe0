package ulog

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// yields returns how many of n leaders yield whose groups have so many batches.
func (c *company) yields(n, batches int) (yields int) {
	for range n {
		if c.expected() {
			yields++
		}
		c.came(batches)
	}
	return yields
}

func TestALeaderYieldsWhereGroupsAreShared(t *testing.T) {
	var c company
	require.Equal(t, 10, c.yields(10*lookEvery, 1), "alone: now and then")
	require.LessOrEqual(t, c.yields(1, 2), 1)
	require.Equal(t, 100, c.yields(100, 2), "in company: always")
	require.Equal(t, hopeFor, c.yields(hopeFor, 1), "groups are shared by chance")
	require.Equal(t, 1, c.yields(lookEvery, 1), "alone again")
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
