package replsql

import (
	"context"
	"fmt"
	"strings"
)

// store is the database that has the table.
type store interface {
	// position returns the stamp of the last line that is in the table, 0 when there is none.
	position(ctx context.Context) (int64, error)

	// apply applies the lines behind the position in one transaction, and moves the position to the
	// last line. After an error it is not known whether the transaction was committed: the next
	// call reads the position and finds out.
	apply(ctx context.Context, lines []change) (applied int, err error)

	// transient reports whether apply may be called again after this error, because the database
	// was not there or was busy.
	transient(err error) bool

	close() error
}

// names are the name of the table, and the name of the feed, whose row has the position.
type names struct {
	table string
	feed  string
}

// positions is the name of the table with the positions.
func (n names) positions() string { return n.table + "_position" }

// openStore opens the database that a target names, and creates missing tables.
func openStore(ctx context.Context, target string, n names) (store, error) {
	if path, ok := strings.CutPrefix(target, "sqlite:"); ok {
		return openSQLite(ctx, path, n)
	}
	if strings.HasPrefix(target, "postgres://") || strings.HasPrefix(target, "postgresql://") {
		return openPostgres(ctx, target, n)
	}
	return nil, fmt.Errorf("%q: a database is postgres://USER@HOST/NAME or sqlite:FILE", target)
}

// schema returns the statements that create the tables. Keys are byte strings, as in the server.
// expires is in seconds since 1970, NULL for a record that does not expire.
func (n names) schema(bytes string) []string {
	return []string{
		fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s (dbid INTEGER NOT NULL, key %[2]s NOT NULL, value %[2]s NOT NULL,
			expires BIGINT, stamp BIGINT NOT NULL, sid INTEGER NOT NULL, PRIMARY KEY (dbid, key))`, n.table, bytes),
		fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (feed TEXT PRIMARY KEY, stamp BIGINT NOT NULL)`, n.positions()),
	}
}

// statement returns the statement that applies a line, "" for a line that changes nothing.
func (n names) statement(c change) (sql string, args []any) {
	switch c.op {
	case opSet:
		return fmt.Sprintf(`INSERT INTO %s (dbid, key, value, expires, stamp, sid) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (dbid, key) DO UPDATE SET value = excluded.value, expires = excluded.expires,
			stamp = excluded.stamp, sid = excluded.sid`, n.table), []any{c.dbid, c.key, c.value, c.expires, c.stamp, c.sid}
	case opRemove:
		return fmt.Sprintf(`DELETE FROM %s WHERE dbid = $1 AND key = $2`, n.table), []any{c.dbid, c.key}
	case opClear:
		return fmt.Sprintf(`DELETE FROM %s WHERE dbid = $1`, n.table), []any{c.dbid}
	}
	return "", nil
}

// first creates the row of the feed if it is missing.
func (n names) first() string {
	return fmt.Sprintf(`INSERT INTO %s (feed, stamp) VALUES ($1, 0) ON CONFLICT (feed) DO NOTHING`, n.positions())
}

// read returns the position.
func (n names) read() string {
	return fmt.Sprintf(`SELECT stamp FROM %s WHERE feed = $1`, n.positions())
}

// move changes the position.
func (n names) move() string {
	return fmt.Sprintf(`UPDATE %s SET stamp = $1 WHERE feed = $2`, n.positions())
}

// execute runs the statements of the lines behind the position at, and returns the new position.
// The caller is in a transaction that holds a lock on the row of the position.
func (n names) execute(lines []change, at int64, run func(sql string, args ...any) error) (to int64, applied int, err error) {
	for _, c := range lines {
		if c.stamp <= at {
			continue
		}
		at = c.stamp
		applied++
		if sql, args := n.statement(c); sql != "" {
			if err := run(sql, args...); err != nil {
				return 0, 0, fmt.Errorf("the line with ts=%d: %w", c.stamp, err)
			}
		}
	}
	return at, applied, nil
}
