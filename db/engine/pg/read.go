package pg

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"gotycoon/db/engine"
)

// Read returns the records of keys, by one statement: it sees one moment.
func (e *Engine) Read(ctx context.Context, keys []engine.Key, hold engine.Hold) (recs []engine.Record, err error) {
	for i := range keys {
		if i == 0 || keys[i-1].DB != keys[i].DB {
			if err := e.table(ctx, keys[i].DB); err != nil {
				return nil, err
			}
		}
	}
	if hold.Lane != 0 && e.opts.Hold > 0 && len(keys) > 0 {
		return e.hold(ctx, keys, hold)
	}
	c, err := e.readers.Acquire(ctx)
	if err != nil {
		return nil, mean(err, false)
	}
	if len(keys) == 0 {
		err = c.Ping(ctx)
	} else {
		var rows pgx.Rows
		rows, err = c.Query(ctx, readText(keys), readArgs(keys)...)
		if err == nil {
			recs, err = collect(rows, keys)
		}
	}
	return recs, e.done(c, e.readers, err, false)
}

// readText returns the statement that reads keys: an arm for each database, and a shorter one for
// a single key, which is planned and carried out quicker. Records with the revision 0 are what hold
// has stored in this transaction.
func readText(keys []engine.Key) string {
	if len(keys) == 1 {
		return fmt.Sprintf("SELECT %d, k, xt, ver, v FROM r%[1]d WHERE k = $1 AND ver > 0", keys[0].DB)
	}
	var arms []string
	for i := range keys {
		if i == 0 || keys[i-1].DB != keys[i].DB {
			arms = append(arms, fmt.Sprintf("SELECT %d, k, xt, ver, v FROM r%[1]d WHERE k = ANY($%d) AND ver > 0", keys[i].DB, len(arms)+1))
		}
	}
	return strings.Join(arms, " UNION ALL ")
}

func readArgs(keys []engine.Key) []any {
	if len(keys) == 1 {
		return []any{notNull(keys[0].Key)}
	}
	var args []any
	for from := 0; from < len(keys); {
		upTo := from
		var names [][]byte
		for ; upTo < len(keys) && keys[upTo].DB == keys[from].DB; upTo++ {
			names = append(names, notNull(keys[upTo].Key))
		}
		args, from = append(args, names), upTo
	}
	return args
}

// collect reads rows of (database, k, xt, ver, v) in the order of their keys. Values come as
// PostgreSQL's binary format has them: bytes as they are, numbers in big-endian order.
func collect(rows pgx.Rows, keys []engine.Key) ([]engine.Record, error) {
	defer rows.Close()
	recs := make([]engine.Record, 0, len(keys))
	for rows.Next() {
		raw := rows.RawValues()
		recs = append(recs, recordOf(uint16(binary.BigEndian.Uint32(raw[0])), raw[1:]))
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	compare := func(a, b engine.Record) int { return engine.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(recs, compare) {
		slices.SortFunc(recs, compare)
	}
	return recs, nil
}

// recordOf returns the record of a row of (k, xt, ver, v). Without v it is a bare one.
func recordOf(db uint16, raw [][]byte) engine.Record {
	r := engine.Record{XT: int64(binary.BigEndian.Uint64(raw[1])), Revision: binary.BigEndian.Uint64(raw[2])}
	room := make([]byte, 0, len(raw[0])+len(raw[len(raw)-1]))
	room = append(room, raw[0]...)
	r.Key = engine.Key{DB: db, Key: room[:len(room):len(room)]}
	if len(raw) > 3 {
		room = append(room, raw[3]...)
		r.Value = room[len(raw[0]):]
	}
	return r
}
