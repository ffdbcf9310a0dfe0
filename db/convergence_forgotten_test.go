package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"gotycoon/db/dberr"
	"gotycoon/db/filestore"
	"gotycoon/db/record"
	"gotycoon/ulog"
)

// winners returns what everybody has to have in the end, going by what all of them have logged.
func winners(t testing.TB, sites []*site) *history {
	h := &history{records: map[string]written{}}
	for _, s := range sites {
		r, err := s.c.Log().NewReader(0)
		require.NoError(t, err)
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			u, err := ulog.ParseMessage(e.Message)
			require.NoError(t, err)
			w := written{Version: filestore.Version{Stamp: e.Stamp, SID: u.SID}, stored: string(u.Value)}
			if e.Origin.Log != 0 {
				w.Stamp = e.Origin.Stamp
			}
			switch {
			case u.Op == ulog.OpClear:
				if h.cleared.Less(w.Version) {
					h.cleared = w.Version
				}
			case h.records[string(u.Key)].Less(w.Version):
				h.records[string(u.Key)] = w
			}
		}
		require.NoError(t, r.Close())
	}
	return h
}

// TestForgottenRemovalsLeaveServersEqual does what TestUpdatesFromAllSidesConverge does with files
// that remember next to no removals.
func TestForgottenRemovalsLeaveServersEqual(t *testing.T) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			left := 30
			rapid.Check(t, func(rt *rapid.T) {
				if left--; left < 0 && os.Getenv("GOTYCOON_BIG") == "" {
					return // each takes many fsyncs
				}
				tb := rapidTB{t, rt}
				sites := newSites(tb, n, "a.kct#lww=true", 1)
				defer func() {
					for _, s := range sites {
						s.close()
					}
				}()
				ignored, site := &history{records: map[string]written{}}, rapid.SampledFrom(sites)
				for range rapid.IntRange(1, 60).Draw(rt, "steps") {
					convergeStep(tb, rt, ignored, site.Draw(rt, "site"))
				}
				settle(sites)
				want := winners(tb, sites).want(sites[0])
				for _, s := range sites {
					require.Equal(t, want, s.stored(), "server %d", s.sid)
				}
			})
		})
	}
}

func TestAnUpdateOlderThanAForgottenRemovalIsMadeAnew(t *testing.T) {
	sites := newSites(t, 2, "a.kct#lww=true", 1)
	a, b := sites[0], sites[1]
	defer a.close()
	defer b.close()
	require.NoError(t, b.db().Set(nil, []byte("k"), []byte("of b"), record.Never))
	require.NoError(t, b.db().Set(nil, []byte("gone at b"), []byte("1"), record.Never))
	require.NoError(t, b.db().Remove(nil, []byte("gone at b")))
	a.clk.advance(1)
	for _, key := range []string{"k", "1", "2", "3"} {
		require.ErrorIs(t, a.db().Remove(nil, []byte(key)), dberr.ErrNoRecord)
	}
	require.NoError(t, a.db().file.Merge())
	_, known, err := a.db().file.Entry([]byte("k"))
	require.NoError(t, err)
	require.False(t, known, "the removal is forgotten")

	a.pull(100)
	require.EqualValues(t, 1, a.db().versions.renewed.Load(), "what is removed in the same batch is not made anew")
	b.pull(100)
	for _, s := range sites {
		require.Equal(t, map[string]string{"k": "\xff\xff\xff\xff\xffof b"}, s.stored())
	}
	a.pull(100)
	b.pull(100)
	require.EqualValues(t, 1, a.db().versions.renewed.Load())
	require.Zero(t, b.db().versions.renewed.Load())

	require.NoError(t, b.db().Set(nil, []byte("1"), []byte("newer"), record.Never))
	a.pull(100)
	require.EqualValues(t, 1, a.db().versions.renewed.Load(), "no removal that was forgotten is as new")
}

// A forgotten removal may be newer than a removal that arrived after it was forgotten. So the
// removal that is there says nothing about updates that come behind it.
func TestAnOlderRemovalHidesNoForgottenRemoval(t *testing.T) {
	sites := newSites(t, 2, "a.kct#lww=true", 1)
	a, b := sites[0], sites[1]
	defer a.close()
	defer b.close()
	require.NoError(t, b.db().Set(nil, []byte("k"), []byte("first"), record.Never))
	require.NoError(t, b.db().Remove(nil, []byte("k")))
	require.NoError(t, b.db().Set(nil, []byte("k"), []byte("second"), record.Never))
	a.clk.advance(1)
	for _, key := range []string{"k", "1", "2", "3"} {
		require.ErrorIs(t, a.db().Remove(nil, []byte(key)), dberr.ErrNoRecord)
	}
	require.NoError(t, a.db().file.Merge())

	a.pull(2) // the first set and its removal
	require.Empty(t, a.stored())
	settle(sites) // the second set, which is older than the removal that a has forgotten
	want := winners(t, sites).want(a)
	for _, s := range sites {
		require.Equal(t, want, s.stored(), "server %d", s.sid)
	}
	require.Equal(t, map[string]string{"k": "\xff\xff\xff\xff\xffsecond"}, want, "it counts as made anew")
	require.EqualValues(t, 1, a.db().versions.renewed.Load())
}

func TestASlaveOfReadersMakesNothingAnew(t *testing.T) {
	sites := newSites(t, 2, "a.kct#lww=true", 1)
	a, b := sites[0], sites[1]
	defer a.close()
	defer b.close()
	require.NoError(t, b.db().Set(nil, []byte("k"), []byte("of b"), record.Never))
	a.clk.advance(1)
	for _, key := range []string{"1", "2", "3"} {
		require.ErrorIs(t, a.db().Remove(nil, []byte(key)), dberr.ErrNoRecord)
	}
	require.NoError(t, a.db().file.Merge())
	require.NoError(t, a.c.SetGuarded(true))
	a.pull(100)
	require.Zero(t, a.db().versions.renewed.Load())
	v, known, err := a.db().versions.version([]byte("k"))
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, b.sid, v.SID)
}
