package pg_test

import (
	"context"
	"fmt"
	"math"
	neturl "net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/pg"
)

// direct is a connection beside the engine.
func direct(t testing.TB, url string) *pgx.Conn {
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func run(t testing.TB, c *pgx.Conn, text string, args ...any) {
	_, err := c.Exec(t.Context(), text, args...)
	require.NoError(t, err)
}

func TestSetup(t *testing.T) {
	url, setup := server.URL(t), pg.Setup{SID: 7, Log: true, Databases: []string{"users", "sessions"}}
	_, err := pg.Open(t.Context(), url, pg.Options{})
	require.ErrorIs(t, err, pg.ErrNotSetUp)
	made, err := pg.Init(t.Context(), url, setup)
	require.NoError(t, err)
	require.True(t, made)
	before, err := pg.ReadStatus(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, setup, before.Setup)
	require.Len(t, before.Records, 2)
	require.True(t, before.Weak, "the tests' server has fsync=off")
	made, err = pg.Init(t.Context(), url, setup)
	require.NoError(t, err)
	require.False(t, made)
	for _, other := range []pg.Setup{{SID: 8, Log: true, Databases: setup.Databases}, {SID: 7, Databases: setup.Databases}, {SID: 7, Log: true}} {
		_, err := pg.Init(t.Context(), url, other)
		require.ErrorContains(t, err, "was set up with")
	}
	id, skipped, err := pg.Renew(t.Context(), url)
	require.NoError(t, err)
	require.True(t, skipped)
	after, err := pg.ReadStatus(t.Context(), url)
	require.NoError(t, err)
	require.NotEqual(t, before.LogID, after.LogID)
	require.Equal(t, id, fmt.Sprintf("%x", after.LogID))
	require.GreaterOrEqual(t, after.Lanes, before.Lanes+1000, "revisions of lost lanes are not given out again")
	run(t, direct(t, url), "SELECT setval('gotycoon.lanes', $1)", pg.MaxLanes-100)
	_, skipped, err = pg.Renew(t.Context(), url)
	require.NoError(t, err)
	require.False(t, skipped)
	last, err := pg.ReadStatus(t.Context(), url)
	require.NoError(t, err)
	require.EqualValues(t, pg.MaxLanes-100, last.Lanes, "there are lanes left")

	run(t, direct(t, url), "UPDATE gotycoon.meta SET value = '0' WHERE name = 'format'")
	_, err = pg.Open(t.Context(), url, pg.Options{})
	require.ErrorContains(t, err, `format "0"`)
	require.NoError(t, pg.Drop(t.Context(), url), "also what another version has set up")
	_, err = pg.ReadStatus(t.Context(), url)
	require.ErrorIs(t, err, pg.ErrNotSetUp)
	require.ErrorIs(t, pg.Drop(t.Context(), url), pg.ErrNotSetUp)
}

// Where PostgreSQL does not let us in, or not do what we must, the error says what to do.
func TestAdvice(t *testing.T) {
	url := setUp(t)
	at := func(change func(u *neturl.URL)) string {
		u, err := neturl.Parse(url)
		require.NoError(t, err)
		change(u)
		return u.String()
	}
	admin := direct(t, url)
	run(t, admin, "DROP ROLE IF EXISTS stranger") // of a run before
	run(t, admin, "CREATE ROLE stranger LOGIN")
	for advice, where := range map[string]string{
		"pg_hba.conf":             at(func(u *neturl.URL) { u.User = neturl.User("nobody") }),
		"CREATE DATABASE":         at(func(u *neturl.URL) { u.Path = "/nowhere" }),
		"must own the database":   at(func(u *neturl.URL) { u.User = neturl.User("stranger") }),
		"whether PostgreSQL runs": at(func(u *neturl.URL) { u.Host = "127.0.0.1:1" }),
	} {
		_, err := pg.Open(t.Context(), where, pg.Options{})
		require.ErrorContains(t, pg.Advise(err), advice)
		_, err = pg.ReadStatus(t.Context(), where)
		require.ErrorContains(t, pg.Advise(err), advice)
	}
	_, err := pg.Open(t.Context(), at(func(u *neturl.URL) { u.RawQuery += "&default_transaction_read_only=on" }), pg.Options{})
	require.ErrorContains(t, pg.Advise(err), "whether the primary runs")
	require.Equal(t, pg.ErrNotSetUp, pg.Advise(pg.ErrNotSetUp), "which says what to do itself")
	require.NoError(t, pg.Advise(nil))
}

// write writes a group of one set by a lane of its own.
func write(t testing.TB, e engine.Engine, lane uint64, name string) engine.Result {
	k := key(name)
	r, err := e.Write(t.Context(), &engine.Group{ID: engine.GroupID{Lane: lane, Seq: 1}, Changes: []engine.Change{
		{Key: k, Value: []byte("1"), XT: engine.Forever, Log: updates(name)},
	}})
	require.NoError(t, err)
	return r
}

// lane gives a server a lane.
func lane(t *testing.T, e *pg.Engine) uint64 {
	n, err := e.Lane(t.Context())
	require.NoError(t, err)
	return n
}

// A full disk is an answer of its own, and what PostgreSQL says passes on.
func TestFull(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	admin := direct(t, url)
	run(t, admin, `CREATE FUNCTION gotycoon.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END $$`)
	run(t, admin, "CREATE TRIGGER no_room BEFORE INSERT ON gotycoon.r0 FOR EACH ROW EXECUTE FUNCTION gotycoon.no_room()")
	g := &engine.Group{ID: engine.GroupID{Lane: lane(t, e), Seq: 1}, Changes: []engine.Change{{Key: key("k"), XT: engine.Forever}}}
	_, err := e.Write(t.Context(), g)
	require.Equal(t, engine.Full, engine.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "No space left")
	run(t, admin, "DROP TRIGGER no_room ON gotycoon.r0")
	g.ID.Seq++
	_, err = e.Write(t.Context(), g)
	require.NoError(t, err)
	g.ID = engine.GroupID{Lane: pg.MaxLanes + 1, Seq: 1}
	_, err = e.Write(t.Context(), g)
	require.Equal(t, engine.Refused, engine.KindOf(err), "%v", err)
}

// A clear of many records empties the table at once, unless somebody reads for long.
func TestClearOfMany(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	admin, id := direct(t, url), engine.GroupID{Lane: lane(t, e)}
	clearAll := func() {
		run(t, admin, "INSERT INTO gotycoon.r0 SELECT int8send(n), '', 1, 2 FROM generate_series(1, 10001) n")
		run(t, admin, "INSERT INTO gotycoon.deltas VALUES (0, 10001)")
		id.Seq++
		_, err := e.Write(t.Context(), &engine.Group{ID: id, Clear: &engine.Clear{}})
		require.NoError(t, err)
		n, _, err := e.Count(t.Context(), 0)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	node := func() (n uint32) {
		require.NoError(t, admin.QueryRow(t.Context(), "SELECT relfilenode FROM pg_class WHERE oid = 'gotycoon.r0'::regclass").Scan(&n))
		return n
	}
	clearAll()
	was := node()
	snap, err := e.Snapshot(t.Context(), 0)
	require.NoError(t, err)
	clearAll()
	require.Equal(t, was, node(), "records were removed one by one")
	page, err := snap.Scan(t.Context(), engine.Scan{Edge: true, Limit: 10})
	require.NoError(t, err)
	require.Empty(t, page.Records)
	require.NoError(t, snap.Close())
	clearAll()
	require.NotEqual(t, was, node())
}

// A group whose note may have been removed is not said to be undone.
func TestAForgottenGroup(t *testing.T) {
	e := open(t, setUp(t), pg.Options{})
	defer e.Close()
	one, two := lane(t, e), lane(t, e)
	write(t, e, one, "k")
	e.LongAgo(one, 3*time.Minute)
	_, err := e.Settle(t.Context(), engine.GroupID{Lane: one, Seq: 1})
	require.NoError(t, err, "its note is there")
	for range 3 {
		require.NoError(t, e.RotateNow(t.Context()))
	}
	_, err = e.Settle(t.Context(), engine.GroupID{Lane: one, Seq: 1})
	require.ErrorIs(t, err, engine.ErrForgotten)
	_, err = e.Settle(t.Context(), engine.GroupID{Lane: one, Seq: 2})
	require.ErrorIs(t, err, engine.ErrForgotten)
	write(t, e, two, "k")
	_, err = e.Settle(t.Context(), engine.GroupID{Lane: two, Seq: 2})
	require.ErrorIs(t, err, engine.ErrUndone)
}

// Tables of groups are used in turn. What is settled stays so for two turns, and whoever wants
// what was removed is told.
func TestRotation(t *testing.T) {
	url := setUp(t)
	e := open(t, url, pg.Options{})
	defer e.Close()
	var lanes []uint64
	var stamps []engine.Stamp
	for n := range 4 {
		lanes = append(lanes, lane(t, e))
		stamps = append(stamps, write(t, e, lanes[n], "k").Stamp)
		if n < 3 {
			require.NoError(t, e.RotateNow(t.Context()))
		}
		for before := max(1, n-1); before <= n; before++ {
			r, err := e.Settle(t.Context(), engine.GroupID{Lane: lanes[before], Seq: 1})
			require.NoError(t, err)
			require.Equal(t, stamps[before], r.Stamp)
		}
	}
	_, _, err := e.Log().Read(t.Context(), stamps[0]-1, 1<<20)
	require.ErrorIs(t, err, engine.ErrTrimmed)
	groups, _, err := e.Log().Read(t.Context(), stamps[0], 1<<20)
	require.NoError(t, err)
	require.Len(t, groups, 3)
	require.NoError(t, e.Rotate(t.Context()))
	r, err := e.Settle(t.Context(), engine.GroupID{Lane: lanes[3], Seq: 1})
	require.NoError(t, err)
	require.Equal(t, stamps[3], r.Stamp, "nothing was due")
	tool := open(t, url, pg.Options{KeepFor: math.MaxInt64, KeepBytes: math.MaxInt64})
	defer tool.Close()
	run(t, direct(t, url), "UPDATE gotycoon.rotation SET since = since - interval '10 years'")
	oldest := func() engine.Stamp {
		at, err := e.Log().Oldest(t.Context())
		require.NoError(t, err)
		return at
	}
	was := oldest()
	require.NoError(t, tool.Rotate(t.Context()))
	require.Equal(t, was, oldest(), "a tool removes nothing")
	require.NoError(t, e.Rotate(t.Context()))
	require.Greater(t, oldest(), was)
}

// What is open when the server stops ends with the engine.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	e := open(t, setUp(t), pg.Options{})
	snap, err := e.Snapshot(t.Context(), 0)
	require.NoError(t, err)
	tx, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	other := key("held")
	other.DB = 1
	_, err = e.Read(t.Context(), []engine.Key{other}, engine.Reading{Hold: engine.GroupID{Lane: lane(t, e), Seq: 1}})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = snap.Scan(t.Context(), engine.Scan{Edge: true, Limit: 1})
	require.Equal(t, engine.Undone, engine.KindOf(err))
	require.NoError(t, snap.Close())
	tx.Abort()
	require.NoError(t, e.Close())
}
