package pg_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/internal/pgserver"
	"gotycoon/ulog"
)

// times returns how often a test does something; GOTYCOON_LONG=1 asks for the long run.
func times(few, many int) int {
	if os.Getenv("GOTYCOON_LONG") != "" {
		return many
	}
	return few
}

func key(name string) engine.Key { return engine.Key{Key: []byte(name)} }

// add adds 1 to a number.
func add(ctx context.Context, g *gather.Gather, name string) error {
	k := key(name)
	_, err := g.Do(ctx, gather.Operation{Keys: []engine.Key{k}, Size: 8}, func(v *gather.View) error {
		r, _ := v.Read(k)
		n, _ := strconv.Atoi(string(r.Value))
		v.Set(k, []byte(strconv.Itoa(n+1)), engine.Forever)
		return nil
	})
	return err
}

// sum returns the sum of all numbers, and how many updates the log has.
func sum(t *testing.T, e engine.Engine) (numbers, updates int) {
	page, err := e.Scan(t.Context(), engine.Scan{Edge: true, Limit: 1000})
	require.NoError(t, err)
	for _, r := range page.Records {
		n, err := strconv.Atoi(string(r.Value))
		require.NoError(t, err)
		numbers += n
	}
	for after := engine.Stamp(0); ; {
		groups, upTo, err := e.Log().Read(t.Context(), after, 1<<20)
		require.NoError(t, err)
		for _, g := range groups {
			updates += len(g.Updates)
		}
		if len(groups) == 0 {
			return numbers, updates
		}
		after = upTo
	}
}

// adders lets callers add until enough was acknowledged, and returns how often that was. Nothing
// may be left open.
func adders(t *testing.T, enough int, done *atomic.Int64, gs ...*gather.Gather) *sync.WaitGroup {
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for n := 0; done.Load() < int64(enough); n++ {
				err := add(context.Background(), gs[i%len(gs)], fmt.Sprint("n", (i+n)%5))
				if err == nil {
					done.Add(1)
				} else if !assertUndone(t, err) {
					return
				}
			}
		})
	}
	return &work
}

func assertUndone(t *testing.T, err error) bool {
	if engine.KindOf(err) == engine.Undone {
		return true
	}
	t.Errorf("an increment is left open: %v", err)
	return false
}

// swallowing is an engine that loses the request or the answer of each second group.
type swallowing struct {
	engine.Engine
	p *proxy
	n int
}

func (s *swallowing) Write(ctx context.Context, g *engine.Group) (engine.Result, error) {
	switch s.n++; s.n % 4 {
	case 1:
		s.p.answers.Store(1)
	case 3:
		s.p.requests.Store(1)
	}
	defer s.p.answers.Store(0)
	defer s.p.requests.Store(0)
	return s.Engine.Write(ctx, g)
}

// Increments are exact, though the answer of every fourth commit is lost, and the request of every
// fourth one never arrives.
func TestSwallowedAnswers(t *testing.T) {
	p, url := newProxy(t, setUp(t))
	e := open(t, url, pg.Options{})
	defer e.Close()
	g := gather.New(&swallowing{Engine: e, p: p}, gather.Options{Lanes: 1, Group: 3})
	defer g.Close()
	var done atomic.Int64
	adders(t, times(80, 10000), &done, g).Wait()
	numbers, updates := sum(t, e)
	require.EqualValues(t, done.Load(), numbers)
	require.EqualValues(t, done.Load(), updates)
	require.Greater(t, int(p.swallows.Load()), times(10, 1000))
	t.Logf("%d increments, %d connections cut", numbers, p.swallows.Load())
}

// Increments by two servers are exact while connections are cut and PostgreSQL's processes are
// terminated.
func TestCutConnections(t *testing.T) {
	direct := setUp(t)
	p, url := newProxy(t, direct)
	one, two := open(t, url, pg.Options{}), open(t, url, pg.Options{})
	defer one.Close()
	defer two.Close()
	g1, g2 := gather.New(one, gather.Options{Group: 8}), gather.New(two, gather.Options{Group: 8})
	defer g1.Close()
	defer g2.Close()
	admin, err := pgx.Connect(t.Context(), direct)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	var done atomic.Int64
	work := adders(t, times(1000, 20000), &done, g1, g2)
	for n := int64(1); done.Load() < int64(times(1000, 20000)); n++ {
		for next := done.Load() + 50; done.Load() < next && done.Load() < int64(times(1000, 20000)); {
			<-time.After(time.Millisecond)
		}
		if n%2 == 0 {
			p.cut()
			continue
		}
		_, err := admin.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		require.NoError(t, err)
	}
	work.Wait()
	after := open(t, direct, pg.Options{})
	defer after.Close()
	numbers, updates := sum(t, after)
	require.EqualValues(t, done.Load(), numbers)
	require.EqualValues(t, done.Load(), updates)
}

// Connections that were forgotten on their way hold up nobody for long, whatever they were doing, and
// increments stay exact. A commit that takes long is left alone.
func TestForgottenConnections(t *testing.T) {
	direct := setUp(t)
	p, url := newProxy(t, direct)
	e := open(t, url, pg.Options{Notice: 200 * time.Millisecond})
	defer e.Close()
	g := gather.New(e, gather.Options{})
	defer g.Close()
	var done atomic.Int64
	var stop atomic.Bool
	var work sync.WaitGroup
	var slowest [8]time.Duration
	defer stop.Store(true)
	for i := range 8 {
		work.Go(func() {
			for n := 0; !stop.Load(); n++ {
				began := time.Now()
				if err := add(context.Background(), g, fmt.Sprint("n", (i+n)%5)); err != nil {
					t.Errorf("%v", err)
					return
				}
				done.Add(1)
				slowest[i] = max(slowest[i], time.Since(began))
			}
		})
	}
	settled := func() uint64 { return g.Stats().SettledUndone + g.Stats().SettledMade }
	for n := 0; n < times(1, 20) || n < 20 && settled() == 0; n++ { // not each time a group is under way
		require.Eventually(t, func() bool { return done.Load() > 50 }, 15*time.Second, time.Millisecond)
		x, err := e.Begin(t.Context(), 1)
		require.NoError(t, err)
		_, err = e.Lane(t.Context())
		require.NoError(t, err)
		began, before := time.Now(), done.Load()
		p.forget()
		_, err = gather.Ask(t.Context(), g, e.Lane)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 8*time.Second, "a connection that was idle")
		require.Eventually(t, func() bool { return done.Load() > before+50 }, 30*time.Second, time.Millisecond)
		t.Logf("updates went on after %v", time.Since(began))
		x.Abort()
	}
	stop.Store(true)
	work.Wait()
	t.Logf("slowest updates: %v", slowest)
	require.Less(t, slices.Max(slowest[:]), 8*time.Second, "no lane waits for longer")
	numbers, updates := sum(t, e)
	require.EqualValues(t, done.Load(), numbers)
	require.EqualValues(t, done.Load(), updates)
	unknown := g.Stats().Unknown

	admin, err := pgx.Connect(t.Context(), direct)
	require.NoError(t, err)
	defer admin.Close(context.Background())
	lock, err := admin.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), "SELECT 1 FROM gotycoon.r0 WHERE k = 'n0' FOR UPDATE")
	require.NoError(t, err)
	slow := make(chan error, 1)
	go func() { slow <- add(context.Background(), g, "n0") }()
	<-time.After(700 * time.Millisecond)
	require.NoError(t, lock.Rollback(t.Context()))
	require.NoError(t, <-slow)
	require.Equal(t, unknown, g.Stats().Unknown)
}

// Behind a pooler in session mode, processes are others than those that were announced. What waits
// there is left alone as well.
func TestAPoolerOfSessions(t *testing.T) {
	p, url := newProxy(t, setUp(t))
	p.pooler = true
	e := open(t, url, pg.Options{Notice: time.Second})
	defer e.Close()
	id := engine.GroupID{Lane: lane(t, e), Seq: 1}
	x, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	written := make(chan error, 1)
	go func() {
		_, err := e.Write(context.Background(), &engine.Group{ID: id,
			Changes: []engine.Change{{Key: key("k"), Value: []byte("1"), XT: engine.Forever}}})
		written <- err
	}()
	select {
	case err := <-written:
		t.Fatalf("the group did not wait: %v", err)
	case <-time.After(3 * time.Second): // it has been looked at twice meanwhile
	}
	x.Abort()
	require.NoError(t, <-written)
}

// What was acknowledged survives a crash of PostgreSQL, and a failover to its synchronous standby.
func TestFailover(t *testing.T) {
	primary := pgtest.Own(t, "wal_writer_delay = 10s") // what nobody waits for is lost in a crash
	t.Run("a lane", func(t *testing.T) { laneSurvives(t, primary) })
	t.Run("a commit without its standby", func(t *testing.T) { commitsAlone(t, primary) })
	standby := pgtest.Standby(t, primary)
	url := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", primary.Addr(), standby.Addr())
	initialise(t, url)
	one, two := open(t, url, pg.Options{}), open(t, url, pg.Options{})
	defer one.Close()
	defer two.Close()
	g1, g2 := gather.New(one, gather.Options{}), gather.New(two, gather.Options{})
	defer g1.Close()
	defer g2.Close()
	var done atomic.Int64
	t.Run("the log of a standby", func(t *testing.T) {
		standbyWaits(t, one, primary.URL("postgres"), standby.URL("postgres"))
		done.Store(1) // its group
	})
	const enough = 900
	work := adders(t, enough, &done, g1, g2)
	reach := func(n int64) {
		for done.Load() < n && !t.Failed() {
			<-time.After(time.Millisecond)
		}
	}
	reach(200)
	require.NoError(t, primary.Crash())
	require.NoError(t, primary.Start())
	reach(500)
	require.NoError(t, primary.Crash())
	require.NoError(t, standby.Promote())
	work.Wait()
	after := open(t, url, pg.Options{})
	defer after.Close()
	numbers, updates := sum(t, after)
	require.EqualValues(t, done.Load(), numbers)
	require.EqualValues(t, done.Load(), updates)
	s, err := after.Status(t.Context())
	require.NoError(t, err)
	require.False(t, s.Standby)
}

// laneSurvives checks that a crash gives nobody the number of a lane that a server has, even if it
// has not written anything.
func laneSurvives(t *testing.T, primary *pgserver.Server) {
	url := pgtest.Database(t, primary)
	initialise(t, url)
	e := open(t, url, pg.Options{})
	// PostgreSQL logs a sequence with every 32nd number. This one's commit never comes.
	c := direct(t, url)
	run(t, c, "CHECKPOINT")
	run(t, c, "BEGIN")
	run(t, c, "SELECT nextval('gotycoon.lanes')")
	had, err := e.Lane(t.Context())
	require.NoError(t, err)
	require.NoError(t, primary.Crash())
	require.NoError(t, e.Close())
	require.NoError(t, primary.Start())
	e = open(t, url, pg.Options{})
	defer e.Close()
	lane, err := e.Lane(t.Context())
	require.NoError(t, err)
	require.Greater(t, lane, had)
}

// standbyWaits checks that a standby which has a group does not say that it has those before, while
// one is still to come, and says so some time later.
func standbyWaits(t *testing.T, e *pg.Engine, primary, standby string) {
	var r *pg.Engine
	require.Eventually(t, func() bool {
		var err error
		r, err = pg.Open(t.Context(), standby, pg.Options{ReadOnly: true})
		return err == nil
	}, 10*time.Second, time.Millisecond, "it gets the tables")
	defer r.Close()
	c := direct(t, primary)
	run(t, c, "BEGIN")
	run(t, c, "SET search_path = gotycoon")
	var late engine.Stamp
	require.NoError(t, c.QueryRow(t.Context(), "SELECT stamp(1, 0)").Scan(&late))
	lane, err := e.Lane(t.Context())
	require.NoError(t, err)
	write(t, e, lane, "n0")
	require.Eventually(t, func() bool {
		recs, err := r.Read(t.Context(), []engine.Key{key("n0")}, engine.Reading{})
		return err == nil && len(recs) == 1
	}, 10*time.Second, time.Millisecond)
	upTo, err := r.Horizon(t.Context())
	require.NoError(t, err)
	require.Less(t, upTo, late)
	run(t, c, "ROLLBACK")
	require.NoError(t, e.NoteHorizon(t.Context()))
	require.Eventually(t, func() bool {
		upTo, err = r.Horizon(t.Context())
		return err == nil && upTo > late
	}, 10*time.Second, time.Millisecond)
}

// commitsAlone checks that nobody sees a group that its standby has not got, though its writer has
// given up, and that nobody is told of one by a second Settle.
func commitsAlone(t *testing.T, primary *pgserver.Server) {
	url := pgtest.Database(t, primary)
	initialise(t, url)
	// PostgreSQL says it in a warning only
	run(t, direct(t, url), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_min_messages = error', current_database()); END $$")
	e := open(t, url, pg.Options{})
	defer e.Close()
	lane, err := e.Lane(t.Context())
	require.NoError(t, err)
	set := func(ctx context.Context, seq uint64, name string) (engine.GroupID, error) {
		id := engine.GroupID{Lane: lane, Seq: seq}
		_, err := e.Write(ctx, &engine.Group{ID: id, Changes: []engine.Change{{Key: key(name), Value: []byte("1"), XT: engine.Forever}}})
		return id, err
	}
	settled, err := set(t.Context(), 1, "before")
	require.NoError(t, err)
	_, err = e.Settle(t.Context(), settled)
	require.NoError(t, err)
	_, err = set(t.Context(), 2, "message")
	require.NoError(t, err)
	term, _, err := e.Leases().Hold(t.Context(), "me")
	require.NoError(t, err)
	claim := func(n uint64) engine.ClaimID { return engine.ClaimID{By: term, Number: n} }
	_, found, err := e.Claims().Take(t.Context(), claim(1), engine.Claim{Prefix: []byte("message")})
	require.NoError(t, err)
	require.True(t, found)
	removal := ulog.Update{SID: 1, Op: ulog.OpRemove, Key: []byte("message")}
	finished := &engine.Claimed{ID: claim(1)}
	require.NoError(t, e.Claims().Finish(t.Context(), finished, removal))
	_, found, err = e.Claims().Settle(t.Context(), claim(2))
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, primary.Configure("synchronous_standby_names = 'nobody'"))
	admin := direct(t, url)
	id, n := engine.GroupID{}, uint64(2)
	for err == nil { // until PostgreSQL has read its settings
		n++
		id, err = givesUp(t, admin, func(ctx context.Context) (engine.GroupID, error) {
			return set(ctx, n, fmt.Sprint("alone", n))
		})
	}
	require.Equal(t, engine.Unknown, engine.KindOf(err))
	for range 20 {
		recs, err := e.Read(t.Context(), []engine.Key{key(fmt.Sprint("alone", n)), key("before")}, engine.Reading{})
		require.NoError(t, err)
		require.Len(t, recs, 1, "a failover could take it back")
		<-time.After(5 * time.Millisecond)
	}
	for what, again := range map[string]func(ctx context.Context) error{
		"Settle": func(ctx context.Context) error { _, err := e.Settle(ctx, settled); return err },
		"Settle in a lane of another server": func(ctx context.Context) error {
			_, err := e.Settle(ctx, engine.GroupID{Lane: settled.Lane + 1000, Seq: 1})
			return err
		},
		"Finish":            func(ctx context.Context) error { return e.Claims().Finish(ctx, finished, removal) },
		"GiveBack":          func(ctx context.Context) error { _, err := e.Claims().GiveBack(ctx, claim(1), removal); return err },
		"Settle of a claim": func(ctx context.Context) error { _, _, err := e.Claims().Settle(ctx, claim(2)); return err },
	} {
		within, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := again(within)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "the first %s may be PostgreSQL's alone, if it has crashed since", what)
	}
	answer := make(chan error, 1)
	go func() {
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := set(within, n+1, "cancelled")
		answer <- err
	}()
	for err = nil; err == nil; {
		run(t, admin, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		select {
		case err = <-answer:
			require.Equal(t, engine.Unknown, engine.KindOf(err), "somebody else has ended the wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	require.NoError(t, primary.Configure("synchronous_standby_names = ''"))
	r, err := e.Settle(t.Context(), id)
	require.NoError(t, err)
	require.True(t, r.Made())
}

// givesUp writes a group, and gives up once PostgreSQL waits for its standby with it: a time limit
// could end before the group is there.
func givesUp(t *testing.T, admin *pgx.Conn, write func(context.Context) (engine.GroupID, error)) (engine.GroupID, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var id engine.GroupID
	answer := make(chan error, 1)
	go func() {
		var err error
		id, err = write(ctx)
		answer <- err
	}()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-answer:
			return id, err
		case <-look.C:
		}
		var waits bool // the engine's own work, which may wait too, calls other functions
		require.NoError(t, admin.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'SyncRep' AND query ~ '(put|mix)_0')`).Scan(&waits))
		if waits {
			cancel()
		}
	}
}

// A group that arrives late, and was settled before, is not made, also if PostgreSQL has gone on to
// the next table of groups meanwhile.
func TestALateGroup(t *testing.T) {
	e := open(t, setUp(t), pg.Options{})
	defer e.Close()
	id := engine.GroupID{Lane: lane(t, e), Seq: 1}
	x, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	within, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() { // t must not be failed from here
		for waits, err := false, error(nil); !waits && err == nil; {
			waits, err = e.Waits(within, 0)
		}
		cancel()
	}()
	_, err = e.Write(within, &engine.Group{ID: id, Changes: []engine.Change{{Key: key("k"), Value: []byte("1"), XT: engine.Forever}}})
	require.Equal(t, engine.Unknown, engine.KindOf(err), "it waits in PostgreSQL")
	for range 3 {
		_, err = e.Settle(t.Context(), id)
		require.ErrorIs(t, err, engine.ErrUndone)
		require.NoError(t, e.RotateNow(t.Context()))
	}
	x.Abort()
	behind, err := e.Begin(t.Context(), 0)
	require.NoError(t, err)
	behind.Abort()
	recs, err := e.Read(t.Context(), []engine.Key{key("k")}, engine.Reading{})
	require.NoError(t, err)
	require.Empty(t, recs)
}

// A server that stands still with a transaction open keeps others from the database for some
// seconds at most; one that works on it may take as long as it likes.
func TestATransactionOfAServerThatStandsStill(t *testing.T) {
	url := setUp(t)
	here, there := open(t, url, pg.Options{Lease: 6 * time.Second}), open(t, url, pg.Options{})
	defer here.Close()
	defer there.Close()
	x, err := here.Begin(t.Context(), 0)
	require.NoError(t, err)
	waits, cancel := context.WithTimeout(t.Context(), 8*time.Second) // longer than the lease lasts without a beat
	defer cancel()
	_, err = there.Begin(waits, 0)
	require.Equal(t, engine.Undone, engine.KindOf(err), "its owner beats")
	pg.StandStill(x)
	other, err := there.Begin(t.Context(), 0)
	require.NoError(t, err)
	other.Abort()
}
