package netio_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/internal/netio"
)

// sending returns a connection whose client sends n bytes and then nothing.
func sending(t *testing.T, l *netio.Limits, n int) *netio.Conn {
	t.Helper()
	server, client := sockets(t)
	go func() { _, _ = client.Write(bytes.Repeat([]byte("x"), n)) }()
	c := netio.New(server, netio.NewPool(), limited(l))
	require.NoError(t, c.WaitByte())
	return c
}

func TestARequestHoldsTwiceItsSizeAndGivesItBack(t *testing.T) {
	var l netio.Limits
	l.SetBudget(64 << 20)
	c := sending(t, &l, 5<<20+100)
	require.NoError(t, c.Need(5<<20))
	require.EqualValues(t, 10<<20, l.Held())
	c.Advance(5 << 20)
	require.NoError(t, c.Need(100))
	require.NoError(t, c.WaitByte())
	require.Zero(t, l.Held(), "the buffer of a large request does not wait for the next one")
	require.Len(t, c.Buffered(), 100)
	c.Close()
	require.Zero(t, l.Held())
}

// What a client declares is looked at before a byte of it is read; what counts is what has come.
func TestDeclaredSizesAreAdmittedAndArrivedBytesCount(t *testing.T) {
	var l netio.Limits
	l.SetBudget(64 << 20)
	c := sending(t, &l, 1000)
	require.ErrorIs(t, c.Need(30<<20), netio.ErrTooLarge, "three quarters of the budget are 48 MiB")
	require.ErrorIs(t, c.Need(1<<40), netio.ErrTooLarge)
	require.Len(t, c.Buffered(), 1000, "nothing more has been read")
	require.Zero(t, l.Held())
	require.True(t, l.Reserve(40<<20, false))
	require.ErrorIs(t, c.Need(20<<20), netio.ErrBusy)
	l.Release(40 << 20)
	c.Close()

	half := sending(t, &l, 3<<20)
	done := make(chan error, 1)
	go func() { done <- half.Need(20 << 20) }()
	require.Eventually(t, func() bool { return l.Held() == 2*(20<<20) }, 30*time.Second, time.Millisecond, "held=%d", l.Held())
	half.Cut()
	require.Error(t, <-done)
	half.Close()
	require.Zero(t, l.Held())
	require.EqualValues(t, 2, l.Denied(), "a size that no request may have is not for want of memory")
}

func TestLargeRequestsLeaveRoomForSmallOnes(t *testing.T) {
	var l netio.Limits
	l.SetBudget(1 << 20)
	large, other, small := sending(t, &l, 1), sending(t, &l, 1), sending(t, &l, 60<<10)
	require.NoError(t, large.Hold(700<<10))
	require.ErrorIs(t, large.Hold(100<<10), netio.ErrTooLarge, "nobody may take all")
	require.NoError(t, other.Hold(320<<10))
	require.ErrorIs(t, other.Hold(8<<10), netio.ErrBusy)
	require.NoError(t, small.Need(60<<10), "a small request has a reserve")
	small.Close()
	other.Close()

	l.SetClosed(true)
	require.ErrorIs(t, sending(t, &l, 1).Need(100<<10), netio.ErrBusy)
	small = sending(t, &l, 60<<10)
	require.NoError(t, small.Need(60<<10))
	small.Close()
	large.Close()
	require.Zero(t, l.Held())
}

func TestTheLargestRequest(t *testing.T) {
	var l netio.Limits
	l.SetBudget(64 << 20)
	l.SetLargest(100 << 10)
	c := sending(t, &l, 200<<10)
	require.ErrorIs(t, c.Need(110<<10), netio.ErrTooLarge)
	var err error
	for err == nil {
		err = c.Fill()
	}
	require.ErrorIs(t, err, netio.ErrTooLarge, "a request that does not tell its size")
	c.Close()
	require.Zero(t, l.Held())
}

func TestWhatIsKeptOutlivesTheRequest(t *testing.T) {
	var l netio.Limits
	l.SetBudget(1 << 20)
	c := sending(t, &l, 2)
	require.NoError(t, c.Keep(100))
	require.NoError(t, c.Hold(1000))
	c.Advance(1)
	require.NoError(t, c.WaitByte())
	require.EqualValues(t, 100, l.Held())
	require.NoError(t, c.Keep(-40))
	require.ErrorIs(t, c.Keep(2<<20), netio.ErrBusy)
	require.EqualValues(t, 60, l.Held())
	c.Close()
	require.Zero(t, l.Held())
}

func TestWhatIsAppendedIsHeldBeforeItIsMade(t *testing.T) {
	var l netio.Limits
	l.SetBudget(4 << 20)
	c := sending(t, &l, 1)
	var text []byte
	var err error
	held := 0
	piece := make([]byte, 1000)
	for err == nil {
		text, err = c.Append(text, &held, piece, piece)
		require.EqualValues(t, held, l.Held())
		require.GreaterOrEqual(t, held, len(text))
	}
	require.ErrorIs(t, err, netio.ErrTooLarge)
	require.LessOrEqual(t, cap(text), 3<<20)
	require.Greater(t, len(text), 1<<19)
	c.Close()
	require.Zero(t, l.Held())
}
