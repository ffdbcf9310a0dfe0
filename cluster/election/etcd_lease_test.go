package election

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A slowEtcd is a network on which time passes while an answer is on its way, and a clock.
type slowEtcd struct {
	mu    sync.Mutex
	ahead time.Duration
	slow  bool          // the next answer takes long
	late  chan struct{} // closed when that answer has come; there are no answers after it
}

func (s *slowEtcd) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

func (s *slowEtcd) AfterFunc(time.Duration, func()) func() { return func() {} }

func (s *slowEtcd) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	slow, late := s.slow, s.late
	s.mu.Unlock()
	if late != nil && !slow {
		select {
		case <-late:
			return nil, errCut
		default:
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if slow && err == nil {
		s.mu.Lock()
		s.ahead, s.slow = s.ahead+time.Hour, false
		close(late)
		s.mu.Unlock()
	}
	return resp, err
}

// The leader's beat arrives, and it sees the answer an hour later. The lease was over long before.
func TestALeaseOfEtcdCountsFromTheBeat(t *testing.T) {
	t.Parallel()
	s := &slowEtcd{}
	e, err := OpenEtcd(EtcdConfig{
		Endpoints: []string{startEtcd(t)}, Prefix: "/p", Cluster: "test", Name: "a",
		Members: []Member{{Name: "a"}}, Clock: s, transport: s,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	term := awaitLease(t, e)
	s.mu.Lock()
	s.slow, s.late = true, make(chan struct{})
	late := s.late
	s.mu.Unlock()
	_ = e.beat(term, e.mine) // e.mine stays as it is in a term
	<-late
	lease, _ := e.Lease()
	require.Zero(t, lease)
}

// During a transfer this member has no lease and does not take the leadership back; after a transfer
// that failed it does, with another term.
func TestATransferByEtcdGivesUpTheLease(t *testing.T) {
	t.Parallel()
	e, err := OpenEtcd(EtcdConfig{
		Endpoints: []string{startEtcd(t)}, Prefix: "/p", Cluster: "test", Name: "a",
		Members: []Member{{Name: "a"}, {Name: "b"}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	began := awaitLease(t, e)
	term, mine, err := e.beginTransfer("b")
	require.NoError(t, err)
	require.GreaterOrEqual(t, term, began)
	require.NoError(t, e.handOver(t.Context(), term, mine, "b"))
	for range 5 {
		lease, _ := e.Lease()
		require.Zero(t, lease)
		_, leads := e.Leading()
		require.False(t, leads)
		_ = e.watch()
	}
	require.ErrorIs(t, e.Propose(t.Context(), term, add), ErrNotLeading)
	e.endTransfer()
	require.Greater(t, awaitLease(t, e), term)
}

// What an answer of etcd to a change means, when the leadership was lost meanwhile.
func TestWhatBecameOfAChange(t *testing.T) {
	text := func(v uint64) []byte {
		b, err := json.Marshal(State{Version: v})
		require.NoError(t, err)
		return b
	}
	for _, c := range []struct {
		leaderMod int64
		state     uint64
		unknown   bool
		want      error
	}{
		{leaderMod: 5, state: 2, want: nil},
		{leaderMod: 9, state: 2, want: nil}, // committed before the leadership was lost
		{leaderMod: 5, state: 3, want: errSuperseded},
		{leaderMod: 9, state: 3, want: ErrNotLeading},
		{leaderMod: 9, state: 3, unknown: true, want: ErrUnknown}, // committed, then changed, or not
	} {
		clock := realClock{}
		e := &Etcd{board: newBoard(clock), keys: etcdKeys{leader: []byte("l"), state: []byte("s")}}
		e.cfg.Clock, e.leads, e.mine = clock, true, 5
		reply := &etcdTxnReply{}
		reply.Responses = append(reply.Responses, struct {
			Range *etcdRangeReply `json:"response_range"`
		}{&etcdRangeReply{KVs: []etcdKV{
			{Key: e.keys.leader, Value: []byte("{}"), Mod: c.leaderMod},
			{Key: e.keys.state, Value: text(c.state), Mod: 7},
		}}})
		require.Equal(t, c.want, e.written(reply, 5, text(2), c.unknown), "%+v", c)
		require.Equal(t, c.leaderMod == 5, e.leads)
	}
}
