package pg_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"gotycoon/db/engine"
	"gotycoon/db/engine/gather"
	"gotycoon/db/engine/pg"
	"gotycoon/db/engine/pg/pgtest"
	"gotycoon/db/record"
	"gotycoon/internal/pgserver"
	"gotycoon/ulog"
)

// Each figure is a rate and what PostgreSQL took of the processor for it, and only ratios in one
// run say anything. What is compared runs in turns, and the highest rate and the least time of the
// turns count, which other work on the machine has disturbed least. Each phase begins behind a
// checkpoint, and there is no autovacuum: it would count for a later phase.
//
//	go test -run '^$' -bench Ratios -benchtime 1x -v -timeout 10m ./db/engine/pg
const (
	callers = 64
	phase   = 2 * time.Second
	turns   = 5
	spread  = 100000 // keys
)

// figure is what a phase has shown.
type figure struct {
	rate float64       // operations per second
	cpu  time.Duration // of PostgreSQL, per operation
}

// load is something that is measured once in each turn.
type load struct {
	name string
	run  func() figure
}

// inTurns returns the best of what loads have shown, by name.
func (b *bench) inTurns(loads []load) map[string]figure {
	all, best := map[string][]figure{}, map[string]figure{}
	for range turns {
		for _, l := range loads {
			all[l.name] = append(all[l.name], l.run())
		}
	}
	for _, l := range loads {
		byRate := func(x, y figure) int { return cmp.Compare(x.rate, y.rate) }
		byCPU := func(x, y figure) int { return cmp.Compare(x.cpu, y.cpu) }
		least, most := slices.MinFunc(all[l.name], byRate), slices.MaxFunc(all[l.name], byRate)
		quick, slow := slices.MinFunc(all[l.name], byCPU), slices.MaxFunc(all[l.name], byCPU)
		b.b.Logf("%-26s %8.0f/s (least %.0f)  engine %6.1f µs (most %.1f)", l.name, most.rate, least.rate, micros(quick.cpu), micros(slow.cpu))
		best[l.name] = figure{most.rate, quick.cpu}
	}
	return best
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// bench is a server, and its database with an engine.
type bench struct {
	b      *testing.B
	server *pgserver.Server
	url    string
	pool   *pgxpool.Pool // of the statements that engine and gather are compared with
}

// cpu returns the time that the server's processes have taken so far.
func (b *bench) cpu() time.Duration {
	used, err := b.server.CPU()
	require.NoError(b.b, err)
	return used
}

// callersDo returns a load of n callers who do something for a while.
func (b *bench) callersDo(name string, n int, do func(dice *rand.Rand) error) load {
	return load{name, func() figure {
		b.checkpoint()
		ctx, cancel := context.WithTimeout(context.Background(), phase)
		defer cancel()
		before, began := b.cpu(), time.Now()
		counts := make([]int, n)
		var work sync.WaitGroup
		for i := range n {
			dice := rand.New(rand.NewPCG(uint64(i), 1))
			work.Go(func() {
				for ctx.Err() == nil {
					if err := do(dice); err != nil {
						b.b.Error(err)
						return
					}
					counts[i]++
				}
			})
		}
		work.Wait()
		total := 0
		for _, c := range counts {
			total += c
		}
		return figure{float64(total) / time.Since(began).Seconds(), (b.cpu() - before) / time.Duration(max(1, total))}
	}}
}

func (b *bench) checkpoint() {
	_, err := b.pool.Exec(context.Background(), "CHECKPOINT")
	require.NoError(b.b, err)
}

// pgbench returns a load of PostgreSQL's own benchmark with a script. In the mode simple, which is
// its default, each statement is planned, in the mode prepared the first one only.
func (b *bench) pgbench(name, mode, script string) load {
	path := filepath.Join(b.b.TempDir(), "script")
	require.NoError(b.b, os.WriteFile(path, []byte(script), 0o600))
	return load{name + ", " + mode, func() figure {
		b.checkpoint()
		before := b.cpu()
		said, err := exec.Command(filepath.Join(pgserver.Find(), "pgbench"), "-n", "-M", mode, "-c", strconv.Itoa(callers), "-j", "2",
			"-T", strconv.Itoa(int(phase.Seconds())), "-f", path, b.url).CombinedOutput()
		require.NoError(b.b, err, string(said))
		cpu, done := b.cpu()-before, 0
		for line := range strings.Lines(string(said)) {
			if n, ok := strings.CutPrefix(line, "number of transactions actually processed: "); ok {
				done, _ = strconv.Atoi(strings.TrimSpace(n))
			}
		}
		require.Positive(b.b, done, string(said))
		return figure{float64(done) / phase.Seconds(), cpu / time.Duration(done)}
	}}
}

func name(dice *rand.Rand) string { return fmt.Sprintf("key%07d", dice.IntN(spread)) }

// Without fsync the processor is the limit, with it 64 callers wait for the disk.
func BenchmarkRatios(b *testing.B) {
	for _, fsync := range []string{"off", "on"} {
		b.Run("fsync="+fsync, func(b *testing.B) {
			for range b.N {
				compare(b, pgtest.Own(b, "fsync = "+fsync, "full_page_writes = "+fsync, "shared_buffers = 256MB", "max_wal_size = 1GB", "autovacuum = off"))
			}
		})
	}
}

func compare(b *testing.B, server *pgserver.Server) {
	url := pgtest.Database(b, server)
	initialise(b, url)
	pool, err := pgxpool.New(b.Context(), url+"&pool_max_conns=64")
	require.NoError(b, err)
	defer pool.Close()
	_, err = pool.Exec(b.Context(), "CREATE TABLE plain (k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 80)")
	require.NoError(b, err)
	e := open(b, url, pg.Options{})
	defer e.Close()
	g := gather.New(e, gather.Options{})
	defer g.Close()
	ratios(&bench{b, server, url, pool}, g)
}

// setting is an operation that stores a record.
func setting(name string, value []byte) gather.Operation {
	stored := append(record.AppendXT(nil, engine.Forever), value...)
	return gather.Operation{Keys: []engine.Key{key(name)}, Size: len(value), Updates: []ulog.Update{{Op: ulog.OpSet, Key: []byte(name), Value: stored}}}
}

func ratios(b *bench, g *gather.Gather) {
	value := slices.Repeat([]byte("v"), 100)
	ctx := context.Background()
	set := func(dice *rand.Rand) error {
		_, err := g.Do(ctx, setting(name(dice), value), nil)
		return err
	}
	get := func(dice *rand.Rand) error {
		_, err := g.Read(ctx, []engine.Key{key(name(dice))})
		return err
	}
	const upsert = "INSERT INTO plain VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
	pgxSet := func(dice *rand.Rand) error {
		_, err := b.pool.Exec(ctx, upsert, []byte(name(dice)), value)
		return err
	}
	pgxGet := func(dice *rand.Rand) error {
		var v []byte
		err := b.pool.QueryRow(ctx, "SELECT v FROM plain WHERE k = $1", []byte(name(dice))).Scan(&v)
		return err
	}
	pgxAdd := func(dice *rand.Rand) error {
		return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
			var v []byte
			k := []byte(name(dice))
			if err := tx.QueryRow(ctx, "SELECT v FROM plain WHERE k = $1 FOR UPDATE", k).Scan(&v); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE plain SET v = $2 WHERE k = $1", k, v)
			return err
		})
	}
	_, err := b.pool.Exec(ctx, "INSERT INTO plain SELECT ('key' || to_char(n, 'FM0000000'))::bytea, repeat('v', 100)::bytea FROM generate_series(0, $1::int - 1) n", spread)
	require.NoError(b.b, err)
	all := make([]gather.Operation, 0, 2*spread)
	for n := range spread {
		all = append(all, setting(fmt.Sprintf("key%07d", n), value))
	}
	one := []byte("1")
	for n := range spread {
		all = append(all, setting(fmt.Sprintf("nkey%07d", n), one))
	}
	for part := range slices.Chunk(all, 10000) {
		g.DoAll(ctx, part, nil, func(_ int, _ gather.Outcome, err error) { require.NoError(b.b, err) })
	}
	_, err = b.pool.Exec(ctx, "VACUUM ANALYZE")
	require.NoError(b.b, err)

	const chooseKey = `\set k random(0, 99999)
`
	const chosen = "('key' || to_char(:k::int, 'FM0000000'))::bytea"
	scripts := map[string]string{
		"upsert": chooseKey + "INSERT INTO plain VALUES (" + chosen + ", repeat('v', 100)::bytea) ON CONFLICT (k) DO UPDATE SET v = excluded.v;\n",
		"select": chooseKey + "SELECT v FROM plain WHERE k = " + chosen + ";\n",
		"transaction": chooseKey + "BEGIN;\nSELECT v FROM plain WHERE k = " + chosen + " FOR UPDATE;\nUPDATE plain SET v = repeat('v', 100)::bytea WHERE k = " +
			chosen + ";\nCOMMIT;\n",
	}
	var loads []load
	for _, name := range []string{"upsert", "select", "transaction"} {
		for _, mode := range []string{"prepared", "simple"} {
			loads = append(loads, b.pgbench(name, mode, scripts[name]))
		}
	}
	loads = append(loads,
		b.callersDo("pgx transaction", callers, pgxAdd), b.callersDo("pgx upsert", callers, pgxSet),
		b.callersDo("set", callers, set), b.callersDo("get", callers, get),
		b.callersDo("increment of 100,000 keys", callers, func(dice *rand.Rand) error { return add(ctx, g, "n"+name(dice)) }),
		b.callersDo("increment of 10,000 keys", callers, func(dice *rand.Rand) error { return add(ctx, g, fmt.Sprint("some", dice.IntN(10000))) }),
		b.callersDo("increment of 10 keys", callers, func(dice *rand.Rand) error { return add(ctx, g, fmt.Sprint("hot", dice.IntN(10))) }),
		b.callersDo("pgx upsert, one caller", 1, pgxSet), b.callersDo("set, one caller", 1, set),
		b.callersDo("pgx get, one caller", 1, pgxGet), b.callersDo("get, one caller", 1, get))
	have := b.inTurns(loads)
	for _, of := range []struct{ name, beside, unit string }{
		{"set", "upsert, prepared", "rate-set/prepared"}, {"set", "upsert, simple", "rate-set/simple"},
		{"increment of 100,000 keys", "transaction, prepared", "rate-add/prepared"}, {"increment of 100,000 keys", "transaction, simple", "rate-add/simple"},
		{"increment of 100,000 keys", "pgx transaction", "rate-add/pgx"}, {"increment of 10,000 keys", "pgx transaction", "rate-add-some/pgx"},
		{"increment of 10 keys", "pgx transaction", "rate-add-hot/pgx"},
		{"set, one caller", "pgx upsert, one caller", "rate-set-one/pgx"}, {"get, one caller", "pgx get, one caller", "rate-get-one/pgx"},
	} {
		b.b.ReportMetric(have[of.name].rate/have[of.beside].rate, of.unit)
	}
	for _, of := range []struct{ name, beside, unit string }{
		{"set", "upsert, prepared", "cpu-prepared/set"}, {"set", "upsert, simple", "cpu-simple/set"},
		{"get", "select, prepared", "cpu-prepared/get"}, {"get", "select, simple", "cpu-simple/get"},
		{"increment of 100,000 keys", "transaction, prepared", "cpu-prepared/add"},
	} {
		b.b.ReportMetric(float64(have[of.beside].cpu)/float64(have[of.name].cpu), of.unit)
	}
}

// BenchmarkUnderASnapshot tells whether groups get slower while somebody has a snapshot open and
// forgets it: the median of a set in the last ten of 60 seconds, by that of the first ten. There are
// many keys: versions of a record that is updated often do collect, and each update of it passes
// over them. The server has room for all of them in its buffers.
//
// At full speed three and more versions of each record collect in a minute, which no engine that
// keeps versions can help. At a steady rate what grows would be the engine's own rows.
func BenchmarkUnderASnapshot(b *testing.B) {
	for name, rate := range map[string]int{"steady": 5000, "full": 0} {
		b.Run(name, func(b *testing.B) { underASnapshot(b, rate) })
	}
}

// underASnapshot makes so many sets a second, 0 for as many as it can.
func underASnapshot(b *testing.B, rate int) {
	url := pgtest.Database(b, pgtest.Own(b, "shared_buffers = 1GB", "max_wal_size = 8GB", "checkpoint_timeout = 30min"))
	initialise(b, url)
	e := open(b, url, pg.Options{})
	defer e.Close()
	g := gather.New(e, gather.Options{})
	defer g.Close()
	const keys, callers = 1000000, 16
	_, err := direct(b, url).Exec(b.Context(), `INSERT INTO gotycoon.r0
		SELECT ('key' || to_char(n, 'FM0000000'))::bytea, '1', $1, 2 FROM generate_series(0, $2::int - 1) n`, engine.Forever, keys)
	require.NoError(b, err)
	snap, err := e.Snapshot(b.Context(), 0)
	require.NoError(b, err)
	defer snap.Close()
	_, err = snap.Scan(b.Context(), engine.Scan{Edge: true, Limit: 1})
	require.NoError(b, err)
	median := func(d time.Duration) time.Duration {
		var took []time.Duration
		var mu sync.Mutex
		var work sync.WaitGroup
		from := time.Now()
		for i := range callers {
			dice := rand.New(rand.NewPCG(uint64(i), uint64(from.UnixNano())))
			work.Go(func() {
				for n := 0; time.Since(from) < d; n++ {
					if rate > 0 {
						//lint:sleep the rate of a measurement
						time.Sleep(time.Until(from.Add(time.Duration(n*callers+i) * time.Second / time.Duration(rate))))
					}
					began := time.Now()
					_, err := g.Do(b.Context(), setting(fmt.Sprintf("key%07d", dice.IntN(keys)), []byte("1")), nil)
					if err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		work.Wait()
		slices.Sort(took)
		return took[len(took)/2]
	}
	first := median(10 * time.Second)
	median(40 * time.Second)
	last := median(10 * time.Second)
	b.Logf("median at first %v, after 50 s %v", first, last)
	b.ReportMetric(float64(last)/float64(first), "later/first")
}
