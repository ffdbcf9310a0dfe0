package db

import (
	"fmt"
	"gotycoon/db/checksum"
	"gotycoon/db/keymatch"
	"gotycoon/db/record"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// asksAtLeast runs an operation that passes over many records, once to its end and once with a Heed
// that ends it.
func asksAtLeast(t *testing.T, n int, op func(Heed) error) {
	t.Helper()
	asked := 0
	_ = op(func() error { asked++; return nil })
	require.GreaterOrEqual(t, asked, n)
	asked = 0
	require.ErrorIs(t, op(func() error {
		if asked++; asked == n {
			return errEnough
		}
		return nil
	}), errEnough)
	require.Equal(t, n, asked, "it goes on after the answer")
}

// A queue may have any number of messages that have expired, or are in the hands of others, before
// the first that can be taken.
func TestClaimsAskOnALongWay(t *testing.T) {
	const messages = 20_000
	for _, expr := range []string{"%", "v.kct", "%#rcomp=dec"} {
		for _, claimed := range []bool{false, true} {
			t.Run(fmt.Sprint(expr, claimed), func(t *testing.T) {
				path := expr
				if expr == "v.kct" {
					path = filepath.Join(t.TempDir(), expr)
				}
				now := newClock()
				d := mustOpen(t, Options{Now: now.now}, path).DB(0)
				d.Watch(WatchOptions{Claims: true})
				var recs []Record
				for i := range messages {
					recs = append(recs, Record{Key: fmt.Appendf(nil, "q %06d", i), Value: []byte("v"), XT: 1})
				}
				_, err := d.SetBulk(nil, recs, false)
				require.NoError(t, err)
				for i := range recs {
					if !claimed {
						break
					}
					_, err := d.claim(nil, recs[i].Key)
					require.NoError(t, err)
				}
				if !claimed {
					now.advance(10)
				}
				alone(d)
				watched := &looks{Store: d.store}
				d.store = watched
				if w := d.watch.Load(); w != nil {
					w.claims.all.Store = watched
				}
				asksAtLeast(t, 10, func(h Heed) error {
					_, err := d.Claim(h, nil, []byte("q "), nil)
					return err
				})
				require.LessOrEqual(t, watched.most, maxCollect+1)
			})
		}
	}
}

// What is claimed, or removed but still in the file, is passed over as well by cursors and
// searches.
func TestHiddenRecordsAreAskedAbout(t *testing.T) {
	const records = 20_000
	d := mustOpen(t, Options{}, filepath.Join(t.TempDir(), "v.kct")).DB(0)
	d.Watch(WatchOptions{Claims: true})
	eachKey := func(do func(key []byte) error) {
		for i := range records {
			require.NoError(t, do(fmt.Appendf(nil, "%06d", i)))
		}
	}
	ops := map[string]func(Heed) error{
		"jump": func(h Heed) error { c := d.NewCursor(); c.Heed = h; return c.Jump(nil) },
		"match": func(h Heed) error {
			_, err := keymatch.MatchRegex(d, h, nil, "x", -1, nil)
			return err
		},
		"checksum": func(h Heed) error {
			_, err := checksum.Sum(d, nil, []checksum.Range{{}}, checksum.Options{Heed: h})
			return err
		},
	}
	set := func(key []byte) error { return d.Set(nil, key, []byte("v"), record.Never) }
	eachKey(set)
	eachKey(func(key []byte) error { return d.Remove(nil, key) })
	for name, op := range ops {
		t.Run("removed/"+name, func(t *testing.T) { asksAtLeast(t, 10, op) })
	}
	t.Run("removed/vacuum", func(t *testing.T) { asksAtLeast(t, 10, func(h Heed) error { return d.Vacuum(h, 0) }) })
	eachKey(set)
	eachKey(func(key []byte) error {
		_, err := d.claim(nil, key)
		return err
	})
	for name, op := range ops {
		t.Run("claimed/"+name, func(t *testing.T) { asksAtLeast(t, 10, op) })
	}
}
