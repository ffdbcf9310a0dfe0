package tlsport

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLinesAreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seldom{burst: 2}
		for range 2 {
			also, write := s.now()
			require.True(t, write)
			require.Empty(t, also)
		}
		for range 3 {
			_, write := s.now()
			require.False(t, write)
		}
		<-time.After(lineEvery)
		also, write := s.now()
		require.True(t, write)
		require.Equal(t, " (and 3 more like this since the last line)", also)
		_, write = s.now()
		require.False(t, write)
		<-time.After(10 * lineEvery)
		for _, want := range []bool{true, true, false} {
			_, write := s.now()
			require.Equal(t, want, write)
		}
	})
}
