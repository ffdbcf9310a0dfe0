package lock

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a session causes itself stays behind what others have left with it.
func TestOwnLinesFollowWhatOthersHaveLeft(t *testing.T) {
	tb := newTable(bounds{keys: 9, names: 1 << 10, waiters: 9, expires: 9}, nil)
	a, b := &step{by: &session{push: func() {}}}, &step{by: &session{push: func() {}}}
	once, forEver := wish{max: 1, expires: 9}, wish{max: 1, timeout: -1, expires: 9}
	tb.lock(a, []byte("k"), once)
	tb.lock(b, []byte("other"), once)
	tb.lock(b, []byte("k"), forEver)
	tb.release(a, []byte("k"))
	tb.release(b, []byte("k"))
	tb.release(b, []byte("other"))
	require.Equal(t, "GRANTED 1 0 other 9\nGRANTED 1 0 k 9\nRELEASED 0 0 k\nRELEASED 0 0 other\n", string(b.by.own)+string(b.by.lines))
	require.Equal(t, len(b.by.own)+len(b.by.lines), b.by.gathered())
}

// A session finds its request among few and among many, and when the many have become few again.
func TestARequestIsFoundAmongFewAndMany(t *testing.T) {
	const sessions = 5 * many
	tb := newTable(bounds{keys: 9, names: 1 << 20, waiters: sessions, expires: 9}, nil)
	steps := make([]step, sessions)
	for i := range steps {
		steps[i].by = &session{address: fmt.Sprint(i)}
		tb.lock(&steps[i], []byte("k"), wish{max: 1, timeout: -1, expires: 9})
	}
	k := tb.shard([]byte("k")).keys["k"]
	for i := range steps {
		for j := range steps {
			r := k.find(steps[j].by)
			require.Equal(t, j >= i, r != nil, "%d after %d", j, i)
			require.True(t, r == nil || r.session == steps[j].by)
		}
		tb.release(&steps[i], []byte("k"))
	}
	require.Empty(t, tb.shard([]byte("k")).keys)
	require.Nil(t, k.index)
	require.Zero(t, tb.names.Load())
}
