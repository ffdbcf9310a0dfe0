package pg_test

import (
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
// run say anything. Each phase begins behind a checkpoint, and there is no autovacuum: it would count
// for a later phase.
//
//	go test -run '^$' -bench Ratios -benchtime 1x ./db/engine/pg
const (
	callers = 64
	phase   = 4 * time.Second
	spread  = 100000 // keys
)

// figure is what a phase has shown.
type figure struct {
	rate float64       // operations per second
	cpu  time.Duration // of PostgreSQL, per operation
}

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

// measure lets n callers do something for a while.
func (b *bench) measure(name string, n int, do func(dice *rand.Rand) error) figure {
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
	return b.show(name, figure{float64(total) / time.Since(began).Seconds(), (b.cpu() - before) / time.Duration(max(1, total))})
}

func (b *bench) checkpoint() {
	_, err := b.pool.Exec(context.Background(), "CHECKPOINT")
	require.NoError(b.b, err)
}

func (b *bench) show(name string, f figure) figure {
	b.b.Logf("%-34s %8.0f/s  engine %6.1f µs", name, f.rate, float64(f.cpu.Nanoseconds())/1000)
	return f
}

// pgbench runs PostgreSQL's own benchmark with a script. In the mode simple, which is its default,
// each statement is planned, in the mode prepared the first one only.
func (b *bench) pgbench(name, mode, script string) figure {
	b.checkpoint()
	path := filepath.Join(b.b.TempDir(), "script")
	require.NoError(b.b, os.WriteFile(path, []byte(script), 0o600))
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
	return b.show(name+", "+mode, figure{float64(done) / phase.Seconds(), cpu / time.Duration(done)})
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

	const key = `\set k random(0, 99999)
`
	upsertScript := key + "INSERT INTO plain VALUES (('key' || to_char(:k::int, 'FM0000000'))::bytea, repeat('v', 100)::bytea) ON CONFLICT (k) DO UPDATE SET v = excluded.v;\n"
	selectScript := key + "SELECT v FROM plain WHERE k = ('key' || to_char(:k::int, 'FM0000000'))::bytea;\n"
	upserts, simpleUpserts := b.pgbench("pgbench upsert, no log", "prepared", upsertScript), b.pgbench("pgbench upsert, no log", "simple", upsertScript)
	selects, simpleSelects := b.pgbench("pgbench select", "prepared", selectScript), b.pgbench("pgbench select", "simple", selectScript)
	sets := b.measure("set, in groups, logged", callers, set)
	gets := b.measure("get, gathered", callers, get)
	added := b.measure("increment, in groups, logged", callers, func(dice *rand.Rand) error { return add(ctx, g, "n"+name(dice)) })
	hot := b.measure("increment of 10 keys", callers, func(dice *rand.Rand) error { return add(ctx, g, fmt.Sprint("hot", dice.IntN(10))) })
	transactions := b.measure("pgx transaction of 4 statements", callers, pgxAdd)
	b.measure("pgx upsert", callers, pgxSet)
	pgxOne, oneSet := b.measure("pgx upsert, one caller", 1, pgxSet), b.measure("set, one caller", 1, set)
	pgxOneGet, oneGet := b.measure("pgx get, one caller", 1, pgxGet), b.measure("get, one caller", 1, get)
	for _, r := range []struct {
		name string
		have float64
	}{
		{"set-rate/pgbench", sets.rate / upserts.rate}, {"set-cpu-saved", float64(upserts.cpu) / float64(sets.cpu)},
		{"set-rate/simple", sets.rate / simpleUpserts.rate}, {"set-cpu-saved/simple", float64(simpleUpserts.cpu) / float64(sets.cpu)},
		{"get-cpu-saved", float64(selects.cpu) / float64(gets.cpu)}, {"get-cpu-saved/simple", float64(simpleSelects.cpu) / float64(gets.cpu)},
		{"increment-rate/transaction", added.rate / transactions.rate}, {"hot-rate/transaction", hot.rate / transactions.rate},
		{"one-set-time/pgx", pgxOne.rate / oneSet.rate}, {"one-get-time/pgx", pgxOneGet.rate / oneGet.rate},
	} {
		b.b.ReportMetric(r.have, r.name)
	}
}

// BenchmarkUnderASnapshot tells whether groups get slower while somebody has a snapshot open and
// forgets it: the median of a set in the last ten of 60 seconds, by that of the first ten. There are
// many keys: versions of a record that is updated often do collect, and each update of it passes
// over them.
func BenchmarkUnderASnapshot(b *testing.B) {
	url := setUp(b)
	e := open(b, url, pg.Options{})
	defer e.Close()
	g := gather.New(e, gather.Options{})
	defer g.Close()
	const keys = 1000000
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
		until := time.Now().Add(d)
		for i := range 16 {
			dice := rand.New(rand.NewPCG(uint64(i), 2))
			work.Go(func() {
				for time.Now().Before(until) {
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
