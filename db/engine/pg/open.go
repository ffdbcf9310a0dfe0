package pg

import (
	"context"
	"crypto/rand"
	"net"
	"sync"
	"sync/atomic"
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
	Notice  time.Duration // after how long without an answer a connection is looked at; 1.5 s
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
		{&o.Hold, 5 * time.Second}, {&o.Lease, 10 * time.Second}, {&o.KeepFor, time.Hour}, {&o.Notice, 1500 * time.Millisecond},
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

// Connections beside those of lanes and readers. Clients can take all of one kind, and nothing else
// waits for it.
const (
	prompt       = 4 // what takes a moment: leases, the clock, numbers of lanes, sweeps, claims, figures
	claiming     = 3 // of these: clients can have any number of claims under way, and their lease must last
	waiting      = 4 // groups that wait for who has their database alone
	transactions = 8
	long         = 6 // snapshots, and reads of the log
)

// Engine is one server's way to a PostgreSQL.
type Engine struct {
	opts   Options
	config *pgx.ConnConfig
	meta   meta
	// Pools of their own: neither a hundred transactions that wait for a lock nor a thousand
	// readers keep a lane from writing, or a lease from being renewed.
	lanes, readers, others, waiting, transactions, long *pgxpool.Pool

	claiming chan struct{} // who makes a call of claims

	epoch atomic.Uint64 // number of the last connection for groups

	tables sync.Map // of databases (uint16) that are known to have their tables
	clock  clock

	watched watched

	holdsMu sync.Mutex
	holds   map[uint64]*hold     // by lane
	writes  map[uint64]time.Time // by lane, when its last group was written

	writer [16]byte // this server, among the writers of lanes
	drawn  sync.Map // all numbers of lanes (uint64) that this server was given

	own     chan engine.GroupID // of the last group that the engine itself has made, see ownID
	ownLost atomic.Uint64       // the last lane of such groups that was another server's

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
	e := &Engine{
		opts: o, config: pool.ConnConfig, claiming: make(chan struct{}, claiming), own: make(chan engine.GroupID, 1), holds: map[uint64]*hold{},
		writes: map[uint64]time.Time{}, watched: watched{links: map[*link]bool{}},
	}
	_, _ = rand.Read(e.writer[:]) // it never fails
	e.own <- engine.GroupID{}
	e.ctx, e.end = context.WithCancel(context.Background())
	set := pool.AfterConnect
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		l := linkOf(c.PgConn())
		if l == nil {
			return set(ctx, c)
		}
		l.pid.Store(c.PgConn().PID())
		l.gone = func() { e.watched.remove(l) }
		e.watched.add(l)
		if err := set(ctx, c); err != nil {
			return err
		}
		var pid uint32 // behind a pooler another one than was announced
		err := c.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
		l.pid.Store(pid)
		return err
	}
	for _, p := range []struct {
		pool **pgxpool.Pool
		most int
	}{{&e.lanes, o.Lanes + 2}, {&e.readers, o.Readers}, {&e.others, prompt},
		{&e.waiting, waiting}, {&e.transactions, transactions}, {&e.long, long}} {
		one := pool.Copy()
		one.MaxConns = int32(p.most)
		if p.pool == &e.lanes || p.pool == &e.waiting {
			one.AfterConnect = e.counted(pool.AfterConnect)
		}
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

// counted has each new connection begin an epoch, once it is ready.
func (e *Engine) counted(ready func(context.Context, *pgx.Conn) error) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, c *pgx.Conn) error {
		err := ready(ctx, c)
		if l := linkOf(c.PgConn()); l != nil && err == nil {
			l.epoch.Store(e.epoch.Add(1))
		}
		return err
	}
}

// Epoch returns the number of the newest connection for groups.
func (e *Engine) Epoch() uint64 { return max(1, e.epoch.Load()) }

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
	e.work.Go(e.watch)
	return nil
}

// configure returns how connections of all kinds are made.
func configure(url string, readOnly bool) (*pgxpool.Config, error) {
	pool, err := parse(url)
	if err != nil {
		return nil, err
	}
	if !readOnly && pool.ConnConfig.ValidateConnect == nil {
		// of several hosts the one that takes updates, and after a failover another one
		pool.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = 3 * time.Second
	}
	pool.ConnConfig.DialFunc = (&net.Dialer{Control: control, KeepAliveConfig: keepAlive}).DialContext
	if pool.ConnConfig.RuntimeParams["application_name"] == "" {
		pool.ConnConfig.RuntimeParams["application_name"] = "gotycoon"
	}
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	pool.MaxConnLifetime = 24 * time.Hour
	pool.MaxConnIdleTime = 10 * time.Minute
	pool.PingTimeout = time.Second // of a connection that was idle, before it is used
	pool.BeforeConnect = guardCommits
	pool.ConnConfig.OnNotice = heed
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	return pool, nil
}

// keepAlive finds out that the other side of an idle connection has vanished.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// settings of a session, where the server knows them.
//
//   - Plans are made once, and look up one key after the other: a plan for an empty table must not
//     stay when the table is large.
//   - Time limits that an administrator has given to the role are not for us. Warnings are, see
//     heed.
//   - A server that has vanished is noticed within some seconds, so its locks end.
//
// Names are whole, see owner.go.
const settings = `SELECT pg_catalog.set_config(s.name, s.value, false) FROM (VALUES
	('search_path', 'gotycoon'), ('default_transaction_isolation', 'read committed'),
	('plan_cache_mode', 'force_generic_plan'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
	('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off'),
	('client_min_messages', 'warning'), ('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_in_transaction_session_timeout', '0'),
	('idle_session_timeout', '0'), ('transaction_timeout', '0'),
	('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '8000'),
	('client_connection_check_interval', '2000')
) s(name, value) JOIN pg_catalog.pg_settings p ON p.name OPERATOR(pg_catalog.=) s.name`

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
	for _, p := range e.pools() {
		if p != nil {
			p.Close()
		}
	}
}

func (e *Engine) pools() []*pgxpool.Pool {
	return []*pgxpool.Pool{e.lanes, e.readers, e.others, e.waiting, e.transactions, e.long}
}

// acquire returns a connection. Those that clients can take for long may all be in use.
func (e *Engine) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	c, err := pool.Acquire(ctx)
	if err != nil && ctx.Err() != nil && (pool == e.transactions || pool == e.long) {
		if s := pool.Stat(); s.AcquiredConns() == s.MaxConns() {
			return nil, engine.ErrCrowded
		}
	}
	return c, mean(err, false)
}

// Limits returns what the engine can do. A key must fit into a page of an index, with others.
func (e *Engine) Limits() engine.Limits {
	return engine.Limits{Key: 2600, Value: 256 << 20, Changes: 1 << 16, Bytes: 400 << 20, Hold: e.opts.Hold}
}

// Now returns PostgreSQL's clock in seconds.
func (e *Engine) Now() int64 { return e.clock.now().Unix() }

// Clock returns PostgreSQL's clock.
func (e *Engine) Clock() time.Time { return e.clock.now() }
