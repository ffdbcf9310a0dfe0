package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Figures are what PostgreSQL says of itself to those who watch it. They cost it about as much as a
// read, unlike Status.
type Figures struct {
	Version    string
	Standby    bool   // nothing can be written here
	Durability string // as in Status
	Weak       bool

	LogBytes int64
	LogAge   *time.Duration // of the oldest update in the log; nil: it has none
	LogKeep  time.Duration  // Options.KeepFor
	// HorizonAge is for how long the first of those has been at work who keep the log's readers
	// from going on, because they have a stamp and have not committed. 0: nobody does.
	HorizonAge        time.Duration
	DeadTuples        int64         // versions of records that nobody can see, and that still take room
	OldestTransaction time.Duration // of anybody in this PostgreSQL database
	// ReplicaLag is how far the slowest standby is behind, or, at a standby, how old its state is.
	// nil: there is none, or PostgreSQL does not show it to our role.
	ReplicaLag *time.Duration
}

// A standby that has everything reports no lag any more, so NULL means 0 if its state can be seen.
const figuresSQL = `SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('synchronous_commit'),
	current_setting('synchronous_standby_names'), current_setting('fsync'),
	pg_total_relation_size('groups_0') + pg_total_relation_size('groups_1') + pg_total_relation_size('groups_2'),
	(extract(epoch FROM clock_timestamp()) - least((SELECT min(stamp) FROM groups_0), (SELECT min(stamp) FROM groups_1),
		(SELECT min(stamp) FROM groups_2)) / 1e9)::float8,
	(SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_all_tables WHERE schemaname = 'gotycoon'),
	(SELECT coalesce(extract(epoch FROM clock_timestamp() - min(xact_start)), 0)::float8 FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()),
	(SELECT coalesce(max(extract(epoch FROM clock_timestamp() - a.query_start)), 0)::float8 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.granted AND a.datname = current_database()
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
	CASE WHEN pg_is_in_recovery() THEN extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8
		ELSE (SELECT max(extract(epoch FROM coalesce(replay_lag, '0')))::float8 FROM pg_stat_replication WHERE state = 'streaming') END`

// Figures asks PostgreSQL for its figures.
func (e *Engine) Figures(ctx context.Context) (f Figures, err error) {
	var commit, standbys, fsync string
	var oldest, horizon float64
	var age, lag *float64
	err = e.with(ctx, e.others, func(c *pgxpool.Conn) error {
		return c.QueryRow(ctx, figuresSQL, uint32(classStamping)).Scan(
			&f.Version, &f.Standby, &commit, &standbys, &fsync, &f.LogBytes, &age, &f.DeadTuples, &oldest, &horizon, &lag)
	})
	if err != nil {
		return Figures{}, err
	}
	f.Durability, f.Weak = durability(commit, standbys, fsync)
	f.LogKeep = e.opts.KeepFor
	seconds := func(of float64) time.Duration { return time.Duration(max(0, of) * float64(time.Second)) }
	f.OldestTransaction, f.HorizonAge = seconds(oldest), seconds(horizon)
	if age != nil {
		f.LogAge = new(seconds(*age))
	}
	if lag != nil {
		f.ReplicaLag = new(seconds(*lag))
	}
	return f, nil
}

// Connections returns how many connections this server has to PostgreSQL.
func (e *Engine) Connections() (n int) {
	for _, p := range e.pools() {
		n += int(p.Stat().TotalConns())
	}
	return n
}
