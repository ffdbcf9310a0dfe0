package db

import (
	"fmt"
	"gotycoon/db/pages"
	"gotycoon/db/record"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// leaf leafs through all pages and returns the keys and how many pages there were.
func leaf(t *testing.T, d *DB, o pages.Options) (keys []string, n int) {
	t.Helper()
	for {
		page, err := pages.Of(d, nil, o)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Records), o.Records)
		require.LessOrEqual(t, page.Examined, o.Examine)
		for _, r := range page.Records {
			keys = append(keys, string(r.Key))
		}
		n++
		if page.Next == nil {
			return keys, n
		}
		o.After = page.Next
	}
}

// TestPages leafs through databases of every kind and order.
func TestPages(t *testing.T) {
	now := newClock()
	dir := t.TempDir()
	for _, expr := range []string{
		"-", "+", ":", "*", "%", "%#rcomp=lexdesc", filepath.Join(dir, "h.kch"), filepath.Join(dir, "t.kct"),
		filepath.Join(dir, "d.kct#rcomp=dec"), filepath.Join(dir, "p.kct#ktopts=p"),
	} {
		t.Run(filepath.Base(expr), func(t *testing.T) {
			d := mustOpen(t, Options{Now: now.now}, expr).DB(0)
			var all, twos []string
			for i := range 2000 {
				key := fmt.Sprintf("%d", i)
				all = append(all, key)
				if key[0] == '2' {
					twos = append(twos, key)
				}
				require.NoError(t, d.Set(nil, []byte(key), []byte("the value of "+key), record.Never))
			}
			slices.Sort(all)
			slices.Sort(twos)

			keys, n := leaf(t, d, pages.Options{Records: 90, Examine: 1 << 20})
			require.GreaterOrEqual(t, n, 2000/90)
			slices.Sort(keys)
			require.Equal(t, all, keys, "each record is met once")

			keys, _ = leaf(t, d, pages.Options{Records: 50, Examine: 600, Prefix: []byte("2")})
			slices.Sort(keys)
			require.Equal(t, twos, keys)

			page, err := pages.Of(d, nil, pages.Options{Records: 10, Examine: 100, Value: 3})
			require.NoError(t, err)
			require.Equal(t, "the", string(page.Records[0].Value))
			require.Equal(t, len("the value of ")+len(page.Records[0].Key), page.Records[0].Size)
			require.Equal(t, record.MaxXT, page.Records[0].XT)

			for _, r := range page.Records { // also the one behind which the next page begins
				require.NoError(t, d.Remove(nil, r.Key))
			}
			keys, _ = leaf(t, d, pages.Options{Records: 500, Examine: 1 << 20, After: page.Next})
			require.Len(t, keys, 1990)
		})
	}
}

func TestAPageHasNoExpiredRecords(t *testing.T) {
	now := newClock()
	d := mustOpen(t, Options{Now: now.now}, "%").DB(0)
	require.NoError(t, d.Set(nil, []byte("a"), nil, 10))
	require.NoError(t, d.Set(nil, []byte("b"), nil, 1000))
	now.advance(100)
	page, err := pages.Of(d, nil, pages.Options{Records: 10, Examine: 10})
	require.NoError(t, err)
	require.Len(t, page.Records, 1)
	require.Equal(t, "b", string(page.Records[0].Key))
	require.Equal(t, now.now().Unix()+900, page.Records[0].XT)
	require.Nil(t, page.Next)

	empty, err := pages.Of(mustOpen(t, Options{}, ":").DB(0), nil, pages.Options{Records: 10, Examine: 10})
	require.NoError(t, err)
	require.Empty(t, empty.Records)
	require.Nil(t, empty.Next)
}

func TestAPageMayEndAtTheEmptyKey(t *testing.T) {
	d := mustOpen(t, Options{}, "%").DB(0)
	require.NoError(t, d.Set(nil, nil, []byte("1"), record.Never))
	require.NoError(t, d.Set(nil, []byte("a"), []byte("2"), record.Never))
	first, err := pages.Of(d, nil, pages.Options{Records: 1, Examine: 10})
	require.NoError(t, err)
	require.NotNil(t, first.Next)
	second, err := pages.Of(d, nil, pages.Options{After: first.Next, Records: 1, Examine: 10})
	require.NoError(t, err)
	require.Len(t, second.Records, 1)
	require.Equal(t, "a", string(second.Records[0].Key))
}
