package replsql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// closeLimit bounds the time for telling PostgreSQL that a connection ends.
const closeLimit = 5 * time.Second

// postgres is a table in PostgreSQL. The call that follows a broken connection makes a new one.
type postgres struct {
	names
	config *pgx.ConnConfig
	conn   *pgx.Conn // nil: none
}

func openPostgres(ctx context.Context, target string, n names) (store, error) {
	config, err := pgx.ParseConfig(target)
	if err != nil {
		return nil, err
	}
	p := &postgres{names: n, config: config}
	return p, p.connect(ctx)
}

// connect makes sure that there is a connection, and that the tables exist.
func (p *postgres) connect(ctx context.Context) error {
	if p.conn != nil && !p.conn.IsClosed() {
		return nil
	}
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	p.conn = conn
	if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return p.prepare(ctx, tx) }); err != nil {
		return errors.Join(err, p.close())
	}
	return nil
}

// setupLock is the number of an advisory lock around the creation of the tables: in PostgreSQL
// "CREATE TABLE IF NOT EXISTS" fails if another transaction creates the table at the same moment.
const setupLock = 0x6b7472657073716c

// prepare makes sure that the tables and the row of the position exist.
func (p *postgres) prepare(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(setupLock)); err != nil {
		return err
	}
	for _, sql := range p.schema("BYTEA") {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, p.first(), p.feed)
	return err
}

func (p *postgres) position(ctx context.Context) (at int64, err error) {
	if err := p.connect(ctx); err != nil {
		return 0, err
	}
	return at, p.conn.QueryRow(ctx, p.read(), p.feed).Scan(&at)
}

func (p *postgres) apply(ctx context.Context, lines []change) (applied int, err error) {
	if err := p.connect(ctx); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		applied, err = p.applyIn(ctx, tx, lines)
		return err
	})
	return applied, err
}

// applyIn sends all statements in one round trip.
func (p *postgres) applyIn(ctx context.Context, tx pgx.Tx, lines []change) (int, error) {
	var at int64
	if err := tx.QueryRow(ctx, p.read()+" FOR UPDATE", p.feed).Scan(&at); err != nil {
		return 0, fmt.Errorf("read the position of feed %s: %w", p.feed, err)
	}
	var batch pgx.Batch
	to, applied, err := p.execute(lines, at, func(sql string, args ...any) error {
		batch.Queue(sql, args...)
		return nil
	})
	if err != nil || applied == 0 {
		return 0, err
	}
	batch.Queue(p.move(), to, p.feed)
	return applied, tx.SendBatch(ctx, &batch).Close()
}

// transient implements store. An error without an answer of PostgreSQL is about the connection, and
// is transient. Of the answers, those are transient that speak of PostgreSQL's own troubles: class
// 08 connection, 40 another transaction, 53 resources, 55 a lock, 57 shutdown.
func (p *postgres) transient(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return true
	}
	for _, class := range []string{"08", "40", "53", "55", "57"} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return false
}

func (p *postgres) close() error {
	if p.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	conn := p.conn
	p.conn = nil
	return conn.Close(ctx)
}
