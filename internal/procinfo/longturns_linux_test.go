package procinfo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// turn returns the length of the turns of the caller's thread.
func turn(t *testing.T) uint64 {
	attr, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	return attr.Runtime
}

func TestOneThreadTakesLongTurns(t *testing.T) {
	usual, long, ended := turn(t), make(chan uint64), make(chan struct{})
	go func() {
		defer close(ended)
		TakeLongTurns()
		long <- turn(t)
		child := make(chan uint64)
		go func() { child <- turn(t) }()
		long <- <-child
	}()
	if taken := <-long; usual == 0 {
		t.Log("this system has no turns of its own length for a thread")
	} else {
		require.Equal(t, uint64(longTurn), taken)
	}
	require.Equal(t, usual, <-long, "the goroutines that it starts have the usual turns")
	<-ended
	require.Equal(t, usual, turn(t))
}
