package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"gotycoon/db/engine"
)

// A pooler that gives each transaction another connection, as pgbouncer does with
// pool_mode=transaction, is not for us: locks, prepared statements and settings belong to sessions.
// And the settings that we ask for would be those of other programs from then on. So it is refused
// before anything else is said to PostgreSQL.

var errPooler error = &engine.Error{Kind: engine.Refused, Err: errors.New(
	"between this program and PostgreSQL is a pooler (pgbouncer) that gives each transaction another connection: " +
		"connect to PostgreSQL itself, or set pool_mode=session for this database")}

// connectTo makes a connection, unless it leads to such a pooler.
func connectTo(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, err
	}
	if err = refusePooler(ctx, c, config); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	return c, nil
}

// refusePooler looks which process of PostgreSQL serves a connection. Without a pooler it is the
// one that was announced at the beginning. With one, and sessions, it stays the same, and another
// connection has another one.
func refusePooler(ctx context.Context, one *pgx.Conn, config *pgx.ConnConfig) error {
	first, err := process(ctx, one)
	if err != nil || first == one.PgConn().PID() {
		return err
	}
	two, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return err
	}
	defer two.Close(ctx)
	// In this order each connection meets another process where a pooler takes one after the other,
	// however many it has.
	second, err := process(ctx, two)
	if err != nil {
		return err
	}
	third, err := process(ctx, two)
	if err != nil {
		return err
	}
	fourth, err := process(ctx, one)
	if err == nil && (first == second || second != third || first != fourth) {
		err = errPooler
	}
	return err
}

// process returns the process that serves a connection. The statement is not prepared: a pooler
// would look for it in another process.
func process(ctx context.Context, c *pgx.Conn) (pid uint32, err error) {
	err = c.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
	return pid, err
}
