package replication

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gotycoon/client/wire/frame"
	"gotycoon/ulog"
)

// outsider returns what the stream to a slave heeds, on a server whose log has single updates behind
// the stamp 500, which follow the stamp 300 of the primary's. The primary of a term has the log 7.
func outsider(t *testing.T, f frame.Follow, partial bool, term uint64) (*outside, error) {
	t.Helper()
	log, err := ulog.Open(t.TempDir(), ulog.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	s := NewSource(SourceOptions{
		Log: log, Quorum: NewQuorum(QuorumOptions{Log: log}), Term: func() uint64 { return term },
		Made:    func() func(log, stamp uint64) bool { return func(log, _ uint64) bool { return log == 7 } },
		Lineage: func() Lineage { return Lineage{Base: Base{Log: 7, At: 300, Own: 500}, Partial: partial} },
		Follows: func() uint64 { return 1 }, Lost: func() func(log, stamp uint64) bool { return func(uint64, uint64) bool { return false } },
	})
	return s.strangerTo(false, f)
}

func TestASlaveThatLacksACopyIsRefused(t *testing.T) {
	for _, c := range []struct {
		at      uint64
		partial bool
		from    ulog.Stamp
		why     string
	}{
		{at: 299, why: "up to ts=300 by a copy"},
		{at: 300, from: 500},
		{at: 600, from: 600},
		{at: 600, partial: true, why: "is fetching a copy"},
		{at: 0, from: 0}, // it begins with the log, and gets what the log has
	} {
		f := frame.Follow{TS: c.at, SID: 9}
		o, err := outsider(t, f, c.partial, 0)
		if c.why != "" {
			require.ErrorContains(t, err, c.why)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.from, o.from(f), "ts=%d", c.at)
	}
	o, err := outsider(t, frame.Follow{TS: 1, SID: 9, Flags: frame.Extended}, true, 0)
	require.NoError(t, err, "a server of our kind finds out itself")
	require.Equal(t, ulog.Stamp(1), o.from(frame.Follow{TS: 1}))
}

func TestASlaveIsToldTheStampsOfPrimaries(t *testing.T) {
	o, err := outsider(t, frame.Follow{TS: 300}, false, 0)
	require.NoError(t, err)
	o.begun = 800
	for _, c := range []struct {
		own    ulog.Stamp
		origin ulog.Origin
		told   ulog.Stamp
		copied bool
	}{
		{600, ulog.Origin{Log: 7, Stamp: 310}, 310, false},
		{600, ulog.Origin{}, 600, false},                   // made here, in a term of this server
		{600, ulog.Origin{Log: 8, Stamp: 310}, 600, false}, // from before the cluster
		{400, ulog.Origin{Log: 7, Stamp: 290}, 290, false},
		{400, ulog.Origin{Log: 8, Stamp: 310}, 299, false}, // of the copy
		{900, ulog.Origin{Log: 7, Stamp: 310}, 310, false},
		{900, ulog.Origin{Log: 8, Stamp: 310}, 900, true}, // a copy since the stream began
	} {
		e := ulog.Entry{Stamp: c.own, Origin: c.origin}
		require.Equal(t, c.told, o.told(e), "%+v", c)
		require.Equal(t, c.copied, o.copied(e), "%+v", c)
	}
}

func TestOnlyThePrimaryPromisesLaterStamps(t *testing.T) {
	o, err := outsider(t, frame.Follow{TS: 300}, false, 0)
	require.NoError(t, err)
	require.Equal(t, ulog.Stamp(9), o.promises(true, 9))
	require.Zero(t, o.promises(false, 9))
	o.held = &ulog.Entry{Stamp: 8}
	require.Zero(t, o.promises(true, 9), "an update in hand is not confirmed")
	require.Equal(t, ulog.Stamp(9), (*outside)(nil).promises(false, 9), "without a cluster")
}

// A former primary has updates that the cluster goes on without, until they are put aside. Slaves
// outside of the cluster must not get them meanwhile.
func TestAFormerPrimaryFeedsNobodyWhatItAloneHas(t *testing.T) {
	log, err := ulog.Open(t.TempDir(), ulog.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	term, follows := uint64(1), uint64(0)
	own := ulog.LogKey(log.ID())
	q := NewQuorum(QuorumOptions{Log: log, Always: true, Required: 1})
	s := NewSource(SourceOptions{
		Log: log, Quorum: q, Term: func() uint64 { return term }, Follows: func() uint64 { return follows },
		Made:    func() func(log, stamp uint64) bool { return func(log, _ uint64) bool { return log == own } },
		Lost:    func() func(log, stamp uint64) bool { return func(log, _ uint64) bool { return log == own } },
		Lineage: func() Lineage { return Lineage{} },
	})
	o, err := s.strangerTo(false, frame.Follow{TS: 1, SID: 9})
	require.NoError(t, err)
	r, err := log.NewReader(1)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	at, err := log.Append([]ulog.Update{{SID: 1, Op: ulog.OpSet, Key: []byte("alone"), Value: []byte("1")}})
	require.NoError(t, err)
	require.NoError(t, log.Wait(at))
	_, err = o.next(r)
	require.ErrorIs(t, err, io.EOF, "no follower has it")
	term = 0
	q.SetRequired(0) // as a primary that steps down
	_, err = o.next(r)
	require.ErrorIs(t, err, errEnded)
	_, err = s.strangerTo(false, frame.Follow{TS: 1, SID: 9})
	require.ErrorIs(t, err, errUndecided)
	follows = 2
	o, err = s.strangerTo(false, frame.Follow{TS: 1, SID: 9}) // it has come back
	require.NoError(t, err)
	require.NoError(t, r.Close())
	r, err = log.NewReader(1)
	require.NoError(t, err)
	_, err = o.next(r)
	require.ErrorIs(t, err, errEnded, "the next primary has not got it")
	term, follows = 3, 0
	_, err = o.next(r)
	require.NoError(t, err, "this server was elected again, with all that it has")
}
