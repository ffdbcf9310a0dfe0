package frame_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
)

// The past is behind what earlier versions read, and one that is cut off counts as none.
func TestPastOfAMaster(t *testing.T) {
	h := frame.Hello{SID: 7, Log: [16]byte{1, 2, 3}, First: 4, Last: 5, Databases: 6, Newest: true}
	before := frame.AppendHello(nil, h)
	for _, past := range []*frame.Past{nil, {}, {Master: 1, Position: 2}, {Master: 1, Marks: []frame.Mark{{Log: 3, Stamp: 4}, {Log: 5, Stamp: 6}}}} {
		h.Past = past
		m, n, err := frame.DecodeMessage(frame.AppendHello(nil, h))
		require.NoError(t, err)
		require.Equal(t, len(frame.AppendHello(nil, h)), n)
		got, ok := m.Hello()
		require.True(t, ok)
		require.Equal(t, h, got)
		for cut := len(before); past != nil && cut < n; cut++ {
			m.Log = m.Log[:len(m.Log)-1]
			got, ok = m.Hello()
			require.True(t, ok)
			require.Nil(t, got.Past)
		}
	}
}
