package memcache

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db"
	"gotycoon/db/dberr"
	"gotycoon/db/keymatch"
	"gotycoon/db/record"
)

// openQueues opens a database and its queues, as a server does at its start. set sets their clock.
func openQueues(t *testing.T, expr string, o db.Options) (c *db.Catalog, q *queues, set func(time.Time)) {
	t.Helper()
	var now atomic.Int64 // the collector of a file asks too
	now.Store(time.Unix(1_780_000_000, 0).UnixNano())
	o.Now = func() time.Time { return time.Unix(0, now.Load()) }
	c, err := db.Open([]string{expr}, o)
	require.NoError(t, err)
	q = newQueues(c.DB(0))
	q.now = o.Now
	c.DB(0).Watch(db.WatchOptions{Claims: true, News: q.arrived})
	return c, q, func(t time.Time) { now.Store(t.UnixNano()) }
}

// put stores a message with a text.
func put(t *testing.T, q *queues, name, text string) {
	t.Helper()
	require.NoError(t, q.put(nil, []byte(name), []byte(text), record.Never))
}

// taken takes all messages of a name, in their order.
func taken(t *testing.T, q *queues, name string) (texts []string) {
	t.Helper()
	for {
		claim, err := q.claim(nil, nil, &line{}, []byte(name))
		if err != nil {
			require.ErrorIs(t, err, dberr.ErrNoRecord)
			return texts
		}
		texts = append(texts, string(claim.Value))
		require.NoError(t, claim.Finish(nil))
	}
}

// Messages come out in the order in which they were stored, whatever the clock does while the
// server runs or between two runs.
func TestMessagesKeepTheirOrderWhenTheClockJumps(t *testing.T) {
	start := time.Unix(1_780_000_000, 0)
	for kind, o := range map[string]db.Options{"a.kct": {}, "private.kct": {}, "with a log.kct": {LogDir: "ulog", SID: 1}} {
		t.Run(kind, func(t *testing.T) {
			t.Chdir(t.TempDir())
			random := rand.New(rand.NewPCG(1, 2)) // a test
			var want []string
			for run := range 6 {
				c, q, set := openQueues(t, kind, o)
				for i := range 30 {
					clock := start.Add(time.Duration(random.Int64N(int64(48*time.Hour))) - 24*time.Hour)
					set(clock)
					want = append(want, fmt.Sprintf("%d.%d", run, i))
					put(t, q, "job", want[len(want)-1])
				}
				if run == 3 { // the oldest are with a client when the server ends
					for range 5 {
						_, err := q.claim(nil, nil, &line{}, []byte("job"))
						require.NoError(t, err)
					}
				}
				require.NoError(t, c.Close())
			}
			c, q, _ := openQueues(t, kind, o)
			require.Equal(t, want, taken(t, q, "job"))
			require.NoError(t, c.Close())
		})
	}
}

// Neither log nor clock know messages of another program, of a snapshot, and one that is held.
func TestNewMessagesAreBehindAllThatAreThere(t *testing.T) {
	c, q, _ := openQueues(t, "%", db.Options{})
	defer c.Close()
	d := c.DB(0)
	require.NoError(t, d.Set(nil, []byte("job 03000000000000 0007"), []byte("ahead"), record.Never))
	require.NoError(t, d.Set(nil, []byte("job 3 is no message of a server"), []byte("odd"), record.Never))
	require.NoError(t, d.Set(nil, []byte("job x"), []byte("odder"), record.Never))
	held, err := d.Claim(nil, nil, []byte("job 0"), nil)
	require.NoError(t, err)
	put(t, q, "job", "first")
	require.NoError(t, held.GiveBack(nil))
	require.NoError(t, d.Set(nil, []byte("job 04000000000000 0000"), []byte("further ahead"), record.Never))
	put(t, q, "job", "second")
	put(t, q, "other", "of another queue")
	keys, err := keymatch.MatchPrefix(d, nil, nil, []byte("other "), -1, nil)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.True(t, strings.HasPrefix(string(keys[0]), "other 01780000000"), "%s: times ahead stay with their queue", keys[0])
	require.Equal(t, []string{"ahead", "first", "further ahead", "second", "odd", "odder"}, taken(t, q, "job"))
}

// A name with a blank is another queue, although its messages begin with the first one's name.
func TestNamesWithBlanks(t *testing.T) {
	c, q, _ := openQueues(t, "%", db.Options{})
	defer c.Close()
	require.NoError(t, c.DB(0).Set(nil, []byte("a b 03000000000000 0000"), []byte("of b"), record.Never))
	require.NoError(t, c.DB(0).Set(nil, []byte("a 02000000000000 0000"), []byte("of a"), record.Never))
	found, err := q.greatest([]byte("a"), nil)
	require.NoError(t, err)
	require.Equal(t, stamp{2_000_000_000_000, 0}, found)
	found, err = q.greatest([]byte("a b"), nil)
	require.NoError(t, err)
	require.Equal(t, stamp{3_000_000_000_000, 0}, found)
}

// There are more names than a server remembers, and more messages in a millisecond than sequence
// numbers.
func TestStampsOnlyGrow(t *testing.T) {
	c, q, _ := openQueues(t, "%", db.Options{})
	defer c.Close()
	for i := range maxLines {
		q.lines[fmt.Sprint(i)] = &line{}
	}
	for i := range 2*sequenceEnd + 10 {
		put(t, q, "job", fmt.Sprint(i))
	}
	require.NotContains(t, q.lines, "job")
	got := taken(t, q, "job")
	require.Len(t, got, 2*sequenceEnd+10)
	for i := range got {
		require.Equal(t, fmt.Sprint(i), got[i])
	}
}

// Each of several producers finds its own messages in order, and none is lost.
func TestProducersTogether(t *testing.T) {
	c, q, _ := openQueues(t, "%", db.Options{})
	defer c.Close()
	const producers, each = 4, 500
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				if err := q.put(nil, []byte("job"), fmt.Appendf(nil, "%d %04d", p, i), record.Never); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := map[string]string{}
	got := taken(t, q, "job")
	require.Len(t, got, producers*each)
	for _, text := range got {
		p, i, _ := strings.Cut(text, " ")
		require.Greater(t, i, last[p])
		last[p] = i
	}
}
