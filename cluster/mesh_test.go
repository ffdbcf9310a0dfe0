package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gotycoon/cluster/election"
	"gotycoon/internal/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair are two meshes; b is away until it is there.
type pair struct {
	a, b *mesh
	mu   sync.Mutex
	away bool
	open []net.Conn
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{}
	p.b = newMesh(func(context.Context, string) (net.Conn, error) { return nil, errAway }, slog.New(slog.DiscardHandler))
	p.a = newMesh(func(context.Context, string) (net.Conn, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.away {
			return nil, errors.New("away")
		}
		here, there := net.Pipe()
		p.open = append(p.open, here)
		p.b.accept("a", there)
		return here, nil
	}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		p.a.close()
		p.b.close()
	})
	return p
}

func (p *pair) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

func TestCallsAreAnsweredByTheMemberThatIsAsked(t *testing.T) {
	p := newPair(t)
	p.b.handle = func(from, method string, body json.RawMessage) (any, error) {
		if method == "fail" {
			return nil, errors.New("for a reason")
		}
		return from + " asks " + method + string(body), nil
	}
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			var answer string
			if err := p.a.call(t.Context(), "b", "x", 7, &answer); err != nil || answer != "a asks x7" {
				t.Error(err, answer)
			}
		})
	}
	asking.Wait()
	require.EqualError(t, p.a.call(t.Context(), "b", "fail", nil, new(string)), "b: for a reason")
}

func TestNobodyWaitsForAMemberThatIsAway(t *testing.T) {
	p := newPair(t)
	asked, free := make(chan struct{}, 1), make(chan struct{})
	p.b.handle = func(string, string, json.RawMessage) (any, error) {
		select {
		case asked <- struct{}{}:
		default: // a call that was made while the connection was cut has come through
		}
		<-free
		return nil, nil
	}
	ended := make(chan error, 1)
	go func() { ended <- p.a.call(context.Background(), "b", "x", nil, new(any)) }()
	<-asked
	p.cut(true)
	require.Error(t, <-ended, "the connection has ended before the answer")
	close(free)
	require.Eventually(t, func() bool { return errors.Is(p.a.call(context.Background(), "b", "x", nil, new(any)), errAway) }, 10*time.Second, time.Millisecond)
	p.cut(false)
	require.Eventually(t, func() bool { return p.a.call(t.Context(), "b", "x", nil, new(any)) == nil }, 10*time.Second, time.Millisecond)
}

// A member that has just started may be handed the leadership, and asks for it once.
func TestTheFirstMessageOfTheElectorArrives(t *testing.T) {
	p := newPair(t)
	came := make(chan string, 1)
	p.b.take = func(from string, msg []byte) { came <- from + ": " + string(msg) }
	p.a.Send(election.Member{Name: "b"}, []byte("vote"))
	select {
	case msg := <-came:
		require.Equal(t, "a: vote", msg)
	case <-time.After(10 * time.Second):
		t.Fatal("the message is lost")
	}
}

func TestMessagesOfTheElectorArrive(t *testing.T) {
	p := newPair(t)
	came := make(chan string, 10_000)
	p.b.take = func(from string, msg []byte) { came <- from + ": " + string(msg) }
	require.Eventually(t, func() bool { // what is sent before there is a connection is dropped
		p.a.Send(election.Member{Name: "b"}, []byte("vote"))
		return len(came) > 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, "a: vote", <-came)
}

// An elector that waits for its disk must not keep calls on the same connection waiting.
func TestCallsAreAnsweredWhileTheElectorWaits(t *testing.T) {
	p := newPair(t)
	began, free := make(chan struct{}, queueSize), make(chan struct{})
	p.b.handle = func(string, string, json.RawMessage) (any, error) { return "", nil }
	p.b.take = func(string, []byte) {
		began <- struct{}{}
		<-free
	}
	t.Cleanup(func() { close(free) }) // before the connections are closed
	require.Eventually(t, func() bool {
		p.a.Send(election.Member{Name: "b"}, []byte("vote"))
		return len(began) > 0
	}, 10*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, p.a.call(ctx, "b", "x", 7, new(string)))
}

func TestAMessageOfAnImpossibleSizeEndsTheConnection(t *testing.T) {
	p := newPair(t)
	here, there := net.Pipe()
	p.b.accept("a", there)
	_, err := here.Write([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(t, err)
	_, err = here.Read(make([]byte, 1))
	require.Error(t, err)
}

func TestASealIsOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	f := termFile{vfs.OS{}, dir, "seal"}
	term, err := f.read()
	require.NoError(t, err)
	require.Zero(t, term)
	require.NoError(t, f.write(7))
	require.NoError(t, f.write(12))
	term, err = f.read()
	require.NoError(t, err)
	require.Equal(t, uint64(12), term)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "seal"), []byte("x"), 0o600))
	_, err = f.read()
	require.ErrorContains(t, err, "remove this member from the cluster")
}

// What waited for a member while it was away is old when it comes back: it may have been removed
// and added again.
func TestOldMessagesAreNotSentToAMemberThatComesBack(t *testing.T) {
	p := newPair(t)
	came := make(chan string, 10_000)
	p.b.take = func(_ string, msg []byte) { came <- string(msg) }
	p.b.handle = func(string, string, json.RawMessage) (any, error) { return nil, nil }
	p.cut(true)
	p.a.Send(election.Member{Name: "b"}, []byte("old"))
	require.Eventually(t, func() bool { return errors.Is(p.a.call(context.Background(), "b", "x", nil, new(any)), errAway) }, 10*time.Second, time.Millisecond)
	p.cut(false)
	require.Eventually(t, func() bool {
		p.a.Send(election.Member{Name: "b"}, []byte("new"))
		return len(came) > 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, "new", <-came)
}
