package replication

import (
	"bytes"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newIntake returns an intake and the other end of its connection.
func newIntake(t *testing.T, limit time.Duration) (*intake, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() {
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
	})
	return &intake{socket: near, limit: limit}, far
}

// What is larger than the buffer arrives whole, and what lies behind it too; afterwards the buffer
// is small again.
func TestIntakeTakesLargeMessages(t *testing.T) {
	in, far := newIntake(t, time.Minute)
	large := bytes.Repeat([]byte("0123456789abcdef"), 5*intakeKept/16)
	small := bytes.Repeat([]byte("small"), 100_000)
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(far, io.MultiReader(bytes.NewReader(large), bytes.NewReader(small)))
		sent <- err
	}()
	for len(in.buffered()) < len(large) {
		require.NoError(t, in.fill())
	}
	require.Equal(t, large, in.buffered()[:len(large)])
	require.Less(t, len(in.buf), 3*len(large))
	in.advance(len(large))
	var rest []byte
	for len(rest) < len(small) {
		rest = append(rest, in.buffered()...)
		in.advance(len(in.buffered()))
		if len(rest) < len(small) {
			require.NoError(t, in.fill())
		}
	}
	require.Equal(t, small, rest)
	require.NoError(t, <-sent)
	require.Len(t, in.buf, intakeSize)
}

// Unread bytes stay where a message is cut in two, however often.
func TestIntakeKeepsUnreadBytes(t *testing.T) {
	in, far := newIntake(t, time.Minute)
	go func() {
		all := make([]byte, 3*intakeSize)
		for i := range all {
			all[i] = byte(i)
		}
		for piece := range slices.Chunk(all, 61) {
			if _, err := far.Write(piece); err != nil {
				return
			}
		}
	}()
	next := 0
	for next+3 < 3*intakeSize {
		for len(in.buffered()) < 3 {
			require.NoError(t, in.fill())
		}
		require.Equal(t, []byte{byte(next), byte(next + 1)}, in.buffered()[:2])
		in.advance(2)
		next += 2
	}
}

// Answers leave before the next bytes are waited for, and silence has an end.
func TestIntakeSendsBeforeItWaits(t *testing.T) {
	in, far := newIntake(t, 2*time.Second)
	in.out = append(in.out, "answer"...)
	got := make(chan string, 1)
	go func() {
		p := make([]byte, len("answer"))
		_, _ = io.ReadFull(far, p)
		got <- string(p)
	}()
	require.ErrorIs(t, in.fill(), os.ErrDeadlineExceeded)
	require.Equal(t, "answer", <-got)
	require.Empty(t, in.out)
}
