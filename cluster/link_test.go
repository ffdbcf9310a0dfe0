package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/cluster/election"
)

// tries is a mesh of whose one link each try to connect fails, or succeeds as a test wants.
type tries struct {
	*mesh
	n   atomic.Int64
	err atomic.Pointer[error]
	log bytes.Buffer // one link writes it
}

func newTries(t *testing.T, err error) *tries {
	d := &tries{}
	d.err.Store(&err)
	d.mesh = newMesh(func(context.Context, string) (net.Conn, error) {
		d.n.Add(1)
		return nil, *d.err.Load()
	}, slog.New(slog.NewTextHandler(&d.log, nil)))
	d.mesh.link("b")
	t.Cleanup(d.mesh.close)
	return d
}

// in returns how often the link tries to connect in a time.
func (d *tries) in(long time.Duration) int64 {
	before := d.n.Load()
	time.Sleep(long) //lint:sleep the clock of the test is a fake one
	synctest.Wait()
	return d.n.Load() - before
}

var (
	errRefused = errors.New("another secret")
	errDead    = error(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
)

// A member that lets us not in is asked again and again by all others: each try is a handshake, and
// perhaps a line in its log.
func TestAMemberThatRefusesIsAskedLessAndLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTries(t, errRefused)
		d.in(10 * time.Second)
		require.LessOrEqual(t, d.in(time.Minute), int64(31))
		require.Equal(t, 1, strings.Count(d.log.String(), "cannot be reached: another secret"), d.log.String())
	})
}

// A member that is away may be back any moment, and an election may wait for it.
func TestAMemberThatIsAwayIsLookedForAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTries(t, errDead)
		require.GreaterOrEqual(t, d.in(time.Minute), int64(550))
		require.Equal(t, 1, strings.Count(d.log.String(), "b cannot be reached: connection refused"), d.log.String())
		d.err.Store(&errRefused)
		d.in(time.Minute)
		d.err.Store(&errDead)
		d.in(longPause)
		require.GreaterOrEqual(t, d.in(time.Minute), int64(550), "after refusals")
	})
}

// A server that refused because it was just starting is a member again as soon as it says so.
func TestAMemberThatConnectsIsConnectedToAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTries(t, errRefused)
		d.in(time.Minute + time.Millisecond)
		here, there := net.Pipe()
		defer here.Close()
		require.Zero(t, d.in(10*time.Millisecond))
		d.accept("b", there)
		require.Equal(t, int64(1), d.in(time.Millisecond))
	})
}

func TestLinksToFormerMembersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTries(t, errDead)
		others := []election.Member{{Name: "a"}, {Name: "c"}}
		d.keep(append(others, election.Member{Name: "b"}))
		require.NotZero(t, d.in(time.Minute))
		d.Send(election.Member{Name: "b"}, []byte("you were removed"))
		d.keep(others)
		require.NotZero(t, d.in(linkIdle+time.Second), "there may be an answer to be sent")
		d.keep(others)
		d.in(time.Second)
		require.Zero(t, d.in(time.Minute))
		require.Empty(t, d.unreached("b"))
		d.Send(election.Member{Name: "b"}, []byte("welcome"))
		require.NotZero(t, d.in(time.Minute), "it is a member again")
	})
}

// An order that cannot be carried out says why the member that it needs is not there.
func TestACallSaysWhyTheMemberIsNotReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTries(t, errDead)
		synctest.Wait()
		err := d.call(t.Context(), "b", callStatus, nil, new(Status))
		require.ErrorIs(t, err, errAway)
		require.EqualError(t, err, "b: the member cannot be reached: connection refused")
	})
}

// Texts of errors that differ from one try to the next would be told each time.
func TestTheErrorsOfALinkAreTheSameEachTime(t *testing.T) {
	for text, err := range map[string]error{
		"connection refused":                   errDead,
		"no answer within 1s":                  context.DeadlineExceeded,
		"the name x is unknown (no such host)": &net.OpError{Op: "dial", Err: &net.DNSError{Name: "x", Err: "no such host", Server: "1.2.3.4:5"}},
		"another secret":                       fmt.Errorf("opening a connection to b: %w", errRefused),
	} {
		require.Equal(t, text, plainly(err))
	}
}

// A takeover asks all members. It must not wait for one that is just stopping.
func TestNobodyWaitsForAMemberThatEndsConnectionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(func(context.Context, string) (net.Conn, error) {
			here, there := net.Pipe()
			return here, there.Close()
		}, slog.New(slog.DiscardHandler))
		defer m.close()
		m.link("b")
		for range 20 {
			time.Sleep(33 * time.Millisecond) //lint:sleep the clock of the test is a fake one
			synctest.Wait()
			began := time.Now()
			require.ErrorIs(t, m.call(t.Context(), "b", callStatus, nil, new(Status)), errAway)
			require.Zero(t, time.Since(began))
		}
	})
}
