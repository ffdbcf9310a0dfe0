package netio_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

type epochs struct{ now uint64 }

func (e *epochs) Epoch() uint64        { return e.now }
func (e *epochs) Answers(uint64) error { return nil }

// A connection that was made after the epoch had changed, and before updates were refused, may have
// stored an update that nobody confirms.
func TestACutEndsTheConnectionsOfTheNewEpochToo(t *testing.T) {
	e, l := &epochs{now: 1}, new(netio.Limits)
	l.SetStanding(e)
	e.now++
	server, _ := pipe(t)
	c := netio.New(server, netio.NewPool(), netio.Options{Timeout: time.Minute, Limits: l})
	defer c.Close()
	l.CutAll()
	c.Out = append(c.Out, "stored"...)
	require.Error(t, c.Flush())
}
