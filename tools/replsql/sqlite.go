package replsql

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	"modernc.org/sqlite"
)

// sqliteDB is a table in a file of SQLite.
type sqliteDB struct {
	names
	db *sql.DB
}

// pragmas: readers are not blocked by a transaction, writers wait for each other, and a committed
// transaction survives a power cut. A transaction takes the write lock when it begins, so that the
// position that it reads stays the position.
const pragmas = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate"

func openSQLite(ctx context.Context, path string, n names) (store, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+pragmas)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	s := &sqliteDB{names: n, db: db}
	for _, statement := range s.schema("BLOB") {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if _, err := db.ExecContext(ctx, s.first(), s.feed); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func (s *sqliteDB) position(ctx context.Context) (at int64, err error) {
	return at, s.db.QueryRowContext(ctx, s.read(), s.feed).Scan(&at)
}

func (s *sqliteDB) apply(ctx context.Context, lines []change) (applied int, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	applied, err = s.applyIn(ctx, tx, lines)
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	return applied, tx.Commit()
}

func (s *sqliteDB) applyIn(ctx context.Context, tx *sql.Tx, lines []change) (int, error) {
	prepared := map[string]*sql.Stmt{}
	run := func(statement string, args ...any) error {
		stmt := prepared[statement]
		if stmt == nil {
			var err error
			if stmt, err = tx.PrepareContext(ctx, statement); err != nil {
				return err
			}
			prepared[statement] = stmt // closed with the transaction
		}
		_, err := stmt.ExecContext(ctx, args...)
		return err
	}
	var at int64
	if err := tx.QueryRowContext(ctx, s.read(), s.feed).Scan(&at); err != nil {
		return 0, err
	}
	to, applied, err := s.execute(lines, at, run)
	if err != nil || applied == 0 {
		return 0, err
	}
	return applied, run(s.move(), to, s.feed)
}

// Error codes of SQLite. The low byte of an extended code is the code it belongs to.
const (
	codeBusy   = 5
	codeLocked = 6
)

func (s *sqliteDB) transient(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xFF == codeBusy || e.Code()&0xFF == codeLocked)
}

func (s *sqliteDB) close() error { return s.db.Close() }
