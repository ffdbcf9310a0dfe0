package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/internal/needs"
)

// counter adds to numbers, and knows each revision that a record has had.
type counter struct {
	*testing.T
	revisions map[uint64]bool
}

// add adds n to the number of a key. It returns the sum, and the number of the group in its lane.
func (c *counter) add(g *gather.Gather, name string, n int) (sum int, seq uint64) {
	o, err := g.Do(context.Background(), gather.Operation{Keys: []engine.Key{key(name)}}, func(v *gather.View) error {
		r, _ := v.Read(key(name))
		had, _ := strconv.Atoi(string(r.Value))
		sum = had + n
		v.Set(key(name), strconv.AppendInt(nil, int64(sum), 10), engine.Forever)
		return nil
	})
	require.NoError(c, err)
	require.False(c, c.revisions[o.Revision], "two groups have one revision")
	c.revisions[o.Revision] = true
	return sum, o.Revision & engine.LastSeq
}

// lose makes PostgreSQL forget whom it has given lanes, and cuts all connections.
func lose(t *testing.T, url string) {
	c := direct(t, url)
	run(t, c, "UPDATE gotycoon.writers SET writer = 'somebody else'")
	run(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
}

// A server that has lost the lane of its own groups, such as that of a message that it gives back,
// takes another one.
func TestOwnGroupsOfALostLane(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	write(t, e, lane(t, e), "q 1")
	term := termOf(t, direct(t, url), "claims/7", time.Hour)
	for n := range uint64(3) {
		id := engine.ClaimID{By: term, Number: n + 1}
		err := errors.New("not yet")
		for found := false; err != nil; {
			if _, found, err = e.Claims().Take(t.Context(), id, engine.Claim{Prefix: []byte("q ")}); err != nil {
				_, found, err = e.Claims().Settle(t.Context(), id)
			}
			require.True(t, found || err != nil)
		}
		if n > 0 {
			lose(t, url)
		}
		err = errors.New("not yet")
		for tries := 0; err != nil; tries++ {
			require.Less(t, tries, 20, "%v", err)
			_, err = e.Claims().GiveBack(t.Context(), id, updates("q 1")[0])
		}
	}
	recs, err := e.Read(t.Context(), []engine.Key{key("q 1")}, engine.Reading{})
	require.NoError(t, err)
	require.Len(t, recs, 1)
}

// A load whose lanes are lost goes on with others.
func TestALoadThatLosesItsLanes(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	const records = 60000
	n := 0
	stored, err := e.Load(t.Context(), func() (engine.Change, error) {
		if n == records {
			return engine.Change{}, io.EOF
		}
		if n++; n == records/2 {
			lose(t, url)
		}
		return engine.Change{Key: key(strconv.Itoa(n)), Value: []byte("1"), XT: engine.Forever}, nil
	})
	require.NoError(t, err)
	require.Equal(t, records, stored)
	count, _, err := e.Count(t.Context(), 0)
	require.NoError(t, err)
	require.EqualValues(t, records, count)
}

// pasts are ways in which an engine is taken back to the past. Each returns a URL, and what takes
// the engine there back to that moment.
var pasts = map[string]func(t *testing.T) (url string, past func()){
	"restored": func(t *testing.T) (string, func()) {
		s := pgtest.Own(t)
		url := pgtest.Database(t, s)
		initialise(t, url)
		require.NoError(t, s.Stop())
		back := pgtest.Keep(t, s)
		require.NoError(t, s.Start())
		return url, func() {
			require.NoError(t, s.Crash())
			back()
			require.NoError(t, s.Start())
		}
	},
	"failed over to an asynchronous standby": func(t *testing.T) (string, func()) {
		s := pgtest.Own(t)
		url := pgtest.Database(t, s)
		initialise(t, url)
		b := pgtest.Standby(t, s) // it has all there is by now
		require.NoError(t, b.Stop())
		require.NoError(t, s.Configure("synchronous_standby_names = ''"))
		name := url[len("postgres://postgres@"+s.Addr()):]
		return fmt.Sprintf("postgres://postgres@%s,%s%s", s.Addr(), b.Addr(), name), func() {
			require.NoError(t, s.Crash())
			require.NoError(t, b.Start())
			require.NoError(t, b.Promote())
		}
	},
	"a sequence set by hand": func(t *testing.T) (string, func()) {
		url := setUp(t)
		return url, func() {
			c := direct(t, url)
			run(t, c, "ALTER SEQUENCE gotycoon.lanes RESTART")
			run(t, c, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()")
		}
	},
	// the next two cut no connection
	"a dump restored": func(t *testing.T) (string, func()) {
		url := setUp(t)
		program := func(name string, args ...string) {
			path, err := exec.LookPath(name)
			if err != nil {
				needs.Missing(t, name, "postgresql-client")
			}
			said, err := exec.Command(path, args...).CombinedOutput()
			require.NoError(t, err, string(said))
		}
		dump := filepath.Join(t.TempDir(), "dump.sql")
		program("pg_dump", "-n", "gotycoon", "--clean", "-f", dump, url)
		return url, func() { program("psql", "-v", "ON_ERROR_STOP=1", "-q", "-f", dump, url) }
	},
	"removed and set up again": func(t *testing.T) (string, func()) {
		url := setUp(t)
		return url, func() {
			require.NoError(t, pg.Drop(t.Context(), url))
			initialise(t, url)
		}
	},
}

// A PostgreSQL that was taken back to the past knows nothing of lanes that it gave out later, and
// gives their numbers to others. No two groups must have one revision then: a server would take
// what another one has stored for what it has stored itself, and overwrite it.
func TestTheSameLaneAgain(t *testing.T) {
	for name, begin := range pasts {
		t.Run(name, func(t *testing.T) {
			url, past := begin(t)
			n := counter{t, map[uint64]bool{}}
			e1, e2 := open(t, url, pg.Options{}), open(t, url, pg.Options{})
			defer e1.Close()
			defer e2.Close()
			one := gather.New(e1, gather.Options{Lanes: 1})
			defer one.Close()
			for range 10 { // the other server, which begins later, shall come to the same number
				n.add(one, "other", 1)
			}
			past()
			sum, seq := n.add(one, "k", 1)
			require.Equal(t, 1, sum)
			// without the note of the group, PostgreSQL takes another one with its number
			run(t, direct(t, url), "TRUNCATE gotycoon.groups_0, gotycoon.groups_1, gotycoon.groups_2")
			two := gather.New(e2, gather.Options{Lanes: 1})
			defer two.Close()
			for at := uint64(0); at < seq; {
				sum, at = n.add(two, "k", 100)
			}
			was := sum
			sum, _ = n.add(one, "k", 1)
			require.Equal(t, was+1, sum)
		})
	}
}

// What a server knows of a record from before the engine was taken back to the past is not what the
// record is now, although another server that was given the lane has stored it under the same
// revision.
func TestWhatWasKnownBeforeThePast(t *testing.T) {
	for name, begin := range pasts {
		t.Run(name, func(t *testing.T) {
			url, past := begin(t)
			before, after := counter{t, map[uint64]bool{}}, counter{t, map[uint64]bool{}}
			e1, e2 := open(t, url, pg.Options{}), open(t, url, pg.Options{})
			defer e1.Close()
			defer e2.Close()
			one := gather.New(e1, gather.Options{Lanes: 1})
			defer one.Close()
			for range 10 {
				before.add(one, "other", 1)
			}
			_, seq := before.add(one, "k", 1)
			past()
			two := gather.New(e2, gather.Options{Lanes: 1})
			defer two.Close()
			sum := 0
			for at := uint64(0); at < seq; {
				sum, at = after.add(two, "k", 100)
			}
			was := sum
			sum, _ = after.add(one, "k", 1)
			require.Equal(t, was+1, sum)
		})
	}
}
