package pg

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"gotycoon/db/engine"
)

// Options of an Engine. Zero values take the defaults.
type Options struct {
	Addr    string        // of this server, for those who ask who holds a lease
	Lanes   int           // groups that are written at a time; 4
	Readers int           // requests of reads at a time; 4
	Hold    time.Duration // for how long keys are held; 5 s
	Lease   time.Duration // for how long a lease lasts without renewal; 10 s
	// For how long, and up to how many bytes, the engine keeps its log; 1 h, 4 GiB. Who asks for
	// more than is there gets engine.ErrTrimmed.
	KeepFor   time.Duration
	KeepBytes int64
	// ReadOnly is for a standby: nothing can be written.
	ReadOnly bool
}

func (o *Options) setDefaults() {
	for _, d := range []struct {
		option *time.Duration
		value  time.Duration
	}{
		{&o.Hold, 5 * time.Second}, {&o.Lease, 10 * time.Second}, {&o.KeepFor, time.Hour},
	} {
		if *d.option == 0 {
			*d.option = d.value
		}
	}
	if o.Lanes == 0 {
		o.Lanes = 4
	}
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = 4 << 30
	}
}

// others is how many connections serve transactions, snapshots, claims and what an engine does by
// itself.
const others = 8

// Engine is one server's way to a PostgreSQL.
type Engine struct {
	opts   Options
	config *pgx.ConnConfig
	meta   meta
	// Pools of their own: neither a hundred transactions that wait for a lock nor a thousand
	// readers keep a lane from writing.
	lanes, readers, others *pgxpool.Pool
	tables                 sync.Map // of databases (uint16) that are known to have their tables
	clock                  clock

	holdsMu sync.Mutex
	holds   map[uint64]*hold // by lane

	ownMu sync.Mutex
	own   engine.GroupID // of the last group that the engine itself has made, see ownID

	ctx  context.Context // ends with Close
	end  func()
	work sync.WaitGroup // goroutines, and snapshots and transactions that are open
}

var _ engine.Engine = (*Engine)(nil)

// Open opens the engine at a URL, which is one of libpq's with all that it may have (several hosts,
// service=, passfile=). It fails if gotycoon was never set up there, or by another version, and
// where the connection cannot do what the engine needs.
func Open(ctx context.Context, url string, o Options) (*Engine, error) {
	o.setDefaults()
	pool, err := configure(url, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	first, err := connectTo(ctx, pool.ConnConfig)
	if err != nil {
		return nil, mean(err, false)
	}
	_ = first.Close(ctx)
	e := &Engine{opts: o, config: pool.ConnConfig, holds: map[uint64]*hold{}}
	e.ctx, e.end = context.WithCancel(context.Background())
	for _, p := range []struct {
		pool **pgxpool.Pool
		most int
	}{{&e.lanes, o.Lanes + 2}, {&e.readers, o.Readers}, {&e.others, others}} {
		one := pool.Copy()
		one.MaxConns = int32(p.most)
		if *p.pool, err = pgxpool.NewWithConfig(ctx, one); err != nil {
			e.closePools()
			return nil, err
		}
	}
	if err := e.begin(ctx); err != nil {
		e.closePools()
		return nil, err
	}
	return e, nil
}

// begin asks what is there, and begins to look after it.
func (e *Engine) begin(ctx context.Context) error {
	c, err := e.others.Acquire(ctx)
	if err != nil {
		return mean(err, false)
	}
	defer c.Release()
	if e.meta, err = readMeta(ctx, c.Conn()); err != nil {
		return err
	}
	if err := e.clock.set(ctx, c.Conn()); err != nil {
		return mean(err, false)
	}
	e.work.Go(e.tend)
	return nil
}

// configure returns how connections of all kinds are made.
func configure(url string, readOnly bool) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("the engine's URL: %w", err)
	}
	if !readOnly && pool.ConnConfig.ValidateConnect == nil {
		// of several hosts the one that takes updates, and after a failover another one
		pool.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if pool.ConnConfig.RuntimeParams["application_name"] == "" {
		pool.ConnConfig.RuntimeParams["application_name"] = "gotycoon"
	}
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	pool.MaxConnLifetime = 24 * time.Hour
	pool.MaxConnIdleTime = 10 * time.Minute
	pool.BeforeConnect = guardCommits
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol)
		if g := guardOf(c); g != nil {
			g.warned.Store(false) // the greeting may have one, of another library for languages
		}
		return err
	}
	return pool, nil
}

// settings of a session, where the server knows them.
//
//   - Plans are made once, and look up one key after the other: a plan for an empty table must not
//     stay when the table is large.
//   - Time limits that an administrator has given to the role are not for us.
//   - A server that has vanished is noticed within some seconds, so its locks end.
const settings = `SELECT set_config(s.name, s.value, false) FROM (VALUES
	('search_path', 'gotycoon'), ('default_transaction_isolation', 'read committed'),
	('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
	('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off'),
	('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
	('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '3'),
	('client_connection_check_interval', '2000')
) s(name, value) JOIN pg_settings USING (name)`

// Close ends this server's use of the engine. Snapshots and transactions that are open end.
func (e *Engine) Close() error {
	e.end()
	e.holdsMu.Lock()
	open := make([]*hold, 0, len(e.holds))
	for _, h := range e.holds {
		open = append(open, h)
	}
	clear(e.holds)
	e.holdsMu.Unlock()
	for _, h := range open {
		h.release()
	}
	e.work.Wait()
	e.closePools()
	return nil
}

// closePools closes all connections, once they are idle.
func (e *Engine) closePools() {
	for _, p := range []*pgxpool.Pool{e.lanes, e.readers, e.others} {
		if p != nil {
			p.Close()
		}
	}
}

// Limits returns what the engine can do. A key must fit into a page of an index, with others.
func (e *Engine) Limits() engine.Limits {
	return engine.Limits{Key: 2600, Value: 256 << 20, Changes: 1 << 16, Bytes: 400 << 20, Hold: e.opts.Hold}
}

// Now returns PostgreSQL's clock.
func (e *Engine) Now() int64 { return e.clock.now() }
